"""Standard input and output as streams of the SDK: one JSON message a line, and nothing else."""

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from codex_py.errors import CodexError
from codex_py.frontends.streams import OutputStream
from codex_py.mcp.stdio import IncomingMessages, OutgoingMessages

_MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_FLUSH_TIMEOUT_S = 1.0
_STDERR_TIMEOUT_S = 0.5


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[
    tuple[IncomingMessages, OutgoingMessages, asyncio.StreamWriter]
]:
    """The messages from the client, those to it, and the writer of the latter.

    From now on descriptor 0 is empty and descriptor 1 is standard error, so that neither a stray print
    nor a child process disturbs the messages. They end when the client leaves, or stops reading.
    """
    stdin, stdout = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    try:
        writer = await _writer(stdout)
        reader, reading = await _reader(stdin)
        leaving = asyncio.create_task(_end(reading, writer))
        try:
            incoming = IncomingMessages(reader, _skipped, _ended)
            yield incoming, OutgoingMessages(writer, incoming), writer
        finally:
            writer.close()
            # Let the last answer arrive, if anybody reads it.
            await asyncio.wait([leaving], timeout=_FLUSH_TIMEOUT_S)
            leaving.cancel()
    finally:
        for fd in (stdin, stdout):
            # The shell shares it, if it is a terminal.
            if os.isatty(fd):
                os.set_blocking(fd, True)


async def _reader(fd: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport | None]:
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE_BYTES)
    file = os.fdopen(fd, "rb", 0)
    if not _is_pipe(fd):
        reader.feed_data(file.read(_MAX_MESSAGE_BYTES))
        reader.feed_eof()
        return reader, None
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return reader, transport


async def _writer(fd: int) -> asyncio.StreamWriter:
    if not _is_pipe(fd):
        raise CodexError(
            "mcp-server speaks to a program: its stdout has to be a pipe", code="stdout"
        )
    loop = asyncio.get_running_loop()
    # A writer needs a protocol, which comes with a reader; nothing is read from it.
    unused = asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused), os.fdopen(fd, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, unused, loop)


async def _end(reading: asyncio.BaseTransport | None, writer: asyncio.StreamWriter) -> None:
    """End the messages from the client once the pipe to it is closed."""
    with suppress(OSError):
        await writer.wait_closed()
    if reading is not None:
        reading.close()


def _is_pipe(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


def _skipped(text: str) -> None:
    _tell(f"skipped what is no message: {text!r}")


def _ended(because: str | None) -> None:
    if because is not None:
        _tell(f"the client {because}")


def _tell(text: str) -> None:
    OutputStream(2, timeout_s=_STDERR_TIMEOUT_S).write_text(f"{text}\n")
