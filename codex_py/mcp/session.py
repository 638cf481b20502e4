"""A session with a server, over the official SDK. Loaded by `codex_py.mcp.sdk`.

Requests go through the SDK's dispatcher, and results are the server's own JSON. The typed methods
of the SDK's session would drop the whole list if one tool is invalid, and the result of a call if
its structured part does not match the server's schema.
"""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from pydantic import ValidationError

from codex_py.mcp.connection import McpSession, OnProgress, ServerConnection
from codex_py.protocol.mcp import Elicitation, RequestFailed
from codex_py.version import __version__

_MAX_ERROR_CHARS = 10_000
_PYDANTIC_REPORT = re.compile(
    r": \d+ validation errors? for union\[JSONRPC.*", re.DOTALL
)


@asynccontextmanager
async def open_session(
    server: str, dispatcher: JSONRPCDispatcher, connection: ServerConnection
) -> AsyncGenerator[McpSession]:
    """Shake hands with a server. Roots and sampling are not offered, as in Codex.

    Raises:
        RequestFailed: the server refuses, or speaks another protocol.
    """
    async with _client_session(server, dispatcher, connection) as session:
        try:
            greeting = await session.initialize()
        except MCPError as error:
            if _is_lost(error):
                raise RequestFailed(
                    "closed the connection", "ConnectionLost"
                ) from error
            reason = _without_report(error.message)
            raise RequestFailed(f"refused the handshake: {reason}") from error
        except (ValidationError, RuntimeError) as error:
            raise RequestFailed(
                f"is no MCP server that we know: {_brief(error)}"
            ) from error
        yield McpSession(
            f"{greeting.server_info.name} {greeting.server_info.version}".strip(),
            greeting.protocol_version,
            has_tools=greeting.capabilities.tools is not None,
            has_resources=greeting.capabilities.resources is not None,
            send=partial(_send, dispatcher, connection),
        )


async def _send(
    dispatcher: JSONRPCDispatcher,
    connection: ServerConnection,
    method: str,
    params: Mapping[str, Any],
    on_progress: OnProgress | None,
) -> dict[str, Any]:
    async def report(
        progress: float,
        total: float | None,
        message: str | None,
    ) -> None:
        if on_progress is not None:
            on_progress(progress, total, message)

    options: CallOptions = {} if on_progress is None else {"on_progress": report}
    try:
        return finite(await dispatcher.send_raw_request(method, params, options))
    except MCPError as error:
        if _is_lost(error):
            connection.lose()
            raise RequestFailed(error.message, "ConnectionLost") from error
        text = _without_report(error.message)[:_MAX_ERROR_CHARS]
        if connection.is_session_forgotten(error.code, text):
            connection.lose()
            raise RequestFailed(text, "SessionLost") from error
        raise RequestFailed(f"Mcp error: {error.code}: {text}") from error


def _client_session(
    server: str, dispatcher: JSONRPCDispatcher, connection: ServerConnection
) -> ClientSession:
    async def elicited(
        context: ClientRequestContext,  # noqa: ARG001
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            question = Elicitation(server, params.message, url=params.url)
        else:
            question = Elicitation(
                server, params.message, schema=params.requested_schema
            )
        answer = await connection.elicit(question)
        if answer.content is None:
            content = None
        else:
            content = dict(answer.content)
        return types.ElicitResult(action=answer.action, content=content)

    async def notified(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            connection.has_new_tools = True

    return ClientSession(
        dispatcher=dispatcher,
        elicitation_callback=elicited,
        message_handler=notified,
        # Some servers accept only known clients; they know Codex by this name.
        client_info=types.Implementation(
            name="codex-mcp-client", title="codex-py", version=__version__
        ),
    )


def _is_lost(error: MCPError) -> bool:
    # This text is the dispatcher's own. Servers use the same code for other errors too.
    return (error.code, error.message) == (types.CONNECTION_CLOSED, "Connection closed")


def _without_report(message: str) -> str:
    """Remove pydantic's long report on an answer that is not a message."""
    return _PYDANTIC_REPORT.sub("", message)


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def finite(value: Any) -> Any:
    """The same JSON with None for `NaN` and `Infinity`, which JSON does not have."""
    return json.loads(
        json.dumps(value, ensure_ascii=False), parse_constant=lambda _: None
    )
