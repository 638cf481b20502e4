"""Runs `codex-py exec --json` to its end, for commands that start many agents.

It is a separate process that does not outlive us. Its events go straight into a file, and the
important ones are read after its end.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.process.child import Child, is_set_within
from codex_py.process.forked import ForkServer
from codex_py.process.guardian import Guardian
from codex_py.protocol.frozen import frozen
from codex_py.sandbox.child import kernel

PROGRAM: Final = (sys.executable, "-P", "-m", "codex_py")
"""Starts this very program, and nothing from the working directory."""
FORK_SERVER: Final = (*PROGRAM, "--fork-server")
"""Starts the process that forks agents."""
TERM_GRACE_S: Final = 5.0
"""The time from SIGTERM to SIGKILL."""
EVENTS: Final = "events.jsonl"
STDERR: Final = "stderr"
_TAIL_BYTES = 4096
_MAX_EVENT_BYTES = 64 * 1024 * 1024
"""The limit of an event; a longer one is left out."""


@frozen
class ExecInvocation:
    """A run of an agent."""

    options: Sequence[str]
    """Options after `exec --json`; no prompt."""
    prompt: str
    cwd: Path
    environment: Mapping[str, str]
    timeout_s: float | None = None


@frozen
class ExecResult:
    """The result of a run: how the process ended, and facts from its events."""

    exit_code: int | None
    """The exit code; None if a signal ended the process."""
    signal: int | None
    """The signal that ended the process; None if it exited."""
    timed_out: bool
    seconds: float
    thread_id: str | None = None
    last_message: str | None = None
    diff: str | None = None
    usage: Mapping[str, int] | None = None
    gates: Sequence[Mapping[str, Any]] | None = None
    error: Mapping[str, Any] | None = None
    """`message` and `code`, as in the event `turn.failed`; None if the turn was completed."""


async def run_exec(
    command: ExecInvocation,
    guardian: Guardian,
    folder: Path,
    *,
    forks: ForkServer | None = None,
    grace_s: float = TERM_GRACE_S,
) -> ExecResult:
    """Run the agent to its end.

    After a time-out or a cancellation it gets SIGTERM, and SIGKILL `grace_s` later.

    Call it in the main thread: on Linux the agent ends with the thread that started it.

    Args:
        folder: the folder for the files `EVENTS` and `STDERR`, which are replaced.
        forks: starts the agent in less time, if it can.

    Raises:
        OSError: the agent cannot be started, or a file cannot be written.
        ValueError: an option has a NUL.
    """
    began = time.monotonic()
    events = folder / EVENTS
    stderr = folder / STDERR
    with (
        tempfile.TemporaryFile() as stdin,
        events.open("wb") as out,
        stderr.open("wb") as err,
    ):
        stdin.write(command.prompt.encode(errors="surrogateescape"))
        stdin.seek(0)
        streams = (stdin.fileno(), out.fileno(), err.fileno())
        child = _started(command, guardian, forks, streams)
    timed_out, code = await _end_of(child, guardian, command.timeout_s, grace_s)
    found = await asyncio.to_thread(_read_events, events)
    if code and "error" not in found:
        message = await asyncio.to_thread(_last_line, stderr)
        if not message and code > 0:
            message = f"it exited with {code}"
        elif not message:
            message = f"signal {-code} ended it"
        found["error"] = {"message": message, "code": "exec"}
    return ExecResult(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=timed_out,
        seconds=round(time.monotonic() - began, 3),
        **found,
    )


def _started(
    command: ExecInvocation,
    guardian: Guardian,
    forks: ForkServer | None,
    streams: tuple[int, int, int],
) -> Child:
    """Start the agent with these standard streams, as a fork if that is possible."""
    # Other users who list processes must not see the prompt, and it may be longer than an argument.
    args = ["exec", "--json", *command.options, "--", "-"]
    if forks is not None:
        forked = forks.spawn(
            args, cwd=command.cwd, environment=command.environment, streams=streams
        )
        if forked is not None:
            return forked
    stdin, stdout, stderr = streams
    return guardian.spawn(
        [*PROGRAM, *args],
        cwd=command.cwd,
        environment=command.environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        prepare=_bound_to(os.getpid()),
    )


async def _end_of(
    child: Child, guardian: Guardian, timeout_s: float | None, grace_s: float
) -> tuple[bool, int]:
    """Wait for the end of a child, and end it after the time-out or a cancellation.

    Returns True if it timed out, and the exit code of `Popen.wait`.
    """
    exited = asyncio.Event()
    child.call_at_exit(exited.set)
    try:
        timed_out = not await is_set_within(exited, timeout_s)
    finally:
        try:
            if not exited.is_set():
                child.send_signal(signal.SIGTERM)
                await is_set_within(exited, grace_s)
        finally:
            # The processes that it started die with it: its own guardian notices its end.
            if not exited.is_set():
                child.kill()
            code = child.process.wait()
            guardian.forget(child)
    return timed_out, code


def _bound_to(parent: int) -> Callable[[], None]:
    """Return a function that ties a child to us, called between fork and exec.

    It works even if somebody kills the guardian.
    """

    def prepare() -> None:
        # A worker of Ray blocks SIGINT, and every child inherits that.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if sys.platform == "linux":
            with suppress(OSError):
                kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # Our process was killed before the call above.
            kernel.leave(128 + signal.SIGKILL)

    return prepare


def _read_events(path: Path) -> dict[str, Any]:
    """Return the fields of `ExecResult` that the events contain."""
    found: dict[str, Any] = {}
    with path.open("rb") as file:
        for line in iter(partial(file.readline, _MAX_EVENT_BYTES), b""):
            if not line.startswith(b'{"type":') or not line.endswith(b"\n"):
                continue
            match json.loads(line):
                case {"type": "thread.started", "thread_id": thread_id}:
                    found["thread_id"] = thread_id
                case {
                    "type": "item.completed",
                    "item": {"type": "agent_message", "text": text},
                }:
                    found["last_message"] = text
                case {"type": "turn.completed" | "turn.failed", **facts}:
                    names = facts.keys() & {"diff", "usage", "gates", "error"}
                    found.update((name, facts[name]) for name in names)
                case _:
                    pass
    return found


def _last_line(path: Path) -> str:
    """The last line of a program's errors, without its `Error: `; empty if there is none."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace").rstrip()
    lines = text.splitlines() or [""]
    return lines[-1].removeprefix("Error: ")
