"""What a turn costs in each API, and how that grows with the history: a request must cost what is new in it."""

from scripts.benchmarks.agent import Agent, fresh_place
from scripts.benchmarks.replies import plans_in_a_row
from scripts.benchmarks.server import BenchmarkServer

_WIRES = ("responses", "chat", "anthropic", "text")
_TURNS = (10, 105, 200)
_HALF = 95
_TRIES = 5


def wires(server: BenchmarkServer, agent: Agent) -> dict[str, float]:
    """Processor time alone: it is the same on a busy machine, where gaps between requests are not."""
    sample: dict[str, float] = {}
    for wire in _WIRES:
        # What is imported for the first calls belongs to the start.
        few, half, all_ = (_least_cpu_s(server, agent, wire, turns) for turns in _TURNS)
        early, late = (half - few) / _HALF, (all_ - half) / _HALF
        # These are what the turns in the middle of each half take.
        growth = (late - early) / 2
        sample[f"wires, {wire}"] = (late + growth) / (early - growth)
        sample[f"wires, {wire}, CPU"] = (all_ - few) / (2 * _HALF) * 1_000
    return sample


def _least_cpu_s(server: BenchmarkServer, agent: Agent, wire: str, turns: int) -> float:
    """Of some runs: a start takes as long as many turns, and varies more."""
    return min(_cpu_s(server, agent, wire, turns) for _ in range(_TRIES))


def _cpu_s(server: BenchmarkServer, agent: Agent, wire: str, turns: int) -> float:
    with fresh_place(server.play(plans_in_a_row, turns, wire_api=wire)) as place:
        return place.exec(agent).wait().cpu_s
