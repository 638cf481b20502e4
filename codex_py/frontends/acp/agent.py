"""Answers the ACP methods of a client, and keeps the sessions that the client has open."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from acp import schema
from pydantic import BaseModel, ValidationError

from codex_py.app.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpc,
    RpcError,
)
from codex_py.app.logout import remove_login
from codex_py.app.model import missing_key
from codex_py.app.options import SessionOptions
from codex_py.app.served_threads import ServedThreads
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config
from codex_py.command_line.serving import served_options
from codex_py.config.config import Config
from codex_py.config.mcp import mcp_servers
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.frontends.acp.questions import ClientCapabilities
from codex_py.frontends.acp.session import (
    AUTH_REQUIRED,
    NOT_FOUND,
    EditorSession,
    rpc_error,
)
from codex_py.frontends.acp.unprompted import UnpromptedSessions
from codex_py.protocol.ids import is_thread_id
from codex_py.protocol.json_fields import as_object
from codex_py.rollout.archive import delete
from codex_py.rollout.index import find_session
from codex_py.rollout.listing import list_sessions
from codex_py.streams.standard import tell
from codex_py.version import __version__

_VERSION: Final = 1
"""The only version that is served; a client that cannot speak it leaves."""
_PAGE: Final = 50
"""The number of sessions in one answer to `session/list`."""
_CAPABILITIES: Final[Mapping[str, Any]] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {
        name: {}
        for name in ("list", "resume", "close", "delete", "additionalDirectories")
    },
    "auth": {"logout": {}},
}
_KEY_METHOD: Final = {
    "id": "api-key",
    "name": "API key from the environment",
    "description": "Set the provider's variable, such as OPENAI_API_KEY, or run `codex-py login`",
}
"""A method for `authenticate`. The user has set up the key already; it is only looked for."""
_LOGIN_METHOD: Final = {
    "type": "terminal",
    "id": "login",
    "name": "Enter an API key",
    "description": "It is stored in auth.json of $CODEX_HOME",
    "args": ["login"],
}
"""A method that the client runs by itself: it opens a terminal with these arguments."""
_SetOption: TypeAlias = schema.SetSessionConfigOptionSelectRequest
_Opening: TypeAlias = (
    schema.NewSessionRequest | schema.LoadSessionRequest | schema.ResumeSessionRequest
)
_LISTS: Final = {
    "mcp_servers": "mcpServers",
    "additional_directories": "additionalDirectories",
}
"""The fields that are lists, by attribute of the request: the names that clients send."""
_RequestT = TypeVar("_RequestT", bound=BaseModel)
_Answer: TypeAlias = dict[str, Any]
_Handler: TypeAlias = Callable[[Any], Awaitable[_Answer]]


class EditorAgent:
    """Answers the requests of one client.

    Args:
        arguments: the command line; its options are those of every session.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        arguments: Arguments,
        environment: Mapping[str, str],
    ) -> None:
        self._rpc = rpc
        self._arguments = arguments
        self._environment = environment
        self._home = codex_home(environment)
        self._unprompted = UnpromptedSessions(self._home)
        self._client = ClientCapabilities()
        self._is_initialized = False
        self._sessions = ServedThreads[EditorSession]()
        self._methods: Mapping[str, tuple[type[BaseModel], _Handler]] = {
            "initialize": (schema.InitializeRequest, self._initialize),
            "authenticate": (schema.AuthenticateRequest, self._authenticate),
            "logout": (schema.LogoutRequest, self._logout),
            "session/new": (schema.NewSessionRequest, self._open),
            "session/load": (schema.LoadSessionRequest, self._open),
            "session/resume": (schema.ResumeSessionRequest, self._open),
            "session/list": (schema.ListSessionsRequest, self._list),
            "session/close": (schema.CloseSessionRequest, self._close),
            "session/delete": (schema.DeleteSessionRequest, self._delete),
            "session/prompt": (schema.PromptRequest, self._prompt),
            "session/set_mode": (schema.SetSessionModeRequest, self._set_mode),
            "session/set_config_option": (_SetOption, self._set_option),
        }

    async def requested(self, method: str, params: Any) -> _Answer:
        """Answer a request.

        A prompt's turn exists before the first await, so a `session/cancel` that follows ends it.

        Raises:
            RpcError: the request is wrong, or it failed.
        """
        row = self._methods.get(method)
        if row is None:
            raise RpcError(
                METHOD_NOT_FOUND, f"there is no method {method!r}", {"method": method}
            )
        kind, handler = row
        if method == "initialize":
            self._client = ClientCapabilities.of(params)
        elif not self._is_initialized:
            raise RpcError(INVALID_REQUEST, "not initialized: send `initialize` first")
        try:
            return await handler(_checked(kind, params))
        except CodexError as error:
            raise rpc_error(error) from error

    def notified(self, method: str, params: Any) -> None:
        """Handle a notification. Unknown ones, and those for unknown sessions, are ignored."""
        if method != "session/cancel":
            return
        session = self._sessions.get(str(as_object(params).get("sessionId")))
        if session is not None:
            session.cancel()

    async def aclose(self) -> None:
        """Close every session."""
        await self._sessions.aclose()

    async def _initialize(self, _: schema.InitializeRequest) -> _Answer:
        self._is_initialized = True
        methods: list[Mapping[str, Any]] = [_KEY_METHOD]
        if self._client.has_terminal:
            methods.insert(0, _LOGIN_METHOD)
        return {
            "protocolVersion": _VERSION,
            "agentInfo": {
                "name": "codex-py",
                "title": "codex-py",
                "version": __version__,
            },
            "agentCapabilities": _CAPABILITIES,
            "authMethods": methods,
        }

    async def _authenticate(self, request: schema.AuthenticateRequest) -> _Answer:
        if request.method_id != _KEY_METHOD["id"]:
            raise RpcError(INVALID_PARAMS, f"there is no method {request.method_id!r}")
        self._require_key(self._config(self._arguments.cd))
        return {}

    async def _logout(self, _: schema.LogoutRequest) -> _Answer:
        config = self._config(self._arguments.cd)
        await asyncio.to_thread(remove_login, config, self._environment, tell)
        return {}

    async def _open(self, request: _Opening) -> _Answer:
        """Open a new session, or an earlier one by its id; `load` also sends its conversation."""
        if isinstance(request, schema.NewSessionRequest):
            session = await self._opened(request, None)
            return {"sessionId": session.id, **session.state()}
        session = await self._opened(request, request.session_id)
        return session.state()

    async def _list(self, request: schema.ListSessionsRequest) -> _Answer:
        cwd = None
        if request.cwd is not None:
            cwd = _absolute("cwd", request.cwd)
        cursor = request.cursor or "0"
        if not re.fullmatch(r"[0-9]{1,9}", cursor):
            raise RpcError(INVALID_PARAMS, f"`cursor` {cursor!r} is none of ours")
        start = int(cursor)
        end = start + _PAGE
        # One more than the page shows whether another page follows.
        found = await asyncio.to_thread(
            list_sessions, self._home, cwd=cwd, limit=end + 1
        )
        sessions = [
            {
                "sessionId": each.id,
                "cwd": each.cwd,
                "title": each.name or each.preview,
                "updatedAt": each.updated.isoformat(),
            }
            for each in found[start:end]
        ]
        answer: _Answer = {"sessions": sessions}
        if len(found) > end:
            answer["nextCursor"] = str(end)
        return answer

    async def _close(self, request: schema.CloseSessionRequest) -> _Answer:
        session = self._session(request.session_id)
        self._sessions.remove(session)
        await session.close()
        return {}

    async def _delete(self, request: schema.DeleteSessionRequest) -> _Answer:
        """Delete a session's file. There may be none: the client wants it gone."""
        session_id = request.session_id
        session = self._taken(session_id)
        if session is not None:
            await session.close()
        await asyncio.to_thread(self._unprompted.remove, session_id)
        if is_thread_id(session_id):
            await asyncio.to_thread(delete, self._home, session_id.lower())
        return {}

    async def _prompt(self, request: schema.PromptRequest) -> _Answer:
        session = self._session(request.session_id)
        return {"stopReason": await session.prompt(request.prompt)}

    async def _set_mode(self, request: schema.SetSessionModeRequest) -> _Answer:
        session = self._session(request.session_id)
        session.choose("mode", request.mode_id)
        return {}

    async def _set_option(self, request: _SetOption) -> _Answer:
        session = self._session(request.session_id)
        options = session.choose(request.config_id, request.value)
        return {"configOptions": options}

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RpcError(NOT_FOUND, f"no session {session_id!r} is open")
        return session

    async def _opened(self, request: _Opening, session_id: str | None) -> EditorSession:
        """Open a session, and let its first updates follow the answer to the request.

        Args:
            session_id: the id of an earlier session; None for a new one.
        """
        config = self._session_config(request)
        options = self._session_options(request, config.cwd)
        earlier = None
        if session_id is not None:
            earlier = await self._close_earlier(session_id)
            options = self._continuing(options, session_id)
        session = EditorSession(
            self._rpc,
            config,
            options,
            self._environment,
            self._client,
            self._unprompted,
            session_id or "",
        )
        try:
            await session.open()
            if isinstance(request, schema.LoadSessionRequest):
                await session.replay()
        except BaseException as error:
            await session.close()
            if earlier is not None and isinstance(error, Exception):
                await self._reopen(earlier)
            raise
        self._sessions.use(session, session.id)
        session.announce()
        return session

    def _continuing(self, options: SessionOptions, session_id: str) -> SessionOptions:
        """The options to continue a session that is closed.

        The file of a session without a prompt is removed when it is closed. Then a new thread takes
        its id.
        """
        if find_session(self._home, session_id) is None:
            return replace(options, new_id=session_id.lower(), resume=None)
        return replace(options, new_id=None, resume=session_id)

    async def _reopen(self, session: EditorSession) -> None:
        """Open a session again, because the request for which it was closed has failed.

        If that fails too, the session stays closed.
        """
        with suppress(CodexError):
            await session.open()
            self._sessions.use(session, session.id)

    def _session_config(self, request: _Opening) -> Config:
        """The configuration of the client's folder, with the client's MCP servers.

        Raises:
            RpcError: the folder does not exist, a server cannot be used, or a key is missing.
        """
        cwd = _folder("cwd", request.cwd)
        config = self._config(str(cwd))
        clients = _servers(request.mcp_servers or ())
        servers = {**config.mcp_servers, **clients}
        config = replace(config, mcp_servers=servers)
        self._require_key(config)
        return config

    def _session_options(self, request: _Opening, cwd: Path) -> SessionOptions:
        own_dirs = [cwd / name for name in self._arguments.add_dir]
        wanted = request.additional_directories or ()
        dirs = [_folder("additionalDirectories", folder) for folder in wanted]
        return replace(
            served_options(self._arguments),
            source="vscode",
            originator="codex_py_acp",
            add_dirs=(*own_dirs, *dirs),
            can_review=True,
        )

    async def _close_earlier(self, session_id: str) -> EditorSession | None:
        """Make sure that a session exists, and close it if it is open.

        Returns:
            The session if it was open.

        Raises:
            RpcError: there is no such session.
        """
        if not self._exists(session_id):
            raise RpcError(NOT_FOUND, f"there is no session {session_id!r}")
        session = self._taken(session_id)
        if session is not None:
            await session.close()
        return session

    def _exists(self, session_id: str) -> bool:
        """True if a session has a file, or was opened and never prompted. Blocks."""
        if not is_thread_id(session_id):
            return False
        if session_id in self._unprompted:
            return True
        return find_session(self._home, session_id) is not None

    def _taken(self, session_id: str) -> EditorSession | None:
        """Take a session out of the open ones. Returns None if it is not open.

        An id may be written in capitals, and a session of Codex goes on under a second id.
        """
        wanted = session_id.lower()
        for session in self._sessions:
            if wanted in {session.id.lower(), session.thread_id}:
                self._sessions.remove(session)
                return session
        return None

    def _config(self, cwd: str | None) -> Config:
        return read_config(replace(self._arguments, cd=cwd), self._environment)

    def _require_key(self, config: Config) -> None:
        problem = missing_key(config, self._environment)
        if problem is not None:
            raise RpcError(AUTH_REQUIRED, problem)


def _checked(kind: type[_RequestT], params: Any) -> _RequestT:
    """Check the params of a request.

    Two habits of the `acp` package are corrected: it leaves out wrong entries of lists, and it
    rejects null instead of the list of MCP servers.

    Raises:
        RpcError: the params are wrong.
    """
    given: dict[str, Any] = dict(as_object(params))
    if "mcpServers" in given and given["mcpServers"] is None:
        given["mcpServers"] = []
    try:
        checked = kind.model_validate(given)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, _first_mistake(error)) from error
    for name, key in _LISTS.items():
        if not hasattr(checked, name):
            continue
        entries: Any = given.get(key) or []
        accepted: Any = getattr(checked, name) or []
        if len(accepted) != len(entries):
            raise RpcError(INVALID_PARAMS, f"`{key}`: one of the entries is wrong")
    return checked


def _absolute(name: str, path: str) -> Path:
    if not path.startswith("/") or "\0" in path:
        raise RpcError(INVALID_PARAMS, f"`{name}`: {path!r} is not an absolute path")
    return Path(path)


def _folder(name: str, path: str) -> Path:
    folder = _absolute(name, path)
    if not os.path.isdir(folder):
        raise RpcError(INVALID_PARAMS, f"`{name}`: there is no folder {path!r}")
    return folder


def _servers(servers: Sequence[Any]) -> Mapping[str, Any]:
    """The client's MCP servers by name, as a configuration has them.

    Raises:
        RpcError: a server is of a type that is not supported.
    """
    tables: dict[str, dict[str, Any]] = {}
    for server in servers:
        # Names are meant for people, but the names of the server's tools are made from them.
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", server.name) or "server"
        name = plain
        number = 1
        while name in tables:
            number += 1
            name = f"{plain}-{number}"
        tables[name] = _server_table(server)
    return mcp_servers(tables)[0]


def _server_table(server: Any) -> dict[str, Any]:
    """The table of a server, as `config.toml` would have it."""
    match server:
        case schema.McpServerStdio(command=command, args=args, env=env):
            variables = {each.name: each.value for each in env}
            return {"command": command, "args": list(args), "env": variables}
        case schema.HttpMcpServer(url=url, headers=headers):
            http_headers = {each.name: each.value for each in headers}
            return {"url": url, "http_headers": http_headers}
        case _:
            reason = f"`mcpServers`: no server of type {server.type!r}"
            raise RpcError(INVALID_PARAMS, reason)


def _first_mistake(error: ValidationError) -> str:
    """Describe the first mistake in params: its place and the reason."""
    mistakes = error.errors(include_url=False, include_input=False)
    first = mistakes[0]
    place = ".".join(map(str, first["loc"])) or "params"
    return f"`{place}`: {first['msg']}"
