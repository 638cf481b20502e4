"""Connects to an MCP server at a URL. Source: MCP specification 2025-11-25, Streamable HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from codex_py.mcp.bounded import MAX_MESSAGE_BYTES, bounded_client
from codex_py.mcp.connection import McpSession, ServerConnection
from codex_py.mcp.session import open_session
from codex_py.mcp.settings import HttpTransport

_CONNECT_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 3600.0
"""The longest wait for the next part of a response. A whole request has another limit."""


@asynccontextmanager
async def connect(
    server: str, transport: HttpTransport, connection: ServerConnection
) -> AsyncGenerator[McpSession]:
    """Open a session with a server at a URL. The contract is that of `codex_py.mcp.sdk.Connect`."""

    async def note_status(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            in_session = MCP_SESSION_ID in response.request.headers
            connection.answered(response.status_code, in_session)

    auth = None
    if transport.make_auth is not None:
        auth = transport.make_auth(connection.report_login)
    client = bounded_client(
        httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        headers=transport.headers,
        auth=auth,
        on_response=note_status,
        streams_events=True,
    )
    async with (
        client,
        streamable_http_client(
            transport.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as (read, write),
        open_session(server, JSONRPCDispatcher(read, write), connection) as session,
    ):
        yield session
