"""Answers the methods about MCP servers: those of a thread, and those of the configuration."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, NoReturn, cast

from codex_py.app.features.mcp import McpFeature, server_headers, started_servers
from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from codex_py.app.mcp_login import AuthStatus, auth_statuses
from codex_py.app.mcp_requests import call_tool, listed_or_none, read_resource
from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.errors import CodexError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.mcp import mcp_params
from codex_py.frontends.app_server.mcp.mcp_logins import McpLogins
from codex_py.frontends.app_server.mcp.mcp_status import (
    resources_data,
    runtime_status,
    server_data,
    templates_data,
)
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.mcp.resources import RESOURCES, TEMPLATES
from codex_py.mcp.server import McpServer
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.mcp import RequestFailed

_MAX_STARTS: Final = 4
"""The number of requests that may run servers of their own at once; others wait."""
_NOT_AN_OBJECT: Final = "MCP tool arguments must be a JSON object"
"""The words are Codex's, as in most errors here."""


class _Running(NamedTuple):
    """Servers that run, by their names."""

    of_thread: dict[str, McpServer]
    started: dict[str, McpServer]
    """The servers that were started for a request."""

    async def settled(self) -> None:
        """Wait until each server is ready or has failed."""
        servers = (*self.of_thread.values(), *self.started.values())
        await asyncio.gather(*(server.settled() for server in servers))


class McpMethods(MethodGroup):
    """Answers `mcpServerStatus/…`, `mcpServer/…` and `config/mcpServer/…`."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._logins = McpLogins(server.environment, server.later, self._logged_in)
        self._starts = asyncio.Semaphore(_MAX_STARTS)
        self._reloads: dict[AppThread, asyncio.Task[None]] = {}
        """The reloads that wait for the turns of threads."""

    async def aclose(self) -> None:
        """End the logins and the reloads."""
        await self._logins.stop()
        for task in self._reloads.values():
            task.cancel()

    @serves("mcpServerStatus/list", mcp_params.StatusList)
    async def list(self, asked: mcp_params.StatusList) -> Fields:
        """List a page of the configured servers. Those that the thread does not run are started."""
        config = self._config(asked.thread_id)
        servers, _ = config.requirements.held_servers(config.mcp_servers)
        names = sorted(servers)
        if asked.server_name is not None:
            names = [name for name in names if name == asked.server_name]
        page, next_cursor = _page(names, asked)
        shown = {name: servers[name] for name in page}
        config = replace(config, mcp_servers=shown)
        async with self._running(config, asked.thread_id) as running:
            logins, _ = await asyncio.gather(
                self._auth_statuses(config), running.settled()
            )
            describing = [
                _described(name, server, logins[name], running, asked)
                for name, server in shown.items()
            ]
            descriptions = await asyncio.gather(*describing)
        async with self.server.large_answer():
            return {"data": descriptions, "nextCursor": next_cursor}

    @serves("mcpServer/tool/call", mcp_params.ToolCall)
    async def call(self, asked: mcp_params.ToolCall) -> Fields:
        """Call a tool of a server of the thread, as `mcp_requests` says."""
        async with self._servers(asked.thread_id) as servers:
            server = _found(servers, asked.server)
            if not server.settings.offers(asked.tool):
                text = f"tool '{asked.tool}' is disabled for MCP server '{server.name}'"
                raise RpcError(INTERNAL_ERROR, text)
            failed = f"tool call failed for `{server.name}/{asked.tool}`"
            arguments = asked.arguments
            if arguments is not None and not isinstance(arguments, dict):
                raise RpcError(INTERNAL_ERROR, f"{failed}: {_NOT_AN_OBJECT}")
            arguments = cast("JsonObject | None", arguments)
            meta = {**(asked.meta or {}), "threadId": asked.thread_id}
            try:
                result = await call_tool(server, asked.tool, arguments, meta)
            except RequestFailed as failure:
                _refuse(failure, failed)
        async with self.server.large_answer():
            return result

    @serves("mcpServer/resource/read", mcp_params.ResourceRead)
    async def read(self, asked: mcp_params.ResourceRead) -> Fields:
        """Read a resource. Without a thread, the configured server is started for it."""
        name = asked.server
        if asked.origin_call_id is not None and asked.thread_id is None:
            raise RpcError(INVALID_REQUEST, "originCallId requires threadId")
        if asked.thread_id is not None:
            running = self._servers(asked.thread_id)
        else:
            running = self._started(_with_servers(self.server.configuration(), [name]))
        async with running as servers:
            server = _found(servers, name)
            try:
                contents = await read_resource(server, asked.uri, asked.meta or {})
            except RequestFailed as failure:
                _refuse(failure, f"resources/read failed for `{name}` ({asked.uri})")
        async with self.server.large_answer():
            return {"contents": contents, "originCallId": None}

    @serves("config/mcpServer/reload", params.Nothing)
    async def reload(self, _: params.Nothing) -> Fields:
        """Let the open threads use the servers that are configured now.

        A thread that runs a turn does so after it.
        """
        try:
            self.server.configuration()
            self._reload_threads()
        except CodexError as error:
            text = f"failed to refresh MCP servers: {error}"
            raise RpcError(INTERNAL_ERROR, text) from error
        return {}

    @serves("mcpServer/oauth/login", mcp_params.OAuthLogin)
    async def login(self, asked: mcp_params.OAuthLogin) -> Fields:
        """Begin a login to a server, even to one that is switched off."""
        config = self._config(asked.thread_id)
        server = config.mcp_servers.get(asked.name)
        if server is None:
            text = f"No MCP server named '{asked.name}' found."
            raise RpcError(INVALID_REQUEST, text)
        if server.url is None:
            text = "OAuth login is only supported for streamable HTTP servers."
            raise RpcError(INVALID_REQUEST, text)
        enabled = {asked.name: replace(server, enabled=True)}
        _, refusals = config.requirements.held_servers(enabled)
        if refusals:
            raise RpcError(INVALID_REQUEST, refusals[0])
        if asked.client_registration == "dcr" and server.oauth_client_id is not None:
            text = f"the client of `{asked.name}` is registered: `oauth.client_id`"
            raise RpcError(INVALID_REQUEST, text)
        return await self._logins.start(
            config, asked.name, asked.scopes, asked.timeout_secs, asked.thread_id
        )

    def _config(self, thread_id: str | None) -> Config:
        """Read the configuration of a thread, or else that of the server's folder."""
        if thread_id is None:
            return self.server.configuration()
        return self.threads.find(thread_id).current_configuration()

    @asynccontextmanager
    async def _servers(self, thread_id: str) -> AsyncGenerator[McpFeature]:
        """The servers of a thread, which is not closed for being idle meanwhile."""
        async with AsyncExitStack() as stack:
            async with self.threads.locked(thread_id) as thread:
                stack.enter_context(thread.kept_open())
                servers = thread.mcp_servers
            yield servers

    @asynccontextmanager
    async def _started(self, config: Config) -> AsyncGenerator[McpFeature]:
        """Run all servers of a configuration. A few requests may do so at once."""
        async with (
            self._starts,
            started_servers(config, self.server.environment) as servers,
        ):
            yield servers

    @asynccontextmanager
    async def _running(
        self, config: Config, thread_id: str | None
    ) -> AsyncGenerator[_Running]:
        """Run the servers of a configuration that are enabled.

        The thread's own are used if their settings are the same.
        """
        running = _Running({}, {})
        others = {
            name: server
            for name, server in config.mcp_servers.items()
            if server.enabled
        }
        async with AsyncExitStack() as stack:
            if thread_id is not None:
                servers = await stack.enter_async_context(self._servers(thread_id))
                for name, server in servers.by_name.items():
                    if others.get(name) == servers.configs[name]:
                        running.of_thread[name] = server
                        del others[name]
            if others:
                starting = self._started(replace(config, mcp_servers=others))
                started = await stack.enter_async_context(starting)
                running.started.update(started.by_name)
            yield running

    async def _auth_statuses(self, config: Config) -> Mapping[str, AuthStatus]:
        def headers(name: str) -> Mapping[str, str]:
            server = config.mcp_servers[name]
            return server_headers(name, server, self.server.environment, lambda _: None)

        return await auth_statuses(config, headers)

    def _logged_in(self) -> None:
        """Let the servers of all threads use a new login."""
        try:
            self._reload_threads()
        except CodexError as error:
            self._warn(error)

    def _reload_threads(self) -> None:
        """Reload the servers of all threads; those that run a turn do so later.

        Raises:
            CodexError: the settings of a thread cannot be used. The others are reloaded.
        """
        problem: CodexError | None = None
        for thread in self.threads:
            if thread.is_working:
                self._begin_reload(thread)
                continue
            try:
                thread.reload_servers()
            except CodexError as error:
                problem = error
        if problem is not None:
            raise problem

    def _begin_reload(self, thread: AppThread) -> None:
        """Reload the servers of a thread after its turn, unless that is to be done anyway."""
        if thread not in self._reloads:
            task = asyncio.create_task(self._reload_later(thread))
            self._reloads[thread] = task
            task.add_done_callback(partial(self._reloaded, thread))

    async def _reload_later(self, thread: AppThread) -> None:
        await thread.ended()
        try:
            thread.reload_servers()
        except CodexError as error:
            self._warn(error)

    def _reloaded(self, thread: AppThread, _: asyncio.Task[None]) -> None:
        del self._reloads[thread]

    def _warn(self, error: CodexError) -> None:
        text = f"failed to refresh MCP servers: {error}"
        self.server.later("configWarning", {"summary": text, "details": None})


async def _described(
    name: str,
    config: McpServerConfig,
    auth: AuthStatus,
    running: _Running,
    asked: mcp_params.StatusList,
) -> Fields:
    """Describe a server that is ready, has failed, or is disabled."""
    server = running.of_thread.get(name) or running.started.get(name)
    if server is None:
        description = server_data(name, config, auth, None, ())
        if asked.thread_id is not None:
            description["runtimeStatus"] = "disabled"
        return description
    status = server.status()
    description = server_data(name, config, auth, status, server.tools)
    if name in running.of_thread:
        description["runtimeStatus"] = runtime_status(status)
    if asked.detail != "toolsAndAuthOnly":
        resources, templates = await asyncio.gather(
            listed_or_none(server, RESOURCES), listed_or_none(server, TEMPLATES)
        )
        description["resources"] = resources_data(resources)
        description["resourceTemplates"] = templates_data(templates)
    return description


def _with_servers(config: Config, names: Collection[str]) -> Config:
    """The configuration with no other servers than these."""
    servers = {
        name: server for name, server in config.mcp_servers.items() if name in names
    }
    return replace(config, mcp_servers=servers)


def _page(
    names: Sequence[str], asked: mcp_params.StatusList
) -> tuple[Sequence[str], str | None]:
    """Return the names of a page, and the cursor of the next one."""
    cursor = asked.cursor or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RpcError(INVALID_REQUEST, f"invalid cursor: {cursor}")
    start = int(cursor)
    if start > len(names):
        text = f"cursor {start} exceeds total MCP servers {len(names)}"
        raise RpcError(INVALID_REQUEST, text)
    limit = len(names)
    if asked.limit is not None:
        # As in Codex, a page has a server at least.
        limit = max(asked.limit, 1)
    end = start + limit
    if end < len(names):
        return names[start:end], str(end)
    return names[start:], None


def _found(servers: McpFeature, name: str) -> McpServer:
    server = servers.by_name.get(name)
    if server is None:
        raise RpcError(INTERNAL_ERROR, f"unknown MCP server '{name}'")
    return server


def _refuse(failure: RequestFailed, what: str) -> NoReturn:
    """Raise the server's own error, or else one that says what has failed."""
    if failure.answer is not None:
        code, text = failure.answer
        raise RpcError(code, text) from failure
    raise RpcError(INTERNAL_ERROR, f"{what}: {failure}") from failure
