"""Connects to a server that is a process. Each message is JSON on one line.

The SDK's own transport would start the process itself. This program starts it long before the SDK
is loaded, in a process group that it kills. Source: MCP specification 2025-11-25, Transports,
stdio.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn, cast

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage

from codex_py.mcp.connection import McpSession, ServerConnection
from codex_py.mcp.session import open_session
from codex_py.mcp.settings import ServerProcess
from codex_py.protocol.messages import decode_json
from codex_py.streams.messages import MAX_MESSAGE_BYTES, LongLine, read_line, skip_line

_SHOWN_CHARS = 200
_ID = re.compile(rb'\s*\{[^{}\[\]]*"id"\s*:\s*(\d{1,18})\s*[,}]')
"""Finds the id of an answer that cannot be parsed, if the id comes before the result."""
_MAX_OPEN_REQUESTS = 1_000
"""Limit on open requests from the other side: each takes memory until its answer is written."""


@asynccontextmanager
async def connect(
    server: str, process: ServerProcess, connection: ServerConnection
) -> AsyncGenerator[McpSession]:
    """Open a session with a process; see `codex_py.mcp.sdk.Connect`.

    The owner of the process stops it.
    """
    reader, writer = await process.streams(max_line_bytes=MAX_MESSAGE_BYTES)
    incoming = IncomingMessages(reader, connection.stray_output, connection.lose)
    dispatcher = JSONRPCDispatcher(incoming, OutgoingMessages(writer, incoming))
    async with open_session(server, dispatcher, connection) as session:
        yield session


class IncomingMessages(ObjectReceiveStream[SessionMessage]):
    """The messages from the other side.

    Args:
        on_noise: takes every line that is not a message, cut to 200 characters.
        on_end: is called at the end of the stream, with the reason, or with None if the process
            only closed its output.
        on_long: is called when a message of more than 32 MB was skipped, with its id if the id is
            at its beginning. If None, such a message ends the stream.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        on_noise: Callable[[str], None],
        on_end: Callable[[str | None], None],
        on_long: Callable[[int | None], None] | None = None,
    ) -> None:
        self._reader = reader
        self._on_noise = on_noise
        self._on_end = on_end
        self._on_long = on_long
        self._open_requests = 0

    async def receive(self) -> SessionMessage:
        """Wait for the next message. Raises an `EndOfStream` after the last one."""
        while True:
            try:
                line = await read_line(self._reader)
            except LongLine as long:
                await self._skip(long)
                continue
            if not line:
                self._end(None)
            item = None
            if line.strip():
                item = self._message(line)
            if item is not None:
                self._count(item)
                return item

    async def _skip(self, long: LongLine) -> None:
        if self._on_long is None:
            self._end(f"sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB")
        await skip_line(self._reader)
        self._on_long(_id_of(long.start[:_SHOWN_CHARS]))

    def _end(self, reason: str | None) -> NoReturn:
        self._on_end(reason)
        raise anyio.EndOfStream

    def _count(self, item: SessionMessage) -> None:
        """Count the open requests. Ends the stream if they are too many."""
        match item.message:
            case types.JSONRPCRequest():
                self._open_requests += 1
            case types.JSONRPCNotification(method="notifications/cancelled"):
                self.answered()
            case _:
                pass
        if self._open_requests > _MAX_OPEN_REQUESTS:
            self._end(f"asked more than {_MAX_OPEN_REQUESTS} things at once")

    def answered(self) -> None:
        """Note that a request from the other side was answered or cancelled."""
        self._open_requests = max(0, self._open_requests - 1)

    def _message(self, line: bytes) -> SessionMessage | None:
        """Parse a line, or repair it. None for a line that is not a message."""
        adapter = types.jsonrpc_message_adapter
        try:
            return SessionMessage(adapter.validate_json(line, by_name=False))
        except ValueError:
            answer = salvaged_answer(line)
        if answer is not None:
            return SessionMessage(answer)
        # The line is a banner or a stray print. The protocol forbids them, and many servers write
        # them.
        text = line.decode(errors="replace").strip()
        self._on_noise(text[:_SHOWN_CHARS])
        return None

    async def aclose(self) -> None:
        """Do nothing: the owner of the process stops it."""


class OutgoingMessages(ObjectSendStream[SessionMessage]):
    """The messages to the other side."""

    def __init__(
        self, writer: asyncio.StreamWriter, incoming: IncomingMessages
    ) -> None:
        self._writer = writer
        self._incoming = incoming

    async def send(self, item: SessionMessage) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            # A RuntimeError means that we have closed the writer.
            raise anyio.BrokenResourceError from error
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._incoming.answered()

    async def aclose(self) -> None:
        """Do nothing: the owner of the process stops it."""


def salvaged_answer(line: bytes) -> types.JSONRPCResponse | types.JSONRPCError | None:
    """Repair an answer that the SDK cannot read: not Unicode, or without a valid result.

    Without an answer, the request would wait for its whole time limit. Returns None if the line is
    not an answer.
    """
    try:
        message: Any = decode_json(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return _answer_to_damaged(line)
    if not isinstance(message, dict) or "method" in message:
        return None
    answer = cast("dict[str, Any]", message)
    if "result" not in answer and "error" not in answer:
        return None
    request_id = answer.get("id")
    if not isinstance(request_id, int | str):
        return None
    result = answer.get("result")
    if not isinstance(result, dict):
        return _invalid_answer(request_id, line)
    fields = cast("dict[str, Any]", result)
    return types.JSONRPCResponse(jsonrpc="2.0", id=request_id, result=fields)


def _answer_to_damaged(line: bytes) -> types.JSONRPCError | None:
    """An error for the request that a line of damaged JSON answers; None if it answers none."""
    if not line.endswith(b"\n"):
        # The line was cut off, so the connection has ended: nobody waits for an answer.
        return None
    if b'"jsonrpc"' not in line:
        return None
    request_id = _id_of(line)
    if request_id is None:
        return None
    return _invalid_answer(request_id, line)


def _id_of(start: bytes) -> int | None:
    """The id near the start of a message that cannot be parsed."""
    found = _ID.match(start)
    if found is None:
        return None
    return int(found[1])


def _invalid_answer(request_id: int | str, line: bytes) -> types.JSONRPCError:
    text = line[: 4 * _SHOWN_CHARS].decode(errors="replace")
    shown = text.strip()[:_SHOWN_CHARS]
    error = types.ErrorData(
        code=types.INTERNAL_ERROR,
        message=f"the server's answer is no valid one: {shown!r}",
    )
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
