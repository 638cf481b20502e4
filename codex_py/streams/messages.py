"""Connects standard input and output to one client, with one message on each line."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from codex_py.errors import CodexError
from codex_py.streams.standard import is_pipe

MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""The limit for a line from a client or a server."""
_TAIL_BYTES: Final = 200
_FLUSH_TIMEOUT_S = 1.0
"""The time for the client to read the last messages."""


class LongLine(Exception):
    """A line is longer than the reader's limit. `skip_line` reads the rest of it.

    Attributes:
        start: the part that was read.
    """

    def __init__(self, start: bytes) -> None:
        super().__init__()
        self.start = start


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Read a line with its newline, which the last line may lack. Empty at the end of the input.

    Raises:
        LongLine: the line is too long. A part of it was read.
    """
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        start = await reader.readexactly(error.consumed)
        raise LongLine(start) from None


async def skip_line(reader: asyncio.StreamReader) -> bytes:
    """Skip the rest of a line. Returns at least its last 200 bytes, or all if it has fewer."""
    before = b""
    while True:
        try:
            last = await read_line(reader)
        except LongLine as long:
            before = long.start[-_TAIL_BYTES:]
            continue
        return before + last


@asynccontextmanager
async def standard_pipes(
    command: str,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a reader of the client's messages and a writer to the client. Both end when the client
    leaves, or stops reading.

    From now on descriptor 0 is empty and descriptor 1 is standard error, so that neither a stray
    print nor a child process disturbs the messages.

    Args:
        command: the name of the subcommand, for the message.

    Raises:
        CodexError: standard output is neither a pipe nor a terminal.
    """
    stdin = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    stdout = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    try:
        writer = await _writer(stdout, command)
        reader, reading = await _reader(stdin)
        leaving = asyncio.create_task(_end(reading, writer))
        try:
            yield reader, writer
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
    """Open the reader, and the transport that feeds it; None for a file, which is read at once."""
    reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
    file = os.fdopen(fd, "rb", 0)
    if not _can_be_awaited(fd):
        reader.feed_data(file.read(MAX_MESSAGE_BYTES))
        reader.feed_eof()
        return reader, None
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, file)
    return reader, transport


async def _writer(fd: int, command: str) -> asyncio.StreamWriter:
    if not _can_be_awaited(fd):
        raise CodexError(
            f"{command} speaks to a program: its stdout has to be a pipe", code="stdout"
        )
    loop = asyncio.get_running_loop()
    # A writer needs a protocol, which comes with a reader; nothing is read from it.
    unused = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(unused)
    file = os.fdopen(fd, "wb", 0)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
    return asyncio.StreamWriter(transport, protocol, unused, loop)


def _can_be_awaited(fd: int) -> bool:
    """True if the event loop can wait for a descriptor. It cannot wait for a file."""
    return is_pipe(fd) or os.isatty(fd)


async def _end(
    reading: asyncio.BaseTransport | None, writer: asyncio.StreamWriter
) -> None:
    """Stop reading the client's messages once the pipe to the client is closed."""
    with suppress(OSError):
        await writer.wait_closed()
    if reading is not None:
        reading.close()
