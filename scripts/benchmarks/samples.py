"""One run of each benchmark: what an agent took for it, by the names of `figures`."""

import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeAlias

from scripts.benchmarks.agent import Agent, Ended, fresh_place
from scripts.benchmarks.memory import PeakMemory
from scripts.benchmarks.replies import (
    agents_at_once,
    answers,
    answers_together,
    call_after,
    calls_at_once,
    calls_in_a_row,
    streamed_answer,
    streamed_call,
)
from scripts.benchmarks.server import BenchmarkServer

Sample: TypeAlias = dict[str, float]
"""Values by the name of their figure, in its unit."""
Benchmark: TypeAlias = Callable[[BenchmarkServer, Agent], Sample]

_MS = 1_000
_US = 1_000_000
_MB = 1 / 1_000_000

_DELTAS = 200_000
_FEW_DELTAS = 100
_ARGUMENTS = 1_000_000
_ARGUMENT_DELTAS = 20_000
_TURNS = 200
_SOME_TURNS = 10
_OUTPUT_BYTES = 200_000_000
_AT_ONCE = 20
_IN_A_ROW = 100
_DISTRIBUTIONS = 100
_THINKS_S = 0.5
_HELD_S = 3.0
_AGENTS = 10
_AGENT_S = 1.0


def startup(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(server.play(answers, 2)) as place:
        started_s = [place.exec(agent).wait().started_s for _ in range(2)]
    new, used = server.arrivals()
    return {
        "startup, new home": (new - started_s[0]) * _MS,
        "startup": (used - started_s[1]) * _MS,
    }


def distributions(server: BenchmarkServer, agent: Agent) -> Sample:
    """The start without other packages in the environment, and with them."""
    with fresh_place(server.play(answers, 3)) as place:
        folder = place.home.with_name("packages")
        for number in range(_DISTRIBUTIONS):
            installed = folder / f"other_{number}-1.0.dist-info"
            installed.mkdir(parents=True)
            facts = f"Metadata-Version: 2.1\nName: other-{number}\nVersion: 1.0\n"
            (installed / "METADATA").write_text(facts, encoding="ascii")
            scripts = f"[console_scripts]\nother-{number} = other:main\n"
            (installed / "entry_points.txt").write_text(scripts, encoding="ascii")
        place.exec(agent).wait()
        alone = place.exec(agent).wait()
        pth = _site_packages(agent) / "benchmark-of-codex-py.pth"
        pth.write_text(f"{folder}\n", encoding="utf-8")
        try:
            among_others = place.exec(agent).wait()
        finally:
            pth.unlink()
    _, first_s, second_s = server.arrivals()
    took = second_s - among_others.started_s
    return {"distributions": took / (first_s - alone.started_s)}


def _site_packages(agent: Agent) -> Path:
    """The folder with the packages of the environment in which an agent is installed."""
    python = agent.program.with_name("python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    printed = subprocess.run(
        [python, "-c", code], capture_output=True, check=True, encoding="utf-8"
    )
    return Path(printed.stdout.strip())


def in_a_row(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(server.play(answers, _IN_A_ROW)) as place:
        ended = [place.exec(agent).wait() for _ in range(_IN_A_ROW)]
    return {"in a row": sum(one.cpu_s for one in ended)}


def turn(server: BenchmarkServer, agent: Agent) -> Sample:
    ended, _ = _one(server, agent, server.play(answers, 1))
    return {"turn": ended.wall_s * _MS, "memory, 1 turn": ended.peak_bytes * _MB}


def tools(server: BenchmarkServer, agent: Agent) -> Sample:
    ended, arrivals = _one(server, agent, server.play(calls_in_a_row, _TURNS, "true"))
    gaps = [after - before for before, after in pairwise(arrivals)]
    # Single gaps are too noisy, and what is imported for the first call belongs to the start.
    early, late = gaps[1 : 1 + _SOME_TURNS], gaps[-_SOME_TURNS:]
    return {
        "tools": ended.wall_s,
        "tools, last gap": median(late) / median(early),
        "memory, 200 turns": ended.peak_bytes * _MB,
    }


def profile(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(server.play(calls_in_a_row, _SOME_TURNS, "true")) as place:
        (place.home / ".bash_profile").write_text("sleep 0.2\n", encoding="ascii")
        ended = place.exec(agent).wait()
    return {"profile": ended.wall_s}


def first_call(server: BenchmarkServer, agent: Agent) -> Sample:
    _, arrivals = _one(server, agent, server.play(call_after, _THINKS_S))
    return {"first-call": (arrivals[1] - arrivals[0] - _THINKS_S) * _MS}


def stream(server: BenchmarkServer, agent: Agent) -> Sample:
    few, _ = _one(server, agent, server.play(streamed_answer, _FEW_DELTAS))
    many, _ = _one(server, agent, server.play(streamed_answer, _DELTAS))
    return {
        "stream": (many.cpu_s - few.cpu_s) / (_DELTAS - _FEW_DELTAS) * _US,
        "stream, memory": many.peak_bytes * _MB,
    }


def arguments(server: BenchmarkServer, agent: Agent) -> Sample:
    ended, _ = _one(
        server, agent, server.play(streamed_call, _ARGUMENTS, _ARGUMENT_DELTAS)
    )
    return {"arguments": ended.wall_s, "arguments, CPU": ended.cpu_s}


def parallel(server: BenchmarkServer, agent: Agent) -> Sample:
    _, arrivals = _one(server, agent, server.play(calls_at_once, 8, "sleep 0.5"))
    return {"parallel": arrivals[1] - arrivals[0]}


def output(server: BenchmarkServer, agent: Agent) -> Sample:
    line = "a line of output, as long as most of them are"
    command = f"yes '{line}' | head -c {_OUTPUT_BYTES}"
    ended, arrivals = _one(server, agent, server.play(calls_at_once, 1, command))
    return {
        "output": arrivals[1] - arrivals[0],
        "output, CPU": ended.cpu_s,
        "output, memory": ended.peak_bytes * _MB,
    }


def many(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(server.play(answers, _AT_ONCE)) as place:
        running = [place.exec(agent) for _ in range(_AT_ONCE)]
        ended = [one.wait() for one in running]
    return {
        "many": max(one.ended_s for one in ended) - min(one.started_s for one in ended),
        "many, CPU": sum(one.cpu_s for one in ended),
        "many, memory": _memory_of_many(server, agent) * _MB,
    }


def _memory_of_many(server: BenchmarkServer, agent: Agent) -> float:
    """Peak while all of them wait for the model: in a run of its own, because looking takes time."""
    with fresh_place(server.play(answers_together, _AT_ONCE, _HELD_S)) as place:
        running = [place.exec(agent) for _ in range(_AT_ONCE)]
        with PeakMemory([one.pid for one in running]) as memory:
            for one in running:
                one.wait()
    return memory.peak_bytes


def agents(server: BenchmarkServer, agent: Agent) -> Sample:
    one, all_ = (_with_agents(server, agent, count) for count in (1, _AGENTS))
    memory = (all_.peak_bytes - one.peak_bytes) / (_AGENTS - 1)
    return {"agents": all_.wall_s, "agents, memory": memory * _MB}


def _with_agents(server: BenchmarkServer, agent: Agent, count: int) -> Ended:
    config = server.play(agents_at_once, count, _AGENT_S)
    ended, _ = _one(server, agent, f"{config}\n[agents]\nmax_threads = {count}\n")
    return ended


def version(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(server.play(answers, 0)) as place:
        return {
            "version": place.start(agent, "--version").wait().wall_s * _MS,
            "help": place.start(agent, "exec", "--help").wait().wall_s * _MS,
        }


def _one(
    server: BenchmarkServer, agent: Agent, config_toml: str
) -> tuple[Ended, list[float]]:
    """A whole run of `exec`, and when its requests arrived."""
    with fresh_place(config_toml) as place:
        ended = place.exec(agent).wait()
    return ended, server.arrivals()
