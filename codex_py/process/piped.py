"""Programs that are used over their standard input and output, and that do not outlive the agent."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from codex_py.process.child import is_set_within
from codex_py.process.grace import OutputGrace
from codex_py.process.guardian import Guardian
from codex_py.process.output import HeadTailBuffer

_STDERR_BYTES = 16 * 1024
# The time that a server gets to save its state when its input is closed, and again after SIGTERM.
_CLOSE_GRACE_S = 0.2
_TERM_GRACE_S = 0.2
_KILL_WAIT_S = 1.0
_READ_BYTES = 64 * 1024
_READS = 16


class PipedProcess:
    """A program that is used over its standard input and output.

    `exited` is set when it has exited, its output was read, and the processes that it left behind
    were killed.

    If these hold its output, they get a moment to finish first; see `OutputGrace`.
    """

    def __init__(
        self,
        guardian: Guardian,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        joins_errors: bool = False,
    ) -> None:
        """Start it in the running loop; raises as `Guardian.spawn`.

        `joins_errors`: what it writes to stderr is part of its stdout, in the order in which it was written.
        """
        pipe = subprocess.PIPE
        child = guardian.spawn(
            argv,
            cwd=cwd,
            environment=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.STDOUT if joins_errors else pipe,
        )
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        """None until it has exited; negative after a signal."""
        self._child = child
        self._guardian = guardian
        self._input: IO[bytes] | asyncio.StreamWriter = child.process.stdin
        self._output: IO[bytes] | asyncio.BaseTransport = child.process.stdout
        self._errors = child.process.stderr or _ended_pipe()
        self._stderr = bytearray()
        self._has_exited = False
        # Nobody wants to read it until `streams` is called.
        self._is_output_read = True
        self._grace: OutputGrace | None = None
        self._loop = asyncio.get_running_loop()
        os.set_blocking(self._errors.fileno(), False)
        self._loop.add_reader(self._errors.fileno(), self._read_stderr)
        child.call_at_exit(self._exited)

    async def streams(
        self, *, max_line_bytes: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the standard output and input of the program. Call this once.

        The output buffers at most `2 * max_line_bytes`.
        """
        self._is_output_read = False
        reader = asyncio.StreamReader(limit=max_line_bytes)
        self._output, _ = await self._loop.connect_read_pipe(
            lambda: _OutputProtocol(reader, self._came, self._output_ended),
            self._output,
        )
        # A writer needs a protocol, which needs a reader, although nothing is read from stdin.
        unused = asyncio.StreamReader()
        transport, protocol = await self._loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unused), self._input
        )
        self._input = asyncio.StreamWriter(transport, protocol, unused, self._loop)
        return reader, self._input

    def stderr_tail(self) -> str:
        """The last 16 KB that it wrote to stderr."""
        return self._stderr.decode(errors="replace")

    async def stop(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL for it and all that it started.

        It has exited afterwards, also if this is cancelled.
        """
        try:
            self._input.close()
            if not await is_set_within(self.exited, _CLOSE_GRACE_S):
                self._child.send_signal(signal.SIGTERM)
                await is_set_within(self.exited, _TERM_GRACE_S)
        finally:
            if not self.exited.is_set():
                self._child.kill()
            try:
                await is_set_within(self.exited, _KILL_WAIT_S)
            finally:
                self._input.close()
                self._output.close()
                self._close_stderr()

    def _exited(self) -> None:
        self._read_stderr()
        self._has_exited = True
        self._grace = OutputGrace(self._end)
        self._end_if_read()

    def _output_ended(self) -> None:
        self._is_output_read = True
        self._end_if_read()

    def _end_if_read(self) -> None:
        """End the waiting if no process can write any more."""
        if self._has_exited and self._is_output_read and self._errors.closed:
            self._end()

    def _end(self) -> None:
        if self.exited.is_set():
            return
        if self._grace is not None:
            self._grace.cancel()
        # Its output does not end while a process that it started holds it.
        self._child.kill()
        self.exit_code = self._child.process.wait()
        self.exited.set()
        self._guardian.forget(self._child)

    def _came(self) -> None:
        if self._grace is not None:
            self._grace.extend()

    def _read_stderr(self) -> None:
        # A limited number of times: somebody may write faster than we read.
        for _ in range(_READS):
            if self._errors.closed:
                return
            data = self._errors.read(_READ_BYTES)
            if data is None:
                # Nothing is there now.
                return
            if not data:
                self._close_stderr()
                self._end_if_read()
                return
            self._came()
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]

    def _close_stderr(self) -> None:
        if not self._errors.closed:
            self._loop.remove_reader(self._errors.fileno())
            self._errors.close()


def _ended_pipe() -> IO[bytes]:
    """A pipe that nobody writes to: reading it ends at once."""
    reading, writing = os.pipe()
    os.close(writing)
    return os.fdopen(reading, "rb", buffering=0)


class _OutputProtocol(asyncio.StreamReaderProtocol):
    """Tells when some output has come, and when it has ended."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        came: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(reader)
        self._came = came
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._came()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ended()


class ProgramRunner:
    """Runs programs to their end, bounded in time and output."""

    def __init__(self) -> None:
        self._guardian = Guardian()
        """Kills the running programs if this program is killed."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: bytes,
        timeout_s: float,
        max_output_bytes: int,
        joins_errors: bool = False,
    ) -> tuple[int | None, str, str]:
        """Run a program; returns its exit code (None after the time-out), standard output and
        standard error.

        Nothing is left running.

        `joins_errors`: see `PipedProcess`.

        Raises:
            OSError, ValueError: the program cannot be started.
        """
        stdout = HeadTailBuffer(max_output_bytes)
        exit_code = None
        process = PipedProcess(
            self._guardian,
            argv,
            cwd=cwd,
            environment=environment,
            joins_errors=joins_errors,
        )
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await process.streams(max_line_bytes=_READ_BYTES)
                # Sent in the background, so that a program may exit without reading it.
                writer.write(stdin)
                writer.write_eof()
                while data := await reader.read(_READ_BYTES):
                    stdout.append(data)
                await process.exited.wait()
            exit_code = process.exit_code
        except TimeoutError:
            pass
        finally:
            await process.stop()
        return exit_code, stdout.text(), process.stderr_tail()

    def kill(self) -> None:
        """SIGKILL the running programs, and all that they started."""
        self._guardian.kill_all()

    def close(self) -> None:
        self._guardian.close()
