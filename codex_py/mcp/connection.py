"""One connection to a server, over the official SDK. Loaded by `codex_py.mcp.sdk`.

Requests go through the SDK's dispatcher, not through the typed methods of its session: those lose a whole
list for one odd tool, and the result of a call, which may have changed something, where its structured part
is not what the server's own schema promises. So results are the server's own JSON.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from pydantic import ValidationError

from codex_py import __version__
from codex_py.mcp.messages import finite
from codex_py.mcp.process import ServerProcess
from codex_py.mcp.request import OnProgress, RequestFailed
from codex_py.mcp.sdk_log import keep_sdk_quiet
from codex_py.mcp.settings import HttpTransport, Transport
from codex_py.mcp.stdio import stdio_streams
from codex_py.mcp.tools import ServerTool, server_tool
from codex_py.protocol.elicitation import Elicitation, ElicitationAnswer

MAX_TOOLS = 20_000
_MAX_ERROR_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what a server says unasked."""

    elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer]]
    tools_changed: Callable[[], None]
    lost: Callable[[str | None], None]
    """The connection has ended, and why, where that is not for the process to say. Called at least once."""
    noise: Callable[[str], None]
    """Something on stdout that is no message."""
    answered: Callable[[int], None]
    """A request came back with this HTTP status."""
    login_problem: Callable[[str | None], None]
    """Why the server turns us away, or None: it does not any more."""


class _Refusal:
    """How the latest POST of a session came back."""

    status: int | None = None
    """Of one that was refused."""

    def is_of_session(self, message: str) -> bool:
        """Whether the server has forgotten the session, and so has done nothing.

        It is to answer 404 then. Those made after the SDK's first examples answer 400, in these words.
        """
        if self.status == HTTPStatus.BAD_REQUEST:
            return re.search("session|not initialized", message, re.IGNORECASE) is not None
        return self.status == HTTPStatus.NOT_FOUND


class Connection:
    """A session that has been initialised."""

    def __init__(
        self,
        dispatcher: JSONRPCDispatcher,
        greeting: types.InitializeResult,
        lost: Callable[[str | None], None],
        refusal: "_Refusal",
    ) -> None:
        self._dispatcher = dispatcher
        self._lost = lost
        self._refusal = refusal
        self.has_tools = greeting.capabilities.tools is not None
        self.has_resources = greeting.capabilities.resources is not None
        self.software = f"{greeting.server_info.name} {greeting.server_info.version}".strip()
        self.protocol_version = greeting.protocol_version

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """One request and its result. The server is told when this is cancelled.

        Raises:
            RequestFailed
        """
        options: CallOptions = {}
        if on_progress is not None:
            options["on_progress"] = _awaitable(on_progress)
        try:
            return finite(await self._dispatcher.send_raw_request(method, params, options))
        except MCPError as error:
            if _is_lost(error):
                self._lost(None)
                raise RequestFailed(error.message, "ConnectionLost") from error
            text = error.message[:_MAX_ERROR_CHARS]
            if self._refusal.is_of_session(text):
                self._lost(None)
                raise RequestFailed(text, "SessionLost") from error
            raise RequestFailed(f"Mcp error: {error.code}: {text}") from error

    async def tools(self) -> tuple[tuple[ServerTool, ...], str | None]:
        """All tools, in the server's order, and what is wrong with the list if something is.

        Raises:
            RequestFailed
        """
        if not self.has_tools:
            return (), None
        found: dict[str, ServerTool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            entries = page.get("tools")
            if not isinstance(entries, list):
                raise RequestFailed("answered tools/list without a list of tools")
            for entry in cast("list[object]", entries):
                tool = server_tool(entry)
                if tool is not None:
                    found.setdefault(tool.name, tool)
            if len(found) > MAX_TOOLS:
                kept = tuple(found.values())[:MAX_TOOLS]
                return kept, f"has more than {MAX_TOOLS} tools; the others are left out"
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in cursors:
                return tuple(found.values()), None
            cursors.add(cursor)


@asynccontextmanager
async def connect(
    server: str, transport: Transport, process: ServerProcess | None, listener: Listener
) -> AsyncGenerator[Connection]:
    """Open a connection and shake hands. Roots and sampling are not offered, as in Codex.

    Raises:
        RequestFailed: the server does not want to, or speaks another protocol.
        ExceptionGroup: an HTTP exchange failed, then or later.
    """
    keep_sdk_quiet()
    refusal = _Refusal()
    if isinstance(transport, HttpTransport):
        # 15 ms, which a server that is a process does not need.
        from codex_py.mcp.http import http_streams  # noqa: PLC0415

        def answered(status: int, in_session: bool) -> None:
            refusal.status = status if in_session and status >= HTTPStatus.BAD_REQUEST else None
            listener.answered(status)

        opened = http_streams(transport, answered, listener.login_problem)
    else:
        assert process is not None
        opened = stdio_streams(process, on_noise=listener.noise, on_end=listener.lost)
    async with opened as (read, write):
        dispatcher = JSONRPCDispatcher(read, write)
        async with _session(server, dispatcher, listener) as session:
            try:
                greeting = await session.initialize()
            except MCPError as error:
                if _is_lost(error):
                    raise RequestFailed("closed the connection", "ConnectionLost") from error
                raise RequestFailed(f"refused the handshake: {error.message}") from error
            except (ValidationError, RuntimeError) as error:
                raise RequestFailed(f"is no MCP server that we know: {_brief(error)}") from error
            yield Connection(dispatcher, greeting, listener.lost, refusal)


def _session(server: str, dispatcher: JSONRPCDispatcher, listener: Listener) -> ClientSession:
    async def elicited(
        context: ClientRequestContext,  # noqa: ARG001
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            question = Elicitation(server, params.message, url=params.url)
        else:
            question = Elicitation(server, params.message, schema=params.requested_schema)
        answer = await listener.elicit(question)
        content = None if answer.content is None else dict(answer.content)
        return types.ElicitResult(action=answer.action, content=content)

    async def notified(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            listener.tools_changed()

    return ClientSession(
        dispatcher=dispatcher,
        elicitation_callback=elicited,
        message_handler=notified,
        # Servers know Codex by this name, and some let in none but those they know.
        client_info=types.Implementation(
            name="codex-mcp-client", title="codex-py", version=__version__
        ),
    )


def _is_lost(error: MCPError) -> bool:
    # In the words of the dispatcher. Servers use this number for any error of their own.
    return (error.code, error.message) == (types.CONNECTION_CLOSED, "Connection closed")


def _awaitable(on_progress: OnProgress) -> ProgressFnT:
    async def call(progress: float, total: float | None, message: str | None) -> None:
        on_progress(progress, total, message)

    return call


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)
