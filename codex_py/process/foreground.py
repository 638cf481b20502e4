"""Runs a user's command in the foreground of its own terminal, whose output is passed on to the
real one."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.process.output import HeadTailBuffer
from codex_py.process.process import OutputListener, Process
from codex_py.process.sessions import ProcessSessions

_QUIET_S: Final = 0.03
"""After the end of a command its output is read until nothing has come for so long."""
_MOST_S: Final = 1.0
"""The limit for that, if a background process of the command keeps printing."""

# The shell leads the session, so it stays until no background process has the terminal any more: at
# the end of the leader the system hangs up the terminal, and a server that was started with `&`
# would end. All of them inherit descriptor 3, so the pipe ends when they have ended. Signals that
# are trapped here have their default in the command.
_SCRIPT: Final = """
trap : INT QUIT
exec 3>&1 4<&0 <>"$0" >&0 2>&1
"$@" 4<&-
echo "$?" >&3
exec 3>&-
read -r _ <&4
"""


class ForegroundCommand:
    """A user's command that has the terminal to itself.

    Args:
        size: columns and rows.
        on_output: gets the output of the command until `ended`; later output is dropped.

    Attributes:
        ended: set when the command has exited. Its background processes may still run.
        typed_ahead: what was typed and the command has not read, once it has ended.

    Raises as `ProcessSessions.spawn`.
    """

    def __init__(
        self,
        sessions: ProcessSessions,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int],
        on_output: OutputListener,
    ) -> None:
        self.ended = asyncio.Event()
        self.typed_ahead = b""
        self._on_output = on_output
        self._code: int | None = None
        now = time.monotonic()
        self._began_at = now
        self._exited_at = now
        self._printed_at = now
        self._is_alone = False
        """True once only the leader has the terminal."""
        self._output: HeadTailBuffer | None = None
        """All output, once the command has ended."""
        self._loop = asyncio.get_running_loop()
        self._status, status = os.pipe()
        stay, self._stay = os.pipe()
        os.set_blocking(self._status, False)
        try:
            self.process = sessions.spawn(
                argv,
                cwd=cwd,
                environment=environment,
                tty=True,
                on_output=self._printed,
                on_finished=self._finished,
                leader=(_SCRIPT, stay, status),
                size=size,
            )
        except BaseException:
            os.close(self._status)
            os.close(self._stay)
            raise
        finally:
            os.close(status)
            os.close(stay)
        self._loop.add_reader(self._status, self._read_status)

    @property
    def exit_code(self) -> int | None:
        if self._code is None:
            return self.process.exit_code
        return self._code

    @property
    def duration_s(self) -> float:
        return self._exited_at - self._began_at

    @property
    def output(self) -> str:
        """The output so far; of long output, the beginning and the end."""
        return (self._output or self.process.all_output()).text()

    def _printed(self, data: bytes) -> None:
        self._printed_at = time.monotonic()
        if not self.ended.is_set():
            self._on_output(data)

    def _read_status(self) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = os.read(self._status, 64)
        if data:
            self._code = int(data)
            self._exited_at = time.monotonic()
            self._read_rest()
            return
        self._is_alone = True
        self._loop.remove_reader(self._status)
        if self._code is None or self.ended.is_set():
            self._close_stay()

    def _read_rest(self) -> None:
        """Wait until all output of the command is read."""
        now = time.monotonic()
        may_wait = self._is_alone or now - self._exited_at < _MOST_S
        quiet_s = now - max(self._exited_at, self._printed_at)
        if self.process.leaves_output or (may_wait and quiet_s < _QUIET_S):
            self._loop.call_later(_QUIET_S, self._read_rest)
            return
        self._end()
        if self._is_alone:
            self._close_stay()

    def _finished(self, _process: Process) -> None:
        self._loop.remove_reader(self._status)
        os.close(self._status)
        self._close_stay()
        self._end()

    def _close_stay(self) -> None:
        if self._stay >= 0:
            os.close(self._stay)
            self._stay = -1

    def _end(self) -> None:
        if self._output is None:
            self._output = self.process.all_output()
            if self._code is None:
                self._exited_at = time.monotonic()
            self.typed_ahead = self.process.unread_input()
            self.ended.set()
