"""The commands of one agent: running ones, sessions that the model can return to, and what they left behind."""

import asyncio
import random
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from codex_py.process.guardian import Guardian
from codex_py.process.marker import Marker, kill_marked
from codex_py.process.process import OutputListener, Process, spawn

_MAX_SESSIONS = 64
# The time that a server or an editor gets to save its state when the agent ends.
_HANG_UP_GRACE_S = 0.2
_KILL_WAIT_S = 1.0


class ProcessSessions:
    """Starts commands, and ends them with the agent: `aclose`, or a `Guardian` if the agent is killed."""

    def __init__(self, *, max_sessions: int = _MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._marker = Marker()
        self._guardian = Guardian(self._marker.prefix)
        self._running: set[Process] = set()
        self._left_behind: set[Process] = set()
        """Finished, but a background process is in their group or holds their output."""
        self._sessions: dict[int, Process] = {}
        """By session id, the least recently used first."""

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
        environment: dict[str, str],
        tty: bool = False,
        on_output: OutputListener | None = None,
        on_finished: Callable[[Process], None] | None = None,
    ) -> Process:
        """Start a command in the running loop.

        `on_finished` is called exactly once, before whoever waits for the process continues.

        Raises:
            OSError: it cannot be started; if that is due to the directory, `filename` is `cwd`.
            ValueError: an argument has a NUL or a character that the file system's encoding lacks.
        """

        def finished(process: Process) -> None:
            self._settle(process)
            if on_finished is not None:
                on_finished(process)

        self._prune_left_behind()
        self._guardian.start()
        environment, mark = self._marker.mark(environment)
        process = spawn(
            argv,
            cwd=cwd,
            environment=environment,
            mark=mark,
            tty=tty,
            on_output=on_output,
            on_finished=finished,
        )
        self._running.add(process)
        self._guardian.watch(process.group.id)
        return process

    def keep(self, process: Process) -> int:
        """Give the process a session id. If there are too many sessions, an old one is forgotten.

        That is the least recently used of the finished ones, or else of all.
        """
        if len(self._sessions) >= self._max_sessions:
            finished = (key for key, old in self._sessions.items() if old.finished.is_set())
            self.forget(next(finished, next(iter(self._sessions))))
        session_id = random.randrange(1_000, 100_000)
        while session_id in self._sessions:
            session_id = random.randrange(1_000, 100_000)
        self._sessions[session_id] = process
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
            await _all_finished(self._running, _HANG_UP_GRACE_S)
        finally:
            self._kill_all()
            try:
                await _all_finished(self._running, _KILL_WAIT_S)
            finally:
                for process in tuple(self._running):
                    process.abandon()
                for process in self._left_behind:
                    process.close()
                self._left_behind.clear()
                self._guardian.close()

    def _kill_all(self) -> None:
        for process in self._running | self._left_behind:
            process.group.send_signal(signal.SIGKILL)
        if self._guardian.is_running:
            kill_marked(self._marker.prefix)

    def _settle(self, process: Process) -> None:
        self._running.discard(process)
        if process.group.has_members():
            self._left_behind.add(process)
            self._guardian.leader_reaped(process.group.id)
            return
        self._guardian.forget(process.group.id)
        if process.holds_output:
            self._left_behind.add(process)

    def _prune_left_behind(self) -> None:
        for process in tuple(self._left_behind):
            if not process.group.has_members():
                self._guardian.forget(process.group.id)
                if not process.holds_output:
                    self._left_behind.discard(process)


async def _all_finished(processes: Iterable[Process], timeout_s: float) -> None:
    """Wait until all are finished, or until the timeout."""
    waits = [asyncio.ensure_future(process.finished.wait()) for process in processes]
    if waits:
        try:
            await asyncio.wait(waits, timeout=timeout_s)
        finally:
            for wait in waits:
                wait.cancel()
