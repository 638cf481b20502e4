"""What a batch costs beside its agents."""

import json
from concurrent.futures import ThreadPoolExecutor

from scripts.benchmarks.agent import PROMPT, Agent, fresh_place
from scripts.benchmarks.memory import PeakMemory, peak_rss_bytes
from scripts.benchmarks.replies import answers
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_TASKS = 200
_JOBS = 4
_OPTIONS = ("--skip-git-repo-check", "-s", "danger-full-access")


def batch(server: BenchmarkServer, agent: Agent) -> Sample:
    """Tasks of one answer, and as many runs of `exec`, as many at once."""
    with fresh_place(server.play(answers, _TASKS)) as place:

        def run_exec(_: int) -> float:
            return place.exec(agent).wait().cpu_s

        with ThreadPoolExecutor(_JOBS) as pool:
            bare = sum(pool.map(run_exec, range(_TASKS)))
        (place.home / "config.toml").write_text(
            server.play(answers, _TASKS), encoding="utf-8"
        )
        tasks = [
            json.dumps({"id": str(each), "prompt": PROMPT}) for each in range(_TASKS)
        ]
        (place.home / "tasks.jsonl").write_text("\n".join(tasks), encoding="utf-8")
        files = (f"{place.home}/tasks.jsonl", "-o", f"{place.home}/results.jsonl")
        running = place.start(
            agent, "batch", *files, f"--jobs={_JOBS}", "--", *_OPTIONS
        )
        with PeakMemory(
            [running.pid], lambda pid: peak_rss_bytes(pid) if pid == running.pid else 0
        ) as memory:
            ended = running.wait()
    return {
        "batch": ended.wall_s,
        "batch, CPU": ended.cpu_s / bare,
        "batch, memory": memory.peak_bytes / 1e6,
    }
