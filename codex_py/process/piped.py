"""Programs that are used over their standard input and output, and that do not outlive the agent."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.process.group import ProcessGroup
from codex_py.process.guardian import Guardian
from codex_py.process.marker import Marker, kill_marked
from codex_py.process.reaper import call_at_exit
from codex_py.process.signals import default_keyboard_signals

_STDERR_BYTES = 16 * 1024
# The time that a server gets to save its state when its input is closed, and again after SIGTERM.
_CLOSE_GRACE_S = 0.2
_TERM_GRACE_S = 0.2
_KILL_WAIT_S = 1.0


class PipedProcess:
    """A program that leads a session and a process group of its own.

    `exited` is set when it has exited, its stderr was read, and the processes that it left behind were killed.
    """

    def __init__(
        self, child: subprocess.Popen[bytes], mark: str, on_exit: Callable[["PipedProcess"], None]
    ) -> None:
        self.group = ProcessGroup(child)
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        """Negative after a signal."""
        self._child = child
        self._mark = mark
        self._on_exit = on_exit
        self._stderr = bytearray()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.BaseTransport | None = None
        self._loop = asyncio.get_running_loop()
        assert child.stderr is not None
        os.set_blocking(child.stderr.fileno(), False)
        self._loop.add_reader(child.stderr.fileno(), self._read_stderr)
        call_at_exit(child, self._exited)

    async def streams(
        self, *, max_line_bytes: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Its stdout, of which at most `2 * max_line_bytes` are buffered, and its stdin. Called once."""
        assert self._child.stdout is not None
        assert self._child.stdin is not None
        reader = asyncio.StreamReader(limit=max_line_bytes)
        self._reading, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._child.stdout
        )
        # A writer needs a protocol, which needs a reader, although nothing is read from stdin.
        unused = asyncio.StreamReader()
        transport, protocol = await self._loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unused), self._child.stdin
        )
        self._writer = asyncio.StreamWriter(transport, protocol, unused, self._loop)
        return reader, self._writer

    def stderr_tail(self) -> str:
        """The last 16 KB that it wrote to stderr."""
        return self._stderr.decode(errors="replace")

    async def stop(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL for it and all that it started.

        It has exited afterwards, also if this is cancelled.
        """
        try:
            self._close_input()
            if not await self._wait(_CLOSE_GRACE_S):
                self.group.send_signal(signal.SIGTERM)
                await self._wait(_TERM_GRACE_S)
        finally:
            self._kill()
            try:
                await self._wait(_KILL_WAIT_S)
            finally:
                self._close()

    async def _wait(self, timeout_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.exited.wait()
        return self.exited.is_set()

    def _kill(self) -> None:
        self.group.send_signal(signal.SIGKILL)
        kill_marked(self._mark)

    def _exited(self) -> None:
        self._read_stderr()
        # Its output does not end while a process that it started holds it.
        self._kill()
        self.exit_code = self._child.wait()
        self.exited.set()
        self._on_exit(self)

    def _read_stderr(self) -> None:
        assert self._child.stderr is not None
        if self._child.stderr.closed:
            return
        with suppress(BlockingIOError):
            while data := os.read(self._child.stderr.fileno(), 65536):
                self._stderr += data
                del self._stderr[:-_STDERR_BYTES]
            self._loop.remove_reader(self._child.stderr.fileno())
            self._child.stderr.close()

    def _close_input(self) -> None:
        if self._writer is not None:
            self._writer.close()
        elif self._child.stdin is not None:
            self._child.stdin.close()

    def _close(self) -> None:
        self._close_input()
        if self._reading is not None:
            self._reading.close()
        elif self._child.stdout is not None:
            self._child.stdout.close()
        if self._child.stderr is not None and not self._child.stderr.closed:
            self._loop.remove_reader(self._child.stderr.fileno())
            self._child.stderr.close()


class PipedProcesses:
    """Starts such programs. A `Guardian` kills them if the agent is killed."""

    def __init__(self) -> None:
        self._marker = Marker()
        self._guardian = Guardian(self._marker.prefix)

    def spawn(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
    ) -> PipedProcess:
        """Start one in the running loop.

        Raises:
            OSError: it cannot be started; if that is due to the directory, `filename` is `cwd`.
            ValueError: an argument has a NUL or a character that the file system's encoding lacks.
        """
        self._guardian.start()
        marked, mark = self._marker.mark(dict(environment))
        with default_keyboard_signals():
            child = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                cwd=cwd,
                env=marked,
            )
        process = PipedProcess(child, mark, lambda it: self._guardian.forget(it.group.id))
        self._guardian.watch(process.group.id)
        return process

    def close(self) -> None:
        """End the guardian. To be called when all processes were stopped."""
        self._guardian.close()
