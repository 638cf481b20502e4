"""Runs a command of the user's in a terminal of its own, and passes its output on."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.process.output import HeadTailBuffer
from codex_py.process.process import OutputListener, Process
from codex_py.process.sessions import Leader, ProcessSessions

_QUIET_S: Final = 0.03
"""After the end of a command, its output is read until nothing has come for so long."""
_MOST_S: Final = 1.0
"""The most time for this reading, if a background process of the command keeps printing."""

# The shell leads the session: when the leader exits, the system hangs up the terminal, and a server
# that was started with `&` would end. So the shell stays until descriptor 4 ends, which we close
# when no background process is left. The command and its background processes inherit descriptor 3,
# the status pipe, which therefore ends when they have ended. Signals that are trapped here have
# their default in the command.
_SCRIPT: Final = """
trap : INT QUIT
exec 3>&1 4<&0 <>"$0" >&0 2>&1
"$@" 4<&-
echo "$?" >&3
exec 3>&-
read -r _ <&4
"""


class ForegroundCommand:
    """A command of the user's that has a terminal to itself.

    Args:
        size: the columns and rows of the terminal.
        on_output: gets the output of the command until `ended`; later output is dropped.

    Attributes:
        ended: set when the command has exited and its output was read. Its background processes may
            still run.
        typed_ahead: set with `ended`: the input that was typed and that the command has not read.

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
        """The time of the last output."""
        self._is_alone = False
        """True once only the leader has the terminal."""
        self._output: HeadTailBuffer | None = None
        """All output, once the command has ended."""
        self._loop = asyncio.get_running_loop()
        # The leader writes the exit code into one pipe, and stays until the other one ends.
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
                leader=Leader(_SCRIPT, stdin=stay, stdout=status),
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
        """The exit code of the command, or that of the leader if it was killed; None before."""
        if self._code is None:
            return self.process.exit_code
        return self._code

    @property
    def duration_s(self) -> float:
        return self._exited_at - self._began_at

    @property
    def output(self) -> str:
        """The output so far; of long output, the beginning and the end."""
        output = self._output or self.process.all_output()
        return output.text()

    def _printed(self, data: bytes) -> None:
        self._printed_at = time.monotonic()
        if not self.ended.is_set():
            self._on_output(data)

    def _read_status(self) -> None:
        """Take the exit code, or the end of the pipe: then no background process is left."""
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
        is_reading_rest = self._code is not None and not self.ended.is_set()
        if not is_reading_rest:
            self._close_stay()

    def _read_rest(self) -> None:
        """End the command as soon as all of its output is read."""
        now = time.monotonic()
        has_time = self._is_alone or now - self._exited_at < _MOST_S
        quiet_s = now - max(self._exited_at, self._printed_at)
        may_print = has_time and quiet_s < _QUIET_S
        if self.process.leaves_output or may_print:
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
        """Let the leader exit."""
        if self._stay >= 0:
            os.close(self._stay)
            self._stay = -1

    def _end(self) -> None:
        if self._output is not None:
            return
        self._output = self.process.all_output()
        if self._code is None:
            self._exited_at = time.monotonic()
        self.typed_ahead = self.process.unread_input()
        self.ended.set()
