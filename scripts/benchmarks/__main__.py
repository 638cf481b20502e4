"""`scripts/bench`: measure codex-py, beside a native Codex where one is at hand, and patches beside git."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from scripts.benchmarks import patches, resume, samples
from scripts.benchmarks.agent import Agent
from scripts.benchmarks.app_server import app_server
from scripts.benchmarks.batch import batch
from scripts.benchmarks.figures import HEADING, rows
from scripts.benchmarks.half_core import half_core
from scripts.benchmarks.hops import hops, print_functions, print_modules
from scripts.benchmarks.samples import Benchmark, Sample
from scripts.benchmarks.sandbox import sandbox
from scripts.benchmarks.server import BenchmarkServer
from scripts.benchmarks.terminal import (
    terminal,
    terminal_keys,
    terminal_start,
    terminal_turns,
    terminal_waits,
)
from scripts.benchmarks.undo import undo
from scripts.benchmarks.wires import wires

_ROOT = Path(__file__).resolve().parents[2]

_BENCHMARKS: dict[str, tuple[Benchmark, int]] = {
    "version": (samples.version, 20),
    "startup": (samples.startup, 20),
    "distributions": (samples.distributions, 20),
    "in-a-row": (samples.in_a_row, 1),
    "turn": (samples.turn, 20),
    "tools": (samples.tools, 3),
    "profile": (samples.profile, 5),
    "first-call": (samples.first_call, 10),
    "stream": (samples.stream, 5),
    "arguments": (samples.arguments, 5),
    "undo": (undo, 3),
    "parallel": (samples.parallel, 3),
    "wires": (wires, 3),
    "output": (samples.output, 5),
    "resume": (resume.resume, 5),
    "resume-large": (resume.large, 3),
    "sessions": (resume.among_many, 10),
    "many": (samples.many, 5),
    "agents": (samples.agents, 5),
    "app-server": (app_server, 3),
    "batch": (batch, 1),
    "sandbox": (sandbox, 20),
    "terminal": (terminal, 3),
    "terminal-start": (terminal_start, 10),
    "terminal-keys": (terminal_keys, 3),
    "terminal-waits": (terminal_waits, 3),
    "terminal-turns": (terminal_turns, 1),
    "patch": (patches.patch, 5),
    "patch-worst": (patches.worst, 5),
    "releases": (patches.releases, 5),
    "releases-as-envelopes": (patches.releases_as_envelopes, 5),
    "hops": (hops, 1),
}
"""Each with the number of runs that gives a steady median."""
_BY_NAME_ONLY = {"resume-large"}
"""It needs 1 GB in the folder for temporary files."""
_OF_RELEASES = {"releases", "releases-as-envelopes"}
"""They need a folder with releases of projects, which `RELEASES_DIR` names."""


def main() -> None:
    arguments = _parser().parse_args()
    limited = half_core() if arguments.half_core else nullcontext()
    with (
        limited as group,
        _program(arguments.program, editable=arguments.editable) as program,
    ):
        agents = [Agent("codex-py", program, group)]
        if arguments.functions:
            print_functions(agents[0])
            return
        if arguments.by_module:
            print_modules(agents[0])
            return
        if arguments.peer is not None:
            agents.append(Agent("peer", arguments.peer.resolve(), group))
        with BenchmarkServer() as server:
            print(HEADING)
            for name in arguments.benchmarks or _by_default():
                benchmark, runs = _BENCHMARKS[name]
                compared = _compared(name, agents)
                measured = _interleaved(
                    benchmark, server, compared, arguments.runs or runs
                )
                print(rows(measured), flush=True)
    patches.remove_change()


def _by_default() -> list[str]:
    left_out = set(_BY_NAME_ONLY)
    if "RELEASES_DIR" not in os.environ:
        left_out |= _OF_RELEASES
    return [name for name in _BENCHMARKS if name not in left_out]


def _compared(name: str, agents: Sequence[Agent]) -> Sequence[Agent]:
    """Who takes part: Codex has no `apply` of files, but git has; ways to hold a command, APIs, undo, batches,
    subagents of a name that is not searched for, functions of Python, and what only we promise of sessions are ours
    alone."""
    if name in {
        "distributions",
        "sandbox",
        "wires",
        "agents",
        "batch",
        "hops",
        "undo",
        "resume-large",
        "sessions",
    }:
        return agents[:1]
    if name not in {"patch", "patch-worst", "releases"}:
        return agents
    git = None if name == "patch-worst" else shutil.which("git")
    return agents[:1] if git is None else [agents[0], Agent("git", Path(git))]


def _interleaved(
    benchmark: Benchmark, server: BenchmarkServer, agents: Sequence[Agent], runs: int
) -> list[list[Sample]]:
    """The samples of each agent. They take turns, so that a busy moment of the machine meets both."""
    results: list[list[Sample]] = [[] for _ in agents]
    for agent in agents:
        # Not counted: it brings the files into memory.
        benchmark(server, agent)
    for _ in range(runs):
        for agent, result in zip(agents, results, strict=True):
            result.append(benchmark(server, agent))
    return results


@contextmanager
def _program(given: Path | None, *, editable: bool) -> Generator[Path]:
    if given is not None or editable:
        yield (
            given.resolve()
            if given is not None
            else _ROOT / ".venv" / "bin" / "codex-py"
        )
        return
    with tempfile.TemporaryDirectory(prefix="bench-venv-") as folder:
        print("installing codex-py as users have it", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        # pip compiles what it installs, whatever PYTHONDONTWRITEBYTECODE says.
        subprocess.run([python, "-m", "pip", "install", "--quiet", _ROOT], check=True)
        yield python.with_name("codex-py")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="BENCHMARK",
        help=f"of {', '.join(_BENCHMARKS)}; or all",
    )
    parser.add_argument("--peer", type=Path, help="a native Codex to run beside it")
    parser.add_argument("--runs", type=int, help="of each benchmark and program")
    parser.add_argument("--program", type=Path, help="an installed codex-py to measure")
    parser.add_argument(
        "--editable",
        action="store_true",
        help="measure .venv instead of an installation",
    )
    parser.add_argument(
        "--half-core",
        action="store_true",
        help="give the programs half of a processor; needs root, on Linux",
    )
    parser.add_argument(
        "--functions",
        action="store_true",
        help="name the functions that `hops` counts, and measure nothing",
    )
    parser.add_argument(
        "--by-module",
        action="store_true",
        help="name these functions below their modules, and measure nothing",
    )
    return parser


if __name__ == "__main__":
    main()
