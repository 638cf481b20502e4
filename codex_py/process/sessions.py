"""The commands of one agent: running ones, sessions to which the model can return, and leftover
processes."""

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codex_py.process.guardian import Guardian
from codex_py.process.process import (
    OutputListener,
    Process,
    attached,
    open_pipe,
    open_terminal,
)

_MAX_SESSIONS = 64
# The time that a server or an editor gets to save its state when the agent ends.
_HANG_UP_GRACE_S = 0.2
_KILL_WAIT_S = 1.0


class ProcessSessions:
    """Starts commands, and ends them with the agent: `aclose`, or a `Guardian` if the agent is killed."""

    def __init__(self, *, max_sessions: int = _MAX_SESSIONS) -> None:
        self.on_last_finished: Callable[[], None] = lambda: None
        """Called when a command has finished and no other runs."""
        self._max_sessions = max_sessions
        self._guardian = Guardian()
        self._running: set[Process] = set()
        self._left_behind: set[Process] = set()
        """Finished commands with a background process that is in their group or holds their
        output."""
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
        leader: tuple[str, int, int] | None = None,
        size: tuple[int, int] = (120, 40),
    ) -> Process:
        """Start a command in the running loop. Its stdout and stderr are one pipe, which keeps their order.

        With `tty` it has a terminal of this `size`, in columns and rows. `leader`: an `sh` script
        that gives the terminal to the command, and the descriptors of the script's stdin and
        stdout.

        `on_finished` is called exactly once, before whoever waits for the process continues.
        Raises as `Guardian.spawn`.
        """

        def finished(process: Process) -> None:
            self._running.discard(process)
            self._left_behind.add(process)
            self._prune_left_behind()
            if on_finished is not None:
                on_finished(process)
            if not self._running:
                self.on_last_finished()

        output, other_end = open_terminal(*size) if tty else open_pipe()
        script: Sequence[str] = ()
        stdin = subprocess.DEVNULL
        stdout = subprocess.DEVNULL if tty else other_end
        if leader is not None:
            *script, stdin, stdout = leader
        try:
            child = self._guardian.spawn(
                attached(argv, other_end, *script) if tty else argv,
                cwd=cwd,
                environment=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.DEVNULL if tty else subprocess.STDOUT,
            )
        except BaseException:
            os.close(output)
            os.close(other_end)
            raise
        if not tty:
            os.close(other_end)
        process = Process(
            child, output, other_end if tty else None, on_output, finished
        )
        self._running.add(process)
        return process

    def keep(self, process: Process) -> int:
        """Give the process a session id: it continues in the background. With too many sessions,
        one is forgotten.

        It is the least recently used of the finished ones, or else of all.
        """
        if len(self._sessions) >= self._max_sessions:
            finished = (
                key for key, old in self._sessions.items() if old.finished.is_set()
            )
            self.forget(next(finished, next(iter(self._sessions))))
        while (session_id := random.randrange(1_000, 100_000)) in self._sessions:
            pass
        self._sessions[session_id] = process
        process.on_kept()
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
        """End the waiting for every command; they continue in the background. Returns their
        number."""
        return sum(process.let_go() for process in self._running)

    def kill_running(self) -> int:
        """Kill every running command; returns their number. Others may be started."""
        running = list(self._running)
        for process in running:
            process.kill()
        return len(running)

    async def aclose(self) -> None:
        """End every command and background process: with SIGHUP or SIGTERM, then with SIGKILL.

        All are finished afterwards, also if this is cancelled. More can be started.
        """
        self._sessions.clear()
        try:
            for process in self._running:
                process.hang_up()
            await self._all_finished(_HANG_UP_GRACE_S)
        finally:
            for process in self._running | self._left_behind:
                process.child.send_signal(signal.SIGKILL)
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
