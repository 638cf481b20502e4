"""Runs programs whose output is taken in pieces, as fast as somebody wants them.

A `Process` keeps the output of a command that nobody may read. Here the program waits while nobody
reads, and its standard output and standard error are two streams.
"""

import asyncio
import os
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from codex_py.process.child import Child, is_set_within
from codex_py.process.guardian import Guardian
from codex_py.process.process import attached, open_terminal

_PIECE_BYTES: Final = 64 * 1024
_HELD_BYTES: Final = 256 * 1024
"""More than a pipe or a terminal holds when the program exits."""
_QUIET_S: Final = 0.3
_MOST_S: Final = 2.0
"""If a process that the program has left behind holds the output, reading ends when nothing has come
for `_QUIET_S`, or `_MOST_S` after the program has exited. `OutputGrace` decides in the same way."""
_KILL_WAIT_S: Final = 1.0
_MAX_UNSENT_BYTES: Final = 64 << 20
_FEW_UNSENT_BYTES: Final = 1 << 20
"""The input that may still wait when `write` returns."""
_SIGNAL_EXIT_BASE: Final = 128
_END_OF_INPUT: Final = b"\x04"
"""Ctrl-D, which a terminal takes for the end of the input at the beginning of a line."""


class StreamedOutput:
    """One of the streams that a program writes to."""

    def __init__(self, file: IO[bytes]) -> None:
        """Take over an unbuffered file, in the running loop."""
        self._file = file
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._last_s: float | None = None
        """The time at which reading ends; None while the program runs."""
        self._read_since_exit = 0
        self._was_empty_since_exit = False
        os.set_blocking(file.fileno(), False)

    @property
    def is_held(self) -> bool:
        """True while some process may write to it."""
        return not self._file.closed

    async def read(self) -> bytes:
        """The next piece of output; empty at its end. One task reads at a time.

        What is written after the end is read and dropped: a server that was left behind must not
        die of a broken pipe.
        """
        while not self._file.closed and not self._is_over:
            data = self._read_some()
            if data is not None:
                return data
            self._was_empty_since_exit = self._last_s is not None
            if not await self._comes():
                break
        if not self._file.closed:
            self._loop.add_reader(self._file.fileno(), self._read_some)
        return b""

    def exited(self) -> None:
        """Note that the program has exited."""
        self._last_s = self._loop.time() + _MOST_S
        self._woken.set()

    def close(self) -> None:
        """Stop reading. Whoever still writes gets an error."""
        if not self._file.closed:
            self._loop.remove_reader(self._file.fileno())
            self._file.close()

    @property
    def _is_over(self) -> bool:
        """True if another process writes on and on after the program has exited.

        What the program itself has written is read before, however long that takes.
        """
        if self._last_s is None or self._loop.time() < self._last_s:
            return False
        return self._was_empty_since_exit or self._read_since_exit >= _HELD_BYTES

    def _read_some(self) -> bytes | None:
        """Read what is there; empty at the end, None if there is nothing now."""
        try:
            data = os.read(self._file.fileno(), _PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # On Linux, EIO means that the other end of the terminal is closed.
            data = b""
        if not data:
            self.close()
        elif self._last_s is not None:
            self._read_since_exit += len(data)
        return data

    async def _comes(self) -> bool:
        """Wait for output, or for the exit. False if the program has exited, and none comes."""
        wait_s = None
        if self._last_s is not None:
            wait_s = _QUIET_S
        self._woken.clear()
        descriptor = self._file.fileno()
        self._loop.add_reader(descriptor, self._woken.set)
        try:
            return await is_set_within(self._woken, wait_s)
        finally:
            self._loop.remove_reader(descriptor)


class StreamedInput:
    """The input of a program: a pipe, or our end of its terminal."""

    def __init__(self, file: IO[bytes], *, is_terminal: bool) -> None:
        """Take over an unbuffered file, in the running loop."""
        self._file = file
        self._is_terminal = is_terminal
        self._unsent = bytearray()
        self._is_ended = False
        self._is_at_line_start = True
        self._few_left = asyncio.Event()
        self._few_left.set()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(file.fileno(), False)

    @property
    def is_open(self) -> bool:
        """False after its end, and if nobody reads it any more."""
        return not self._is_ended and not self._file.closed

    async def write(self, data: bytes, *, ends: bool = False) -> None:
        """Send input, in the order of the calls. Returns when nearly everything is sent.

        Args:
            ends: nothing comes after it.

        Raises:
            BufferError: the program does not read, and 64 MB are waiting already.
        """
        if len(self._unsent) + len(data) > _MAX_UNSENT_BYTES:
            raise BufferError
        if data:
            self._is_at_line_start = data.endswith(b"\n")
        self._unsent += data
        if ends:
            self._is_ended = True
            self._unsent += self._end_mark()
        if len(self._unsent) > _FEW_UNSENT_BYTES:
            self._few_left.clear()
        self._send()
        await self._few_left.wait()

    def close(self) -> None:
        """Drop what is not sent."""
        self._unsent.clear()
        self._few_left.set()
        if not self._file.closed:
            self._loop.remove_writer(self._file.fileno())
            self._file.close()

    def _end_mark(self) -> bytes:
        """What a program in a terminal takes for the end of its input."""
        if not self._is_terminal:
            return b""
        if self._is_at_line_start:
            return _END_OF_INPUT
        # The first one only passes the line on.
        return _END_OF_INPUT + _END_OF_INPUT

    def _send(self) -> None:
        """Send what is accepted now, and the rest later."""
        if self._file.closed:
            self.close()
            return
        try:
            sent = os.write(self._file.fileno(), self._unsent[:_PIECE_BYTES])
        except BlockingIOError:
            sent = 0
        except OSError:
            # Nobody reads it any more.
            self.close()
            return
        del self._unsent[:sent]
        if len(self._unsent) <= _FEW_UNSENT_BYTES:
            self._few_left.set()
        if self._unsent:
            self._loop.add_writer(self._file.fileno(), self._send)
            return
        self._loop.remove_writer(self._file.fileno())
        if self._is_ended and not self._is_terminal:
            self.close()


class StreamedProcess:
    """A program that runs, or has exited.

    Attributes:
        stdout: what it prints.
        stderr: its errors; None if it has a terminal, where they are part of `stdout`.
        stdin: its input; None if that is empty.
        exited: set when it has exited. Its output may not have been read by then.
        exit_code: 128 + n after signal n; None until it has exited.
    """

    def __init__(
        self,
        child: Child,
        stdout: StreamedOutput,
        stderr: StreamedOutput | None,
        stdin: StreamedInput | None,
        terminal: int | None = None,
    ) -> None:
        """Take over a child.

        Args:
            terminal: its end of the terminal. Reading our end would fail while nobody has it open.
        """
        self.stdout = stdout
        self.stderr = stderr
        self.stdin = stdin
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self.child = child
        self._terminal = terminal
        child.call_at_exit(self._has_exited)

    @property
    def has_terminal(self) -> bool:
        return self.stderr is None

    @property
    def is_output_held(self) -> bool:
        """True while a process, which the program may have left behind, may write to its output."""
        outputs = (self.stdout, self.stderr)
        return any(output is not None and output.is_held for output in outputs)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size. Does nothing if the program has exited."""
        if self._terminal is not None:
            termios.tcsetwinsize(self._terminal, (rows, columns))

    def kill(self) -> None:
        """Send SIGKILL to the program and all that it started, unless it has exited."""
        if not self.exited.is_set():
            self.child.kill()

    def close(self) -> None:
        """Close everything. The program must have been killed, or have exited."""
        self.stdout.close()
        if self.stderr is not None:
            self.stderr.close()
        if self.stdin is not None:
            self.stdin.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _has_exited(self) -> None:
        code = self.child.process.wait()
        if code < 0:
            code = _SIGNAL_EXIT_BASE - code
        self.exit_code = code
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None
        if self.stdin is not None:
            self.stdin.close()
        self.stdout.exited()
        if self.stderr is not None:
            self.stderr.exited()
        self.exited.set()


class StreamedProcesses:
    """Starts programs, and ends them with `aclose`, or by a `Guardian` if we are killed."""

    def __init__(self) -> None:
        self._guardian = Guardian()
        self._started: set[StreamedProcess] = set()
        """The programs that may not be gone, or that may have left processes behind."""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        has_input: bool = False,
        size: tuple[int, int] | None = None,
    ) -> StreamedProcess:
        """Start a program in the running loop. Raises as `Guardian.spawn`.

        Args:
            has_input: False: its input is empty, unless it has a terminal.
            size: the columns and rows of the terminal that it gets; None for no terminal.
        """
        if size is None:
            process = self._piped(argv, cwd, environment, has_input=has_input)
        else:
            process = self._in_terminal(argv, cwd, environment, size)
        self._started.add(process)
        return process

    def prune(self) -> None:
        """Forget the programs of which nothing is left."""
        self._started = {
            process
            for process in self._started
            if not process.exited.is_set()
            or self._guardian.reaped(process.child)
            or process.is_output_held
        }

    async def aclose(self) -> None:
        """Kill every program and all that it started."""
        for process in self._started:
            process.kill()
        self._guardian.kill_all()
        try:
            async with asyncio.timeout(_KILL_WAIT_S):
                for process in self._started:
                    await process.exited.wait()
        except TimeoutError:
            # A process that waits in the kernel dies late.
            pass
        finally:
            for process in self._started:
                process.close()
            self._started.clear()
            self._guardian.close()

    def _piped(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        has_input: bool,
    ) -> StreamedProcess:
        if has_input:
            stdin = subprocess.PIPE
        else:
            stdin = subprocess.DEVNULL
        child = self._guardian.spawn(
            argv,
            cwd=cwd,
            environment=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started = child.process
        assert started.stdout is not None
        assert started.stderr is not None
        written = None
        if started.stdin is not None:
            written = StreamedInput(started.stdin, is_terminal=False)
        stdout = StreamedOutput(started.stdout)
        stderr = StreamedOutput(started.stderr)
        return StreamedProcess(child, stdout, stderr, written)

    def _in_terminal(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> StreamedProcess:
        ours, theirs = open_terminal(*size)
        try:
            child = self._guardian.spawn(
                attached(argv, theirs),
                cwd=cwd,
                environment=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except BaseException:
            os.close(ours)
            os.close(theirs)
            raise
        written = os.fdopen(os.dup(ours), "wb", buffering=0)
        stdin = StreamedInput(written, is_terminal=True)
        stdout = StreamedOutput(os.fdopen(ours, "rb", buffering=0))
        return StreamedProcess(child, stdout, None, stdin, theirs)
