"""The streams of a server at an address. Source: MCP specification 2025-11-25, Streamable HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from codex_py.mcp.settings import HttpTransport

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_CONNECT_TIMEOUT_S = 30.0
# Between two pieces of a response. The requests have limits of their own.
_READ_TIMEOUT_S = 3600.0


@asynccontextmanager
async def http_streams(
    transport: HttpTransport,
    on_status: Callable[[int, bool], None],
    on_login_problem: Callable[[str | None], None],
) -> AsyncGenerator[TransportStreams]:
    """Open the transport of the SDK.

    `on_status` is told the status of every answer to a POST, and whether that was part of a session.
    Where an exchange fails, leaving the context raises why, in an exception group.
    """

    async def note_status(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            on_status(response.status_code, MCP_SESSION_ID in response.request.headers)

    client = httpx2.AsyncClient(
        headers=dict(transport.headers),
        timeout=httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        auth=transport.make_auth and transport.make_auth(on_login_problem),
        event_hooks={"response": [note_status, _bound]},
    )
    async with (
        client,
        streamable_http_client(
            transport.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


async def _bound(response: httpx2.Response) -> None:
    """Have a response fail that is one message and too long; the SDK bounds those that are streams."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_MESSAGE_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(
                    f"the server sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
