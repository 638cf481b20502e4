"""Holds the commands of one agent: those that run, the sessions to which the model can return, and
the background processes of commands that have finished."""

import asyncio
import os
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codex_py.process.guardian import Guardian
from codex_py.process.process import (
    LocalProcess,
    OutputListener,
    Process,
    attached,
    open_pipe,
    open_terminal,
)

_MAX_SESSIONS = 64
_HANG_UP_GRACE_S = 0.2
"""The time that a server or an editor gets to save its state when the agent ends."""
_KILL_WAIT_S = 1.0


class Leader(NamedTuple):
    """A shell that leads the session of a terminal, and runs the command in it."""

    script: str
    """See `attached`."""
    stdin: int
    """The descriptor that is the script's standard input, before it opens the terminal."""
    stdout: int


class ProcessSessions:
    """Starts commands, and ends them with the agent.

    `aclose` ends them, or a `Guardian` if the agent is killed.
    """

    def __init__(self, *, max_sessions: int = _MAX_SESSIONS) -> None:
        self.on_last_finished: Callable[[], None] = lambda: None
        """Called when a command has finished and no other runs."""
        self._max_sessions = max_sessions
        self._guardian = Guardian()
        self._running: set[Process] = set()
        self._left_behind: set[LocalProcess] = set()
        """The finished commands that may have background processes, which are in their group or
        hold their output."""
        self._sessions: dict[int, Process] = {}
        """The processes by session id, the least recently used first."""

    @property
    def is_running(self) -> bool:
        """True if a command has not finished. Background processes of finished commands do not
        count."""
        return bool(self._running)

    @property
    def is_idle(self) -> bool:
        """True if nothing runs, also in the background."""
        self._prune_left_behind()
        return not self._running and not self._left_behind

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        tty: bool = False,
        on_output: OutputListener | None = None,
        on_finished: Callable[[Process], None] | None = None,
        leader: Leader | None = None,
        size: tuple[int, int] = (120, 40),
    ) -> LocalProcess:
        """Start a command in the running loop. Raises as `Guardian.spawn`.

        Args:
            tty: give the command a terminal. Otherwise its stdout and stderr are one pipe, which
                keeps their order, and its stdin is empty.
            on_finished: called exactly once, before those who wait for the process continue.
            leader: gives the terminal to the command, which needs `tty`. By default, this is a
                shell that the command replaces.
            size: the columns and rows of the terminal.
        """

        def finished(_: Process) -> None:
            self._left_behind.add(process)
            self._prune_left_behind()
            self.remove(process, on_finished)

        terminal: int | None = None
        stdin = subprocess.DEVNULL
        stdout = subprocess.DEVNULL
        stderr = subprocess.DEVNULL
        if tty:
            output, terminal = open_terminal(*size)
            other_end = terminal
        else:
            output, other_end = open_pipe()
            stdout = other_end
            stderr = subprocess.STDOUT
        try:
            if leader is not None:
                argv = attached(argv, other_end, leader.script)
                stdin = leader.stdin
                stdout = leader.stdout
            elif tty:
                argv = attached(argv, other_end)
            child = self._guardian.spawn(
                argv,
                cwd=cwd,
                environment=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        except BaseException:
            os.close(output)
            os.close(other_end)
            raise
        if terminal is None:
            os.close(other_end)
        process = LocalProcess(child, output, terminal, on_output, finished)
        self.add(process)
        return process

    def add(self, process: Process) -> None:
        """Add a command that runs. It ends with the others."""
        self._running.add(process)

    def remove(
        self,
        process: Process,
        on_finished: Callable[[Process], None] | None,
    ) -> None:
        """Remove a command that has finished, and tell `on_finished`."""
        self._running.discard(process)
        if on_finished is not None:
            on_finished(process)
        if not self._running:
            self.on_last_finished()

    def marked(self, environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """Mark a command that somebody else starts; see `Guardian.marked`."""
        return self._guardian.marked(environment)

    def keep(self, process: Process) -> int:
        """Give the process a session id: it continues in the background.

        With too many sessions, one is forgotten: the least recently used of the finished ones, or
        else of all.
        """
        if len(self._sessions) >= self._max_sessions:
            finished = [
                key for key, old in self._sessions.items() if old.finished.is_set()
            ]
            candidates = finished or list(self._sessions)
            self.forget(candidates[0])
        session_id = self._unused_id()
        self._sessions[session_id] = process
        process.on_kept()
        return session_id

    def _unused_id(self) -> int:
        while True:
            session_id = random.randrange(1_000, 100_000)
            if session_id not in self._sessions:
                return session_id

    def find(self, session_id: int) -> Process | None:
        """The process of a session. This counts as a use of it."""
        process = self._sessions.pop(session_id, None)
        if process is not None:
            self._sessions[session_id] = process
        return process

    def forget(self, session_id: int) -> None:
        """Drop a session, and kill what still runs in it."""
        process = self._sessions.pop(session_id, None)
        if process is not None:
            process.kill()

    def let_go(self) -> int:
        """End the waits for all commands, which continue in the background.

        Returns:
            The number of commands that somebody waited for.
        """
        let_go = [process for process in self._running if process.let_go()]
        return len(let_go)

    def kill_running(self) -> int:
        """Kill all running commands; returns their number. Others may be started afterwards."""
        running = list(self._running)
        for process in running:
            process.kill()
        return len(running)

    async def aclose(self) -> None:
        """End every command and background process: with SIGHUP or SIGTERM, then with SIGKILL.

        All are finished afterwards, also if this is cancelled. Others may be started afterwards.
        """
        self._sessions.clear()
        try:
            for process in tuple(self._running):
                process.hang_up()
            await self._all_finished(_HANG_UP_GRACE_S)
        finally:
            for process in self._running | self._left_behind:
                process.kill_now()
            self._guardian.kill_all()
            try:
                await self._all_finished(_KILL_WAIT_S)
            finally:
                for process in tuple(self._running):
                    process.abandon()
                for process in self._left_behind:
                    process.close()
                self._left_behind.clear()
                self._guardian.close()

    async def _all_finished(self, timeout_s: float) -> None:
        await asyncio.gather(*(process.wait(timeout_s) for process in self._running))

    def _prune_left_behind(self) -> None:
        self._left_behind = {
            process
            for process in self._left_behind
            if self._guardian.reaped(process.child) or process.holds_output
        }
