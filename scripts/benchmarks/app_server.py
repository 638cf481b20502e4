"""Many threads in one app server, each with a turn of several calls."""

import json
import subprocess
import time
from typing import IO, Any

from scripts.benchmarks.agent import Agent, fresh_place
from scripts.benchmarks.memory import PeakMemory
from scripts.benchmarks.replies import calls_of_each
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_THREADS, _CALLS = 50, 10
_MB = 1e-6


def app_server(server: BenchmarkServer, agent: Agent) -> Sample:
    """The time from the first turn's start to the last one's end, and the longest that a thread told nothing."""
    config = server.play(calls_of_each, _THREADS, _CALLS)
    with (
        fresh_place(config) as place,
        subprocess.Popen(
            [str(agent.program), "app-server"],
            cwd=place.repository,
            env=place.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        client = {"name": "bench", "version": "1"}
        _ask(program.stdin, 0, "initialize", {"clientInfo": client})
        next(iter(program.stdout))
        settings = {
            "sandbox": "danger-full-access",
            "approvalPolicy": "never",
            "model": "gpt-5.5",
        }
        for number in range(1, _THREADS + 1):
            _ask(program.stdin, number, "thread/start", settings)
        answers = (json.loads(line) for line in program.stdout)
        started = (each for each in answers if "result" in each)
        threads = [next(started)["result"]["thread"]["id"] for _ in range(_THREADS)]
        with PeakMemory([program.pid]) as memory:
            began_s = time.monotonic()
            for number, thread in enumerate(threads, _THREADS + 1):
                said = [{"type": "text", "text": "go"}]
                _ask(
                    program.stdin,
                    number,
                    "turn/start",
                    {"threadId": thread, "input": said},
                )
            longest_s = _longest_wait(program.stdout, dict.fromkeys(threads, began_s))
            wall_s = time.monotonic() - began_s
        program.stdin.close()
    return {
        "app-server": wall_s,
        "app-server, wait": longest_s,
        "app-server, memory": memory.peak_bytes * _MB,
    }


def _longest_wait(lines: IO[bytes], last_s: dict[str, float]) -> float:
    """Read until the turn of each thread has ended."""
    longest_s, running = 0.0, set(last_s)
    for line in lines:
        now_s = time.monotonic()
        message: dict[str, Any] = json.loads(line)
        thread = message.get("params", {}).get("threadId")
        if thread not in running:
            continue
        longest_s = max(longest_s, now_s - last_s[thread])
        last_s[thread] = now_s
        if message["method"] == "turn/completed":
            assert message["params"]["turn"]["status"] == "completed", message
            running.remove(thread)
            if not running:
                break
    return longest_s


def _ask(stdin: IO[bytes], number: int, method: str, params: dict[str, Any]) -> None:
    request = {"id": number, "method": method, "params": params}
    stdin.write(json.dumps(request).encode() + b"\n")
    stdin.flush()
