"""Starts the configured MCP servers of a session, and offers their tools to the model. LIGHT.

Part of the composition root. This and all other MCP modules are imported only if a server is
configured.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.app.mcp_login import session_auth
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.settings import HttpTransport, ServerSettings, StdioTransport
from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess
from codex_py.protocol.extension import Extension, Thread, ToolFinder
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.tool import mcp_tool_finder

_INHERITED: Final = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
"""Variables of our own environment that every server gets, besides `LC_*`: no keys, as in Codex."""


class McpFeature(McpServers):
    """The configured servers with their processes and tools.

    A frontend asks this feature for the status of each server.
    """

    def __init__(self, setup: SessionSetup) -> None:
        config = setup.config
        environment = setup.environment
        self._setup = setup
        self.configs = self._enabled(config)
        """The settings of each server by its name. The dictionary stays the same."""
        self._programs = user_programs(config, environment, setup.options.add_dirs)
        self._guardian = Guardian()
        self._warned: set[str] = set()
        """The servers for which `_warn_of_other_program` has warned."""
        super().__init__(
            [self._server(name, server) for name, server in self.configs.items()]
        )
        self._has_session = False
        self._retiring: dict[McpServer, asyncio.Task[None]] = {}
        """The tasks that end the servers that a reload has left out."""

    def _enabled(self, config: Config) -> dict[str, McpServerConfig]:
        """The servers that are enabled and allowed. Warns of those that are not allowed."""
        allowed, disabled = config.requirements.held_servers(config.mcp_servers)
        for text in disabled:
            self._setup.warn(text)
        return {name: server for name, server in allowed.items() if server.enabled}

    def reload(self, config: Config) -> None:
        """Take over the servers of a configuration, and start those that are new.

        Servers whose settings are the same keep running unless they have failed. Those that are
        left out end when they have answered.
        """
        self._setup = replace(self._setup, config=config)
        configs = self._enabled(config)
        servers: list[McpServer] = []
        for name, wanted in configs.items():
            server = self.by_name.get(name)
            if (
                server is None
                or server.error is not None
                or self.configs[name] != wanted
            ):
                server = self._server(name, wanted)
            servers.append(server)
        self.configs.clear()
        self.configs.update(configs)
        for server in self.put(servers):
            task = asyncio.create_task(server.retire())
            self._retiring[server] = task
            task.add_done_callback(partial(self._retired, server))

    def _retired(self, server: McpServer, _: asyncio.Task[None]) -> None:
        del self._retiring[server]

    def _server(self, name: str, config: McpServerConfig) -> McpServer:
        """Make a server of its configuration. It is not started."""
        setup = self._setup
        if config.url is None:
            transport = self._stdio_transport(config)
        else:
            headers = server_headers(name, config, setup.environment, setup.warn)
            auth = session_auth(setup.config, name)
            transport = HttpTransport(config.url, headers, auth)
        settings = ServerSettings(
            name=name,
            transport=transport,
            required=config.required,
            startup_timeout_s=config.startup_timeout_s,
            tool_timeout_s=config.tool_timeout_s,
            enabled_tools=config.enabled_tools,
            disabled_tools=config.disabled_tools,
        )
        return McpServer(
            settings,
            spawn=partial(self._spawn, name),
            elicitor=setup.elicitor,
            warn=partial(self._warn_about, name),
        )

    async def aclose(self) -> None:
        """Stop all servers and their processes."""
        retiring = dict(self._retiring)
        for task in retiring.values():
            task.cancel()
        try:
            await asyncio.gather(
                super().aclose(), *(server.aclose() for server in retiring)
            )
        finally:
            self._guardian.close()

    def _warn_about(self, name: str, text: str) -> None:
        """Pass on a warning of a server. If it failed, name the command that says more."""
        # The warning of a server that failed is the text of its error.
        server = self.by_name.get(name)
        has_failed = server is not None and text == server.error
        if has_failed and self._is_in_a_file(name):
            text += f"\n`codex-py mcp test {name}` says more."
        self._setup.warn(text)

    def _is_in_a_file(self, name: str) -> bool:
        """False for a server from the command line or a client, unknown to another command."""
        return any(
            layer.sets(("mcp_servers", name))
            for layer in self._setup.config.layers.layers
            if layer.name not in {"command line", "-c"}
        )

    def _spawn(self, name: str, transport: StdioTransport) -> PipedProcess:
        """Start the program of a server. Raises an `OSError` if it cannot be started."""
        # Search each time: the program may have been replaced in the meantime.
        start = self._programs.outside(
            transport.argv, transport.environment, transport.cwd
        )
        self._warn_of_other_program(name, transport)
        return PipedProcess(
            self._guardian, start.argv, cwd=start.cwd, environment=start.environment
        )

    def _warn_of_other_program(self, name: str, transport: StdioTransport) -> None:
        """Warn once if a shell would start another program than this one."""
        note = self._programs.passed_over_note(
            transport.argv[0], transport.environment, f"the MCP server `{name}`"
        )
        if note is not None and name not in self._warned:
            self._warned.add(name)
            self._setup.warn(note)

    def _stdio_transport(self, server: McpServerConfig) -> StdioTransport:
        """Describe the start of a server's program: words, folder and variables."""
        assert server.command is not None
        wanted = _INHERITED | set(server.env_vars)
        inherited = {
            name: value
            for name, value in self._setup.environment.items()
            if name in wanted or name.startswith("LC_")
        }
        cwd = self._programs.cwd()
        if server.cwd is not None:
            given = self._setup.config.cwd / server.cwd
            cwd = Path(os.path.normpath(given))
        argv = (server.command, *server.args)
        return StdioTransport(argv, cwd, {**inherited, **server.env})

    def __call__(self, thread: Thread) -> Extension:
        # Tools that a search finds are offered to the thread that searched.
        catalogue = McpCatalogue(self)
        # The first session owns the servers. Later calls come from its children.
        around_session = self._around_session
        if self._has_session:
            around_session = nullcontext
        self._has_session = True

        def find_tool() -> ToolFinder:
            rule = thread.settings.image_rule
            return mcp_tool_finder(self, self.configs, catalogue, rule)

        wrap_model = partial(self._wrap_model, catalogue)
        return Extension(
            around_session=around_session, wrap_model=wrap_model, find_tool=find_tool
        )

    def for_child(self, setup: SessionSetup) -> "McpFeature":  # noqa: ARG002
        """Share the servers of a session with its children."""
        return self

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        """Start the servers, wait for those that are required, and stop all at the end."""
        self.start()
        try:
            await self.require()
            if self._setup.options.begins_with_call:
                await self.settled()
            yield
        finally:
            await self.aclose()

    def _wrap_model(self, catalogue: McpCatalogue, model: ModelStream) -> ModelStream:
        """Let requests that offer tools wait for the servers, and offer their tools too."""

        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            # A request without tools, such as the last one of a compaction, must not get any.
            if not (prompt.tools and self.by_name):
                async with model(prompt) as events:
                    yield events
                return
            wait = self._setup.options.mcp_startup_wait
            if wait is not None and self.starting():
                await wait(self.starting, self.settled())
            else:
                await self.settled()
            tools = (*prompt.tools, *catalogue.specs())
            async with model(replace(prompt, tools=tools)) as events:
                yield events

        return stream


@asynccontextmanager
async def started_servers(
    config: Config,
    environment: Mapping[str, str],
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[McpFeature]:
    """Run the servers of a configuration without a session. They cannot ask the user.

    They may still be starting; leaving the context stops them.
    """
    elicitor = DecliningElicitor()
    setup = SessionSetup(config, SessionOptions(), environment, None, elicitor, warn)
    servers = McpFeature(setup)
    servers.start()
    try:
        yield servers
    finally:
        await servers.aclose()


def server_headers(
    name: str,
    config: McpServerConfig,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> dict[str, str]:
    """Return the headers of every request to a server with a URL.

    Warns if the variable of its token is not set.
    """
    headers = dict(config.http_headers)
    for header, variable in config.env_http_headers.items():
        value = environment.get(variable)
        if value:
            headers[header] = value
    token_variable = config.bearer_token_env_var
    if token_variable is None:
        return headers
    token = environment.get(token_variable)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    else:
        problem = f"its `bearer_token_env_var` {token_variable!r} is not set"
        warn(f"MCP server `{name}`: {problem}")
    return headers
