"""Reads the messages of a client of the MCP server, and refuses invalid and early ones."""

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.shared.message import SessionMessage

from codex_py.mcp.stdio import IncomingMessages
from codex_py.protocol.messages import decode_json
from codex_py.streams.messages import MAX_MESSAGE_BYTES

_BEFORE_HANDSHAKE = frozenset({"initialize", "ping"})


class ClientMessages(IncomingMessages):
    """The stream of messages from the client.

    Args:
        tell: gets a line for the user about an invalid message, or why the client is gone.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tell: Callable[[str], None],
    ) -> None:
        def left(why: str | None) -> None:
            if why is not None:
                tell(f"the client {why}")

        super().__init__(
            reader,
            lambda text: tell(f"skipped a line that is not a message: {text!r}"),
            left,
            self._refuse_long,
        )
        self._writer = writer
        self._is_initialized = False
        """True: the client has sent `initialize`."""

    def _message(self, line: bytes) -> SessionMessage | None:
        item = super()._message(line)
        if item is None:
            # An unfinished last line means that the client left while it wrote.
            if line.endswith(b"\n"):
                self._refuse_unreadable(line)
            return None
        request = item.message
        if not isinstance(request, types.JSONRPCRequest) or self._is_initialized:
            return item
        if request.method not in _BEFORE_HANDSHAKE:
            text = "not initialized: send `initialize` first"
            self._refuse(request.id, types.INVALID_REQUEST, text)
            return None
        self._is_initialized = request.method == "initialize"
        return item

    def _refuse_unreadable(self, line: bytes) -> None:
        try:
            message = decode_json(line.decode())
        except (ValueError, RecursionError):
            self._refuse(None, types.PARSE_ERROR, "this is no JSON")
        else:
            text = "this is not a message of JSON-RPC"
            self._refuse(_request_id(message), types.INVALID_REQUEST, text)

    def _refuse_long(self, request_id: int | None) -> None:
        text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MB was skipped"
        self._refuse(request_id, types.INVALID_REQUEST, text)

    def _refuse(
        self,
        request_id: int | str | None,
        code: int,
        text: str,
    ) -> None:
        error = types.ErrorData(code=code, message=text)
        answer = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        data = answer.model_dump_json(by_alias=True, exclude_unset=True).encode()
        self._writer.write(data + b"\n")


def _request_id(message: Any) -> int | str | None:
    """The id under which the client waits for an answer; None if the message is no request or has no valid id."""
    match message:
        case {"method": _, "id": bool()}:
            return None
        case {"method": _, "id": int() | str() as request_id}:
            return request_id
        case _:
            return None
