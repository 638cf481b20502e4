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
from pydantic import BaseModel, ValidationError

from codex_py.mcp.connection import McpSession, OnProgress, ServerConnection
from codex_py.protocol.mcp import Elicitation, RequestFailed, ServerAbout
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
                text = "closed the connection"
                raise RequestFailed(text, "ConnectionLost") from error
            reason = _without_report(error.message)
            raise RequestFailed(f"refused the handshake: {reason}") from error
        # The SDK raises a `RuntimeError` for a version of the protocol that it does not know.
        except (ValidationError, RuntimeError) as error:
            text = f"is no MCP server that we know: {_brief(error)}"
            raise RequestFailed(text) from error
        software = f"{greeting.server_info.name} {greeting.server_info.version}"
        yield McpSession(
            software.strip(),
            ServerAbout(
                _as_sent(greeting.server_info), _as_sent(greeting.capabilities)
            ),
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
    """Send one request; see `McpSession.send`. A loss is reported to `connection`."""
    options: CallOptions = {}
    if on_progress is not None:

        async def report(
            progress: float, total: float | None, message: str | None
        ) -> None:
            on_progress(progress, total, message)

        options["on_progress"] = report
    try:
        result = await dispatcher.send_raw_request(method, params, options)
        return finite(result)
    except MCPError as error:
        if _is_lost(error):
            connection.lose()
            raise RequestFailed(error.message, "ConnectionLost") from error
        text = _without_report(error.message)[:_MAX_ERROR_CHARS]
        if connection.is_session_forgotten(error.code, text):
            connection.lose()
            raise RequestFailed(text, "SessionLost") from error
        failure = RequestFailed(f"Mcp error: {error.code}: {text}")
        failure.answer = (error.code, text)
        raise failure from error


def _client_session(
    server: str, dispatcher: JSONRPCDispatcher, connection: ServerConnection
) -> ClientSession:
    """The SDK's session, with our answers to the server's requests and notifications."""

    async def ask_user(
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
        content = None
        if answer.content is not None:
            content = dict(answer.content)
        return types.ElicitResult(action=answer.action, content=content)

    async def take_notification(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            connection.has_new_tools = True

    return ClientSession(
        dispatcher=dispatcher,
        elicitation_callback=ask_user,
        message_handler=take_notification,
        # Some servers accept only known clients; they know Codex by this name.
        client_info=types.Implementation(
            name="codex-mcp-client", title="codex-py", version=__version__
        ),
    )


def _as_sent(model: BaseModel) -> dict[str, Any]:
    """A part of the server's answer to `initialize`, under the names of the specification."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _is_lost(error: MCPError) -> bool:
    # This text is the dispatcher's own. Servers use the same code for other errors too.
    is_own_text = error.message == "Connection closed"
    return is_own_text and error.code == types.CONNECTION_CLOSED


def _without_report(message: str) -> str:
    """Remove pydantic's long report on an answer that is not a message."""
    return _PYDANTIC_REPORT.sub("", message)


def _brief(error: Exception) -> str:
    """The error in one line: of a `ValidationError`, only the first problem."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}"
    return str(error)


def finite(value: Any) -> Any:
    """Copy a JSON value, with None for `NaN` and `Infinity`, which JSON does not have."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text, parse_constant=lambda _: None)
