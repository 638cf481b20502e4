"""Sessions that are resumed: a long one, a huge one, and one among many."""

from scripts.benchmarks.agent import PROMPT, Agent, Place, fresh_place
from scripts.benchmarks.memory import PeakMemory, peak_rss_bytes
from scripts.benchmarks.replies import answers
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer
from scripts.benchmarks.stored_session import write_others, write_session

_MS = 1_000
_MB = 1 / 1_000_000

_SESSION_BYTES = 20_000_000
_LARGE_BYTES = 1_000_000_000
_SENT_BYTES = 5_000_000
_OTHERS, _DAYS = 10_000, 300
# Else the first request would be for a summary.
_WINDOW = "model_context_window = 1000000000"


def resume(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(_config(server)) as place:
        thread_id = write_session(place.home, place.repository, _SESSION_BYTES)
        return {
            "resume": _first_request(server, agent, place, "resume", thread_id, PROMPT)[
                0
            ]
        }


def large(server: BenchmarkServer, agent: Agent) -> Sample:
    with fresh_place(_config(server)) as place:
        start_ms, start_bytes = _first_request(server, agent, place, PROMPT)
    with fresh_place(_config(server)) as place:
        thread_id = write_session(
            place.home,
            place.repository,
            _SENT_BYTES,
            replaced_bytes=_LARGE_BYTES - _SENT_BYTES,
        )
        ms, peak_bytes = _first_request(
            server, agent, place, "resume", thread_id, PROMPT
        )
    return {
        "resume, 1 GB": ms - start_ms,
        "resume, 1 GB, memory": (peak_bytes - start_bytes) * _MB,
    }


def among_many(server: BenchmarkServer, agent: Agent) -> Sample:
    """How much longer it takes in a home with many sessions than in one with a single one."""
    result: Sample = {}
    with fresh_place(_config(server)) as few, fresh_place(_config(server)) as many:
        write_others(few.home, few.repository, 1, _DAYS)
        oldest = write_others(many.home, many.repository, _OTHERS, _DAYS)
        for way, words in {
            "new": [],
            "id": ["resume", oldest],
            "name": ["resume", "oldest"],
            "last": ["resume", "--last"],
        }.items():
            first, then = (
                _first_request(server, agent, place, *words, PROMPT)[0]
                for place in (few, many)
            )
            result[f"sessions, {way}"] = then - first
    return result


def _config(server: BenchmarkServer) -> str:
    return f"{_WINDOW}\n{server.play(answers, 1)}"


def _first_request(
    server: BenchmarkServer, agent: Agent, place: Place, *words: str
) -> tuple[float, int]:
    """The time in ms from the start to it, and the peak memory of the whole turn in bytes."""
    (place.home / "config.toml").write_text(_config(server), encoding="utf-8")
    running = place.exec(agent, *words)
    with PeakMemory([running.pid], peak_rss_bytes) as memory:
        ended = running.wait()
    return (server.arrivals()[0] - ended.started_s) * _MS, memory.peak_bytes
