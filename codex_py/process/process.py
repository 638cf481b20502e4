"""One running command: reads its output, waits for its end, and kills it."""

import asyncio
import fcntl
import os
import signal
import sys
import termios
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from codex_py.process.child import Child, is_set_within
from codex_py.process.grace import OutputGrace
from codex_py.process.output import HeadTailBuffer

_PIPE_BYTES = 256 * 1024
"""The size of a pipe, and of a read. A large pipe saves switches between the command and us."""
_LAST_READS = 16
"""The reads that empty a pipe or a terminal. One read empties a pipe; a terminal holds at most
64 KB, of which a read takes 4 KB."""
_KILL_WAIT_S = 1.0
"""How long `stop` waits for a killed command. A process that waits in the kernel dies late."""
_MAX_UNSENT_BYTES = 1 << 20
_MAX_TYPED_BYTES = 64 * 1024
"""The most input that a terminal holds."""
_SIGNAL_EXIT_BASE = 128
_ATTACH = 'exec "$@" <>"$0" >&0 2>&1'

OutputListener = Callable[[bytes], None]
"""Gets each piece of output, as it was read."""


class Spawn(Protocol):
    """Starts a command in the running loop; `ProcessSessions.spawn` does."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        tty: bool,
        on_output: OutputListener,
        on_finished: Callable[["Process"], None],
    ) -> "Process":
        """Start it. Raises `OSError` or `ValueError` if it cannot be started."""
        ...


class SpawnOutside(Protocol):
    """Starts a command outside of the sandbox; `HostedCommands.spawn` does."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
        tty: bool,
        on_output: OutputListener,
        on_finished: Callable[["Process"], None],
    ) -> "Process":
        """Start it. `title`: the command as people know it."""
        ...


class Process(ABC):
    """One command, running or finished.

    `finished` is set when the command has exited, was reaped, and its output was read to the end.
    """

    def __init__(
        self,
        on_output: OutputListener | None,
        on_finished: Callable[["Process"], None],
    ) -> None:
        """
        Args:
            on_output: called with each piece of output until `finished`.
            on_finished: called once, right after `finished` is set.
        """
        self.exit_code: int | None = None
        """128 + n after signal n; None until finished."""
        self.started_at = time.monotonic()
        self.duration_s = 0.0
        self.finished = asyncio.Event()
        self.on_kept: Callable[[], None] = lambda: None
        """Called when the command gets a session id and continues in the background."""
        self.on_terminal: Callable[[str], None] = lambda _: None
        """Called with the id of the terminal in which the user's own program shows the command."""
        self.was_let_go = False
        """True if `let_go` ended a wait."""
        self.was_killed = False
        """True if we killed it, with no exit code that says why."""
        self._woken = asyncio.Event()
        """Set to end the current calls of `wait`."""
        self._waiting = 0
        """The number of those calls."""
        self._on_output = on_output
        self._on_finished = on_finished
        self._untaken = HeadTailBuffer()
        self._taken = HeadTailBuffer()
        self._exit_code_if_killed: int | None = None

    @property
    @abstractmethod
    def has_input(self) -> bool:
        """True if `write` reaches the command; without a terminal its stdin is empty."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Type into the terminal. Input that it does not accept at once is sent later.

        Raises:
            BufferError: the command does not read, and 1 MiB of input is waiting already.
        """

    @abstractmethod
    def interrupt(self, times: int = 1) -> None:
        """Interrupt the command, as Ctrl-C does. Does nothing if the command is finished."""

    @abstractmethod
    def hang_up(self) -> None:
        """Ask the command to end, because the agent ends."""

    @abstractmethod
    def kill_now(self) -> None:
        """Kill the command without another exit code. It may be finished."""

    @abstractmethod
    def abandon(self) -> None:
        """Make a killed command finished, although it has not exited yet."""

    @abstractmethod
    def _kill(self) -> None:
        """Kill the command and all that it started. It is not finished yet."""

    async def wait(self, timeout_s: float) -> bool:
        """Wait until it is finished or let go; True if it is finished."""
        self._waiting += 1
        try:
            if not self.finished.is_set():
                await is_set_within(self._woken, timeout_s)
            return self.finished.is_set()
        finally:
            self._waiting -= 1
            self._woken.clear()

    def let_go(self) -> bool:
        """End the current waits, and leave the command running; True if somebody waited."""
        if self._waiting == 0:
            return False
        self.was_let_go = True
        self._woken.set()
        return True

    def take_output(self) -> HeadTailBuffer:
        """Take the output since the last call. An incomplete character stays for the next call."""
        taken = self._untaken
        self._untaken = HeadTailBuffer()
        if not self.finished.is_set():
            self._untaken.append(taken.pop_incomplete())
        self._taken.absorb(taken)
        return taken

    def all_output(self) -> HeadTailBuffer:
        """The output so far, whether it was taken or not."""
        everything = HeadTailBuffer()
        everything.absorb(self._taken)
        everything.absorb(self._untaken)
        return everything

    def kill(self, *, exit_code: int | None = None) -> None:
        """Kill the command and all that it started.

        The command is finished soon after, with `exit_code` if that is given. Does nothing if it is
        finished already.
        """
        if not self.finished.is_set():
            self._exit_code_if_killed = exit_code
            self.was_killed = exit_code is None
            self._kill()

    async def stop(self, *, exit_code: int | None = None) -> None:
        """Kill it and wait until it is finished, which it is afterwards even if this is
        cancelled."""
        self.kill(exit_code=exit_code)
        try:
            await self.wait(_KILL_WAIT_S)
        finally:
            self.abandon()

    def _end(self, code: int) -> None:
        """Make it finished. `code`: the exit code, unless another one was given to `kill`."""
        if self._exit_code_if_killed is not None:
            code = self._exit_code_if_killed
        self.exit_code = code
        self.duration_s = time.monotonic() - self.started_at
        self.finished.set()
        self._woken.set()
        self._on_finished(self)


class LocalProcess(Process):
    """A command that is a process of ours.

    If a background process still holds the output, it is read for a moment only; see `OutputGrace`.
    From then on, output of that process is read and dropped: a server that was started with `&`
    must not die of a broken pipe.
    """

    def __init__(
        self,
        child: Child,
        output: int,
        terminal: int | None,
        on_output: OutputListener | None,
        on_finished: Callable[[Process], None],
    ) -> None:
        """Take over a child that was started in the running loop.

        Args:
            output: the first descriptor of `open_pipe` or `open_terminal`. The process closes it.
            terminal: the second one of `open_terminal`, which the process closes too; None without
                a terminal.
        """
        super().__init__(on_output, on_finished)
        self.child = child
        self._output: int | None = output
        self._terminal = terminal
        self._unsent = bytearray()
        self._has_exited = False
        self._is_left = False
        """True between `leave_output` and `read_output`."""
        self._grace: OutputGrace | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(output, self._read)
        child.call_at_exit(self._exited)

    @property
    def has_input(self) -> bool:
        return self._terminal is not None

    @property
    def holds_output(self) -> bool:
        """True if some process may still write to the output, even if the command is finished."""
        return self._output is not None

    def write(self, data: bytes) -> None:
        if len(self._unsent) + len(data) > _MAX_UNSENT_BYTES:
            raise BufferError
        self._unsent += data
        self._send()

    def interrupt(self, times: int = 1) -> None:
        """Send SIGINT to the group. Does nothing if the command is finished."""
        if not self.finished.is_set():
            for _ in range(times):
                self.child.send_signal(signal.SIGINT)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the system tells its programs."""
        if self._terminal is not None and not self._has_exited:
            termios.tcsetwinsize(self._terminal, (rows, columns))

    def unread_input(self) -> bytes:
        """Take the input that was typed and that no program has read.

        Empty if the terminal does not show what is typed, such as a password.
        """
        if self._terminal is None or self._has_exited:
            return b""
        with suppress(OSError, termios.error):
            modes = termios.tcgetattr(self._terminal)
            if not modes[3] & termios.ECHO:
                return b""
            cooked = termios.tcgetattr(self._terminal)
            # Read the beginning of a line too, and wait for nothing.
            modes[3] &= ~termios.ICANON
            modes[6][termios.VMIN] = 0
            modes[6][termios.VTIME] = 0
            termios.tcsetattr(self._terminal, termios.TCSANOW, modes)
            try:
                return os.read(self._terminal, _MAX_TYPED_BYTES)
            finally:
                termios.tcsetattr(self._terminal, termios.TCSANOW, cooked)
        return b""

    def continue_foreground(self) -> None:
        """Continue the programs in the foreground of the terminal, if they have stopped."""
        if self._terminal is None or self._output is None or self._has_exited:
            return
        with suppress(OSError):
            # We are outside of the session: only this end tells us its foreground group.
            os.killpg(os.tcgetpgrp(self._output), signal.SIGCONT)

    @property
    def leaves_output(self) -> bool:
        """True between `leave_output` and `read_output`."""
        return self._is_left

    def leave_output(self) -> None:
        """Stop reading until `read_output`. The command blocks once its pipe or terminal is
        full."""
        if self._output is not None and not self.finished.is_set():
            self._is_left = True
            self._loop.remove_reader(self._output)

    def read_output(self) -> None:
        """Continue reading after `leave_output`."""
        if self._is_left and self._output is not None and not self.finished.is_set():
            self._is_left = False
            self._loop.add_reader(self._output, self._read)

    def hang_up(self) -> None:
        """Ask the group to end: with SIGHUP if it has a terminal, or else with SIGTERM."""
        if self.has_input:
            self.child.send_signal(signal.SIGHUP)
        else:
            self.child.send_signal(signal.SIGTERM)

    def kill_now(self) -> None:
        """Send SIGKILL to the group, if any of it is left."""
        self.child.send_signal(signal.SIGKILL)

    def abandon(self) -> None:
        if not self.finished.is_set():
            self._finish()

    def close(self) -> None:
        """Stop reading the output of background processes."""
        if self._output is not None:
            self._loop.remove_reader(self._output)
            self._loop.remove_writer(self._output)
            os.close(self._output)
            self._output = None

    def _read(self) -> None:
        data = self._read_some()
        if data is None:
            return
        if data:
            self._untaken.append(data)
            if self._grace is not None:
                self._grace.extend()
            if self._on_output is not None:
                self._on_output(data)
            return
        # The output has ended.
        self.close()
        if self._has_exited:
            self._finish()

    def _read_some(self) -> bytes | None:
        """Read available output; empty at its end, None if nothing is available now."""
        if self._output is None:
            return b""
        try:
            return os.read(self._output, _PIPE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # On Linux, EIO means that the other end of the terminal is closed.
            return b""

    def _exited(self) -> None:
        self._has_exited = True
        if self._terminal is not None:
            os.close(self._terminal)
        if self.finished.is_set():
            # It was abandoned, and has exited at last.
            self.child.process.wait()
        elif self._output is None:
            self._finish()
        else:
            self._grace = OutputGrace(self._finish)

    def _finish(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        if self._output is not None:
            self._read_last()
        code = -signal.SIGKILL
        if self._has_exited:
            code = self.child.process.wait()
        if code < 0:
            code = _SIGNAL_EXIT_BASE - code
        self._end(code)

    def _kill(self) -> None:
        self.child.kill()

    def _read_last(self) -> None:
        """Read what the pipe or terminal holds now, and drop all later output."""
        for _ in range(_LAST_READS):
            data = self._read_some()
            if not data:
                break
            self._untaken.append(data)
            if self._is_left and self._on_output is not None:
                self._on_output(data)
        if self._output is not None:
            self._loop.remove_writer(self._output)
            self._loop.add_reader(self._output, self._drop)
            self._drop()

    def _drop(self) -> None:
        """Read and forget some output; closes it at its end."""
        if self._read_some() == b"":
            self.close()

    def _send(self) -> None:
        """Write as much of the unsent input as the terminal accepts, and the rest later."""
        if self._output is None:
            return
        try:
            sent = os.write(self._output, self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            # Nobody reads the input any more, so drop it. `wait` tells when the command has ended.
            sent = len(self._unsent)
        del self._unsent[:sent]
        if self._unsent:
            self._loop.add_writer(self._output, self._send)
        else:
            self._loop.remove_writer(self._output)


def open_pipe() -> tuple[int, int]:
    """Make a pipe; returns its reading and its writing end. Reading does not block.

    The caller closes both.
    """
    output, write_end = os.pipe()
    os.set_blocking(output, False)
    if sys.platform == "linux":
        # The kernel refuses this to users with many open pipes. The usual 64 KB do as well.
        with suppress(OSError):
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return output, write_end


def open_terminal(columns: int = 120, rows: int = 40) -> tuple[int, int]:
    """Make a pseudo-terminal; returns our end and the commands' end. Reading does not block.

    The caller closes both. Keep the second one open while a command starts and runs: while nobody
    has it open, reading the first one fails.

    Raises:
        OSError: the system has no pseudo-terminal left.
    """
    output, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (rows, columns))
    os.set_blocking(output, False)
    return output, terminal


def attached(
    argv: Sequence[str],
    terminal: int,
    script: str = _ATTACH,
) -> list[str]:
    """The command line that gives `argv` the terminal. Run it as the leader of a new session.

    A session leader without a terminal gets the first one that it opens as its controlling
    terminal. A shell opens it in the child: with our own code between fork and exec, the child
    could not be started by vfork.

    Args:
        script: an `sh` script that gets the terminal's name as `$0` and `argv` as `$@`.
    """
    return ["/bin/sh", "-c", script, os.ttyname(terminal), *argv]
