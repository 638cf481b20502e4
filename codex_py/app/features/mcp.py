"""The MCP servers of a session, from its configuration to what the model is offered of them. LIGHT.

Part of the composition root. It is imported, and anything of MCP is, where a server is configured.
"""

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from codex_py.app.mcp_login import session_auth
from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ModelError
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.settings import HttpTransport, ServerSettings, StdioTransport, Transport
from codex_py.process.piped import PipedProcess, PipedProcesses
from codex_py.protocol.elicitation import Elicitor
from codex_py.protocol.mcp import McpServerStatus
from codex_py.protocol.stream import ModelClient, Prompt, ResponseEvent
from codex_py.protocol.tools import ToolSpec
from codex_py.tools.mcp.catalogue import McpCatalogue

if TYPE_CHECKING:
    from codex_py.mcp.settings import MakeAuth
    from codex_py.protocol.dispatch import Tool

_INHERITED: Final = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
"""Of our own variables, beside the `LC_` ones, what a server gets unasked: no keys, as in Codex."""


Patience: TypeAlias = Callable[[Callable[[], Sequence[str]], Awaitable[None]], Awaitable[None]]
"""Waits for MCP servers to start, or for a while. Gets a function that lists the pending ones, and an awaitable that
completes when none are."""


async def _waits(_starting: Callable[[], Sequence[str]], settled: Awaitable[None]) -> None:
    await settled


class SessionServers:
    """The servers of one session, and its view of their tools."""

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        *,
        elicitor: Elicitor,
        warn: Callable[[str], None],
        add_dirs: Sequence[Path] = (),
    ) -> None:
        """`add_dirs`: writable folders beside those of the configuration."""
        self._configs = {name: c for name, c in config.mcp_servers.items() if c.enabled}
        self._programs = user_programs(config, environment, add_dirs)
        self._warn = warn
        self._processes = PipedProcesses()
        settings = (
            _settings(
                name,
                server,
                self._cwd(config, server),
                environment,
                session_auth(config, name),
                warn,
            )
            for name, server in self._configs.items()
        )
        self.servers = McpServers(
            [McpServer(s, spawn=self._spawn, elicitor=elicitor, warn=warn) for s in settings]
        )
        self._catalogue = McpCatalogue(self.servers)

    def start(self) -> None:
        """Start all, in the running loop, and return at once."""
        self.servers.start()

    async def require(self) -> None:
        """Wait for those without which there is no session.

        Raises:
            CodexError: one of them is not to be had.
        """
        await self.servers.require()

    def statuses(self) -> list[McpServerStatus]:
        """By name; servers that are switched off are not among them."""
        return [server.status() for server in self.servers.all()]

    def offered_by(self, model: ModelClient, patience: Patience | None = None) -> ModelClient:
        """The model's client, whose requests wait for the servers and offer their tools."""
        return _OfferingClient(model, self.servers, self._catalogue, patience or _waits, self._warn)

    def tools(self) -> "Sequence[Tool[Any]]":
        """Tools of our own that concern all servers."""
        # Loads what the first request does not need.
        from codex_py.tools.mcp.resources import resource_tools  # noqa: PLC0415
        from codex_py.tools.mcp.search import ToolSearch  # noqa: PLC0415

        return [*resource_tools(self.servers), ToolSearch(self._catalogue)]

    def tool_finder(self, image_detail: str) -> "Callable[[str], Tool[Any] | None]":
        """Finds the tool of a server by the name that a model writes."""
        from codex_py.tools.mcp.tool import McpTools  # noqa: PLC0415

        return McpTools(self.servers, self._configs, image_detail=image_detail).find

    async def aclose(self) -> None:
        """End all servers, and every process of theirs."""
        try:
            await self.servers.aclose()
        finally:
            self._processes.close()

    def _spawn(self, transport: StdioTransport) -> PipedProcess:
        name, *arguments = transport.argv
        # Each time anew: what the last one was started from may have been replaced since.
        program = self._programs.find(name, transport.environment)
        return self._processes.spawn(
            [program, *arguments],
            cwd=transport.cwd,
            environment=self._programs.environment(transport.environment),
        )

    def _cwd(self, config: Config, server: McpServerConfig) -> Path:
        if server.cwd is None and server.command is not None:
            return self._programs.cwd()
        return Path(os.path.normpath(config.cwd / (server.cwd or "")))


class _OfferingClient:
    """Offers the tools of servers with every request that offers any.

    A service that refuses the whole request for one of them is sent it again, without what it does not take.
    """

    def __init__(
        self,
        model: ModelClient,
        servers: McpServers,
        catalogue: McpCatalogue,
        patience: Patience,
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        self._model = model
        self._patience = patience
        self._servers = servers
        self._catalogue = catalogue

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        # A request without tools, as the last one of a compaction, is to stay one.
        if not prompt.tools:
            async with self._model.stream(prompt) as events:
                yield events
            return
        if self._servers.starting():
            await self._patience(self._servers.starting, self._servers.settled())
        else:
            await self._servers.settled()
        async with AsyncExitStack() as stack:
            yield await self._open(prompt, stack)

    async def _open(self, prompt: Prompt, stack: AsyncExitStack) -> AsyncIterator[ResponseEvent]:
        while True:
            tools = (*prompt.tools, *self._catalogue.specs())
            stream = self._model.stream(replace(prompt, tools=tools))
            try:
                return await stack.enter_async_context(stream)
            except ModelError as error:
                name = _refused_tool(error, tools)
                if name is None:
                    raise
                # Ends, for a tool that is refused twice is not there a third time.
                remedy = self._catalogue.refuse(name)
                self._warn(f"The service refuses the tool `{name}`, {remedy}: {error}")

    async def aclose(self) -> None:
        await self._model.aclose()


def _refused_tool(error: ModelError, tools: Sequence[ToolSpec]) -> str | None:
    """The tool of a server for which a service refuses a request: it names it, or its place in the list."""
    if error.status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
        return None
    message = str(error)
    named = re.findall(r"mcp__[a-zA-Z0-9_-]+", message)
    named += [
        tools[int(place)].name
        for place in re.findall(r"tools[.\[](\d{1,5})", message)
        if int(place) < len(tools)
    ]
    offered = {spec.name for spec in tools if spec.name.startswith("mcp__")}
    return next((name for name in named if name in offered), None)


def _settings(
    name: str,
    config: McpServerConfig,
    cwd: Path,
    environment: Mapping[str, str],
    make_auth: "MakeAuth | None",
    warn: Callable[[str], None],
) -> ServerSettings:
    transport: Transport
    if config.command is not None:
        transport = StdioTransport(
            argv=(config.command, *config.args),
            cwd=cwd,
            environment=_server_environment(config, environment),
        )
    else:
        assert config.url is not None
        headers = server_headers(name, config, environment, warn)
        transport = HttpTransport(config.url, headers, make_auth)
    return ServerSettings(
        name=name,
        transport=transport,
        required=config.required,
        startup_timeout_s=config.startup_timeout_s,
        tool_timeout_s=config.tool_timeout_s,
        enabled_tools=None if config.enabled_tools is None else frozenset(config.enabled_tools),
        disabled_tools=frozenset(config.disabled_tools),
    )


def _server_environment(config: McpServerConfig, environment: Mapping[str, str]) -> dict[str, str]:
    wanted = _INHERITED | set(config.env_vars)
    inherited = {
        name: value
        for name, value in environment.items()
        if name in wanted or name.startswith("LC_")
    }
    return {**inherited, **config.env}


def server_headers(
    name: str,
    config: McpServerConfig,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> dict[str, str]:
    """What goes with every request to a server at an address; `warn` is told of a token that is not there."""
    headers = dict(config.http_headers)
    for header, variable in config.env_http_headers.items():
        if value := environment.get(variable):
            headers[header] = value
    if (variable := config.bearer_token_env_var) is not None:
        if token := environment.get(variable):
            headers["Authorization"] = f"Bearer {token}"
        else:
            warn(f"MCP server `{name}`: its `bearer_token_env_var` {variable!r} is not set")
    return headers
