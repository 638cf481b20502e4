"""Standard input and output as a connection to one client that sends a message a line."""

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
_FLUSH_TIMEOUT_S = 1.0


class LongLine(Exception):
    """A line is longer than the reader's limit; `skip_line` gets past it."""

    def __init__(self, start: bytes) -> None:
        super().__init__()
        self.start = start


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """The next line with its newline, which the last line may lack; empty at the end of the input.

    Raises:
        LongLine: it is too long. The part that was read is gone from the reader.
    """
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        raise LongLine(await reader.readexactly(error.consumed)) from None


async def skip_line(reader: asyncio.StreamReader) -> None:
    """Skip the rest of a line."""
    while True:
        try:
            await read_line(reader)
        except LongLine:
            continue
        return


@asynccontextmanager
async def standard_pipes(
    command: str,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A reader for the client's messages, and a writer to the client. Both end when it leaves, or
    stops reading.

    From now on descriptor 0 is empty and descriptor 1 is standard error, so that neither a stray print nor a child
    process disturbs the messages.

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
    reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
    file = os.fdopen(fd, "rb", 0)
    if not (is_pipe(fd) or os.isatty(fd)):
        reader.feed_data(file.read(MAX_MESSAGE_BYTES))
        reader.feed_eof()
        return reader, None
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return reader, transport


async def _writer(fd: int, command: str) -> asyncio.StreamWriter:
    if not (is_pipe(fd) or os.isatty(fd)):
        raise CodexError(
            f"{command} speaks to a program: its stdout has to be a pipe", code="stdout"
        )
    loop = asyncio.get_running_loop()
    # A writer needs a protocol, which comes with a reader; nothing is read from it.
    unused = asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused), os.fdopen(fd, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, unused, loop)


async def _end(
    reading: asyncio.BaseTransport | None, writer: asyncio.StreamWriter
) -> None:
    """End the messages from the client once the pipe to it is closed."""
    with suppress(OSError):
        await writer.wait_closed()
    if reading is not None:
        reading.close()
