"""Hops: the modules and functions that run for a call, a patch, a start and a key, which a reader has to pass.

`scripts/bench hops` counts them. `scripts/bench --functions` names them in the order of their first entry, and
`scripts/bench --by-module` names them below their modules.
"""

import os
import shlex
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import Event
from codex_py.testing.reply import Part
from scripts.benchmarks import terminal
from scripts.benchmarks.agent import PROMPT, Agent, fresh_place
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer
from tests.support.server import ScriptedServer

_TRACE = Path(__file__).with_name("trace.py")
_QUIET_S = 1.0
"""What the program still does for the call before is over by then."""
_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    module: str
    """The path of its file below the package."""
    line: str


@dataclass(frozen=True, slots=True)
class Entry:
    time_s: float
    """On the clock of `time.monotonic`."""
    depth: int
    """The number of functions of the program around it."""
    begins: bool
    """False if the function continues behind an `await` or a `yield`."""
    function: Function


@dataclass(slots=True)
class Span:
    """The time in which a path runs, on the clock of `time.monotonic`."""

    begin_s: float = 0.0
    end_s: float = 0.0


Run: TypeAlias = Callable[[Agent], Span]


def hops(server: BenchmarkServer, agent: Agent) -> Sample:  # noqa: ARG001
    """Each path has a server of its own, which says when it begins and ends."""
    found: Sample = {}
    for name, entries in _paths(agent):
        functions = {entry.function for entry in entries}
        modules = {function.module for function in functions}
        found[f"hops, {name}"] = len(functions)
        found[f"modules, {name}"] = len(modules)
    return found


def print_functions(agent: Agent) -> None:
    """Name the functions of each path, indented by the functions around them, with the number of their entries."""
    for name, entries in _paths(agent):
        entered = Counter(entry.function for entry in entries)
        first: dict[Function, Entry] = {}
        for entry in entries:
            first.setdefault(entry.function, entry)
        print(f"\n{name}: {len(first)} functions")
        for function, entry in first.items():
            times = f"{entered[function]}x"
            place = f"{function.module}:{function.line}"
            print(f"{times:>5} {'  ' * entry.depth}{function.name}  {place}")


def print_modules(agent: Agent) -> None:
    """Name the functions of each path below their modules, with the number of functions and of their entries."""
    for name, entries in _paths(agent):
        entered = Counter(entry.function for entry in entries)
        by_module: defaultdict[str, list[Function]] = defaultdict(list)
        for function in entered:
            by_module[function.module].append(function)
        begun = {entry.function for entry in entries if entry.begins}
        print(
            f"\n{name}: {len(entered)} functions in {len(by_module)} modules;"
            f" {len(entered) - len(begun)} functions only continue behind an await"
        )
        for module, functions in sorted(by_module.items()):
            print(f"{len(functions):>4} {module}")
            for function in functions:
                times = f"{entered[function]}x"
                how = "" if function in begun else " (continues)"
                print(f"{times:>10} {function.name}:{function.line}{how}")


def _paths(agent: Agent) -> Iterable[tuple[str, Sequence[Entry]]]:
    paths: Mapping[str, Run] = {
        "exec": _start,
        "call": _call,
        "patch": _patch,
        "key": _key,
    }
    for name, run in paths.items():
        with _traced(agent) as (traced, file):
            span = run(traced)
            entries = list(_entries(file))
        yield (
            name,
            [each for each in entries if span.begin_s <= each.time_s <= span.end_s],
        )


def _start(agent: Agent) -> Span:
    """From the start of `exec` to the first byte of its request."""
    with ScriptedServer([_last_answer()]) as server:
        with fresh_place(server.config_toml()) as place:
            place.exec(agent).wait()
        return Span(0.0, server.requests[0].received_s)


def _call(agent: Agent) -> Span:
    """A command, from its event to the request with its output."""
    return _second_call(
        agent,
        ev_function_call("c1", "exec_command", {"cmd": "true"}),
        ev_function_call("c2", "exec_command", {"cmd": "true"}),
    )


def _patch(agent: Agent) -> Span:
    """A patch that changes a file, from its event to the request with its output."""
    return _second_call(
        agent,
        ev_custom_tool_call("c1", "apply_patch", _ADD),
        ev_custom_tool_call("c2", "apply_patch", _UPDATE),
    )


_ADD = """\
*** Begin Patch
*** Add File: greeting.txt
+hello
*** End Patch
"""
_UPDATE = """\
*** Begin Patch
*** Update File: greeting.txt
@@
-hello
+hello, world
*** End Patch
"""


def _second_call(agent: Agent, first: list[Event], second: list[Event]) -> Span:
    """The first call loads what both need."""
    pause = Pause()
    held: list[Part] = [ev_created(), pause, *second, ev_completed()]
    script = [[ev_created(), *first, ev_completed()], held, _last_answer()]
    with ScriptedServer(script) as server:
        with fresh_place(server.config_toml()) as place:
            running = place.start(agent, *_IN_SANDBOX, PROMPT)
            if not pause.reached.wait(_DEADLINE_S):
                raise RuntimeError("the second request did not come")
            time.sleep(_QUIET_S)
            begin_s = time.monotonic()
            pause.until.set()
            running.wait()
        return Span(begin_s, server.requests[2].received_s)


_IN_SANDBOX = ("exec", "--json", "--skip-git-repo-check", "-s", "workspace-write")


def _last_answer() -> list[Part]:
    return [ev_created(), *ev_message("done"), ev_completed()]


def _key(agent: Agent) -> Span:
    """A key of the composer, until its letter is on the screen."""
    with ScriptedServer() as server:
        config = server.config_toml(model=terminal.MODEL)
        with (
            terminal.trusted_place(config) as place,
            terminal.in_terminal(agent, place) as (process, master),
        ):
            deadline = time.monotonic() + _DEADLINE_S
            terminal.read_until(master, terminal.MODEL.encode(), deadline)
            for key in (b"x", b"z"):
                terminal.read_for(master, _QUIET_S)
                begin_s = time.monotonic()
                os.write(master, key)
                terminal.read_until(master, key, deadline, quiet_s=0)
                end_s = time.monotonic()
            terminal.read_for(master, _QUIET_S)
            os.write(master, b"\x03\x03\x04")
            process.wait(_DEADLINE_S)
        return Span(begin_s, end_s)


@contextmanager
def _traced(agent: Agent) -> Generator[tuple[Agent, Path]]:
    """The program with its functions written down, and the file that gets them when it ends."""
    python = agent.program.with_name("python")
    with tempfile.TemporaryDirectory(prefix="bench-hops-") as folder:
        file = Path(folder) / "entries"
        program = Path(folder) / "codex-py"
        command = shlex.join([str(python), str(_TRACE), str(file)])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        yield Agent(agent.name, program), file


def _entries(file: Path) -> Iterable[Entry]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            time_s, depth, how, *place = line.rstrip("\n").split("\t")
            function = Function(*place)
            yield Entry(float(time_s), int(depth), how == "begins", function)
