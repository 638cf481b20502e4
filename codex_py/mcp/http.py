"""Connects to a server at an address. Source: MCP specification 2025-11-25, Streamable HTTP."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from codex_py.mcp.connection import ServerConnection, Session
from codex_py.mcp.session import open_session
from codex_py.mcp.settings import HttpTransport
from codex_py.protocol.messages import decode_json, encode_json

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_EITHER_HEADER = 32
"""For zlib: that of gzip or its own."""
_CONNECT_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 3600.0
"""Between two parts of a response. Each request has a limit of its own."""


@asynccontextmanager
async def connect(
    server: str, transport: HttpTransport, connection: ServerConnection
) -> AsyncGenerator[Session]:
    """Open a session with a server at an address; see `codex_py.mcp.sdk.Connect`."""

    async def note_status(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            in_session = MCP_SESSION_ID in response.request.headers
            connection.answered(response.status_code, in_session)

    client = httpx2.AsyncClient(
        headers={"Accept-Encoding": "gzip, deflate", **transport.headers},
        timeout=httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        auth=transport.make_auth and transport.make_auth(connection.report_login),
        event_hooks={"response": [note_status, _bound]},
    )
    async with (
        client,
        streamable_http_client(
            transport.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as (read, write),
        open_session(server, JSONRPCDispatcher(read, write), connection) as session,
    ):
        yield session


async def _bound(response: httpx2.Response) -> None:
    """Bound a response that is a single message; the SDK bounds those that are streams."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # The client would unpack it without a bound.
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = _BoundedStream(response.stream, encoding)


class _BoundedStream(httpx2.AsyncByteStream):
    """One message, as a single chunk."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
        self._stream = stream
        self._decompressor = None
        if encoding in {"gzip", "x-gzip", "deflate"}:
            self._decompressor = zlib.decompressobj(zlib.MAX_WBITS | _EITHER_HEADER)
        elif encoding not in {"identity", ""}:
            text = f"the server answered in {encoding!r}, which was not asked for"
            raise httpx2.DecodingError(text)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        message = bytearray()
        try:
            async for chunk in self._stream:
                room = MAX_MESSAGE_BYTES + 1 - len(message)
                unpack = self._decompressor and self._decompressor.decompress
                message += unpack(chunk, room) if unpack else chunk
                if len(message) > MAX_MESSAGE_BYTES:
                    raise httpx2.ReadError(
                        f"the server sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB"
                    )
        except zlib.error as error:
            text = f"the server's answer cannot be unpacked: {error}"
            raise httpx2.DecodingError(text) from error
        yield _in_unicode(bytes(message))

    async def aclose(self) -> None:
        await self._stream.aclose()


def _in_unicode(message: bytes) -> bytes:
    """The JSON without lone surrogates, because the SDK refuses a message that has one."""
    if b"\\ud" not in message.lower():
        return message
    try:
        return encode_json(decode_json(message))
    except (ValueError, RecursionError):
        return message
