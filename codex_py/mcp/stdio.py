"""Connects to a server that is a process: one JSON message a line.

The SDK's own transport starts the process itself. Ours is started long before the SDK is loaded, in a process
group that we kill. Source: MCP specification 2025-11-25, Transports, stdio.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from codex_py.mcp.connection import ServerConnection, Session
from codex_py.mcp.messages import salvaged_answer
from codex_py.mcp.session import open_session
from codex_py.mcp.settings import ServerProcess

_MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_SHOWN_CHARS = 200
_MAX_OPEN_REQUESTS = 1_000
"""From the other side. Each takes memory until its answer is written."""


@asynccontextmanager
async def connect(
    server: str, process: ServerProcess, connection: ServerConnection
) -> AsyncGenerator[Session]:
    """Open a session with a process, which its owner stops; see `codex_py.mcp.sdk.Connect`."""
    reader, writer = await process.streams(max_line_bytes=_MAX_MESSAGE_BYTES)
    open_requests = OpenRequests()
    dispatcher = JSONRPCDispatcher(
        IncomingMessages(reader, open_requests, connection.stray_output, connection.lose),
        OutgoingMessages(writer, open_requests),
    )
    async with open_session(server, dispatcher, connection) as session:
        yield session


class OpenRequests:
    """Counts the requests from the other side that have no answer yet."""

    def __init__(self) -> None:
        self.count = 0

    def received(self, item: SessionMessage) -> None:
        match item.message:
            case JSONRPCRequest():
                self.count += 1
            case JSONRPCNotification(method="notifications/cancelled"):
                # The cancelled request gets no answer.
                self.count = max(0, self.count - 1)
            case _:
                pass

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self.count = max(0, self.count - 1)


class IncomingMessages(ObjectReceiveStream[SessionMessage]):
    """The messages that the other side writes.

    Args:
        on_noise: gets every line that is no message, cut to 200 characters.
        on_end: called when nothing more will come; gets the reason unless the process's exit says it.
    """

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
                # The start of the next message cannot be found.
                self._on_end(f"sent a message of more than {_MAX_MESSAGE_BYTES >> 20} MB")
                line = b""
            if not line:
                raise anyio.EndOfStream
            if not line.strip():
                continue
            item = self._message(line)
            if item is None:
                continue
            self._open_requests.received(item)
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

    async def aclose(self) -> None:
        """The process is stopped by its owner."""


class OutgoingMessages(ObjectSendStream[SessionMessage]):
    """The messages to the other side."""

    def __init__(self, writer: asyncio.StreamWriter, open_requests: OpenRequests) -> None:
        self._writer = writer
        self._open_requests = open_requests

    async def send(self, item: SessionMessage) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            # RuntimeError: it was closed, by us.
            raise anyio.BrokenResourceError from error
        self._open_requests.sent(item)

    async def aclose(self) -> None:
        """The process is stopped by its owner."""
