"""The streams of a server that is a process: one JSON message a line.

The SDK has a transport of its own that starts the process itself; ours is started long before the SDK is
loaded, in a group that we kill. Source: MCP specification 2025-11-25, Transports, stdio.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from codex_py.mcp.messages import salvaged_answer
from codex_py.mcp.process import ServerProcess

_MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_SHOWN_CHARS = 200
_MAX_OPEN_REQUESTS = 1_000
"""Of the other side's. Each takes memory until its answer is written."""


@asynccontextmanager
async def stdio_streams(
    process: ServerProcess, *, on_noise: Callable[[str], None], on_end: Callable[[str | None], None]
) -> AsyncGenerator[TransportStreams]:
    """The streams of a process, which its owner stops.

    Args:
        on_noise: told of every line that is no message, cut to 200 characters.
        on_end: called when nothing more will come; told why where that is not for the process to say.
    """
    reader, writer = await process.streams(max_line_bytes=_MAX_MESSAGE_BYTES)
    open_requests = OpenRequests()
    yield (
        IncomingMessages(reader, open_requests, on_noise, on_end),
        OutgoingMessages(writer, open_requests),
    )


class OpenRequests:
    """How many requests of the other side have no answer yet."""

    def __init__(self) -> None:
        self.count = 0

    def came(self, item: SessionMessage) -> None:
        match item.message:
            case JSONRPCRequest():
                self.count += 1
            case JSONRPCNotification(method="notifications/cancelled"):
                # It gets no answer.
                self.count = max(0, self.count - 1)
            case _:
                pass

    def goes(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self.count = max(0, self.count - 1)


class IncomingMessages:
    """What a server writes to its stdout; the SDK's `ReadStream`."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        open_requests: OpenRequests,
        on_noise: Callable[[str], None],
        on_end: Callable[[str | None], None],
    ) -> None:
        self._reader = reader
        self._open_requests = open_requests
        self._on_noise = on_noise
        self._on_end = on_end

    async def receive(self) -> SessionMessage:
        while True:
            try:
                line = await self._reader.readline()
                if not line:
                    self._on_end(None)
            except ValueError:
                # Where the next one begins nobody knows.
                self._on_end(f"sent a message of more than {_MAX_MESSAGE_BYTES >> 20} MB")
                line = b""
            if not line:
                raise anyio.EndOfStream
            if not line.strip():
                continue
            item = self._message(line)
            if item is None:
                continue
            self._open_requests.came(item)
            if self._open_requests.count > _MAX_OPEN_REQUESTS:
                self._on_end(f"asked more than {_MAX_OPEN_REQUESTS} things at once")
                raise anyio.EndOfStream
            return item

    def _message(self, line: bytes) -> SessionMessage | None:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            answer = salvaged_answer(line)
        if answer is not None:
            return SessionMessage(answer)
        # A banner, or a stray print: the protocol forbids it and many servers do it.
        self._on_noise(line.decode(errors="replace").strip()[:_SHOWN_CHARS])
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """The process is stopped by its owner."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class OutgoingMessages:
    """What goes to a server's stdin; the SDK's `WriteStream`."""

    def __init__(self, writer: asyncio.StreamWriter, open_requests: OpenRequests) -> None:
        self._writer = writer
        self._open_requests = open_requests

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            # RuntimeError: it was closed, by us.
            raise anyio.BrokenResourceError from error
        self._open_requests.goes(item)

    async def aclose(self) -> None:
        """The process is stopped by its owner."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
