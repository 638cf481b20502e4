"""The MCP servers of a session: made from the configuration.

Their tools are offered to the model. LIGHT.

Part of the composition root. It and all other MCP modules are imported only if a server is configured.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.app.mcp_login import session_auth
from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import user_programs
from codex_py.config.mcp import McpServerConfig
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.settings import HttpTransport, ServerSettings, StdioTransport
from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess
from codex_py.protocol.extension import Extension, Thread, ToolFinder
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.tool import mcp_tool_finder

_INHERITED: Final = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
"""Variables of our own environment that every server gets, besides `LC_*`: no keys, as in Codex."""


class McpFeature(McpServers):
    """The configured servers with their processes, and the tools of theirs that are offered.

    A frontend asks this feature for their status.
    """

    def __init__(self, setup: SessionSetup) -> None:
        config = setup.config
        environment = setup.environment
        self._setup = setup
        allowed, disabled = config.requirements.held_servers(config.mcp_servers)
        for text in disabled:
            setup.warn(text)
        self.configs = {name: c for name, c in allowed.items() if c.enabled}
        self._programs = user_programs(config, environment, setup.options.add_dirs)
        self._guardian = Guardian()
        self._told: set[str] = set()
        """The servers whose programs were told of."""
        servers: list[McpServer] = []
        for name, server in self.configs.items():
            if server.url is None:
                transport = self._stdio_transport(server)
            else:
                headers = server_headers(name, server, environment, setup.warn)
                transport = HttpTransport(
                    server.url, headers, session_auth(config, name)
                )
            settings = ServerSettings(
                name=name,
                transport=transport,
                required=server.required,
                startup_timeout_s=server.startup_timeout_s,
                tool_timeout_s=server.tool_timeout_s,
                enabled_tools=server.enabled_tools,
                disabled_tools=server.disabled_tools,
            )
            servers.append(
                McpServer(
                    settings,
                    spawn=partial(self._spawn, name),
                    elicitor=setup.elicitor,
                    warn=partial(self._warn_of, settings.name),
                )
            )
        super().__init__(servers)
        self._has_session = False

    async def aclose(self) -> None:
        """Stop all servers and their processes."""
        try:
            await super().aclose()
        finally:
            self._guardian.close()

    def _warn_of(self, name: str, text: str) -> None:
        is_last = text == self.by_name[name].error
        if is_last and self._is_in_a_file(name):
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
        # Search each time: the program may have been replaced in the meantime.
        start = self._programs.outside(
            transport.argv, transport.environment, transport.cwd
        )
        self._tell_program(name, transport)
        return PipedProcess(
            self._guardian, start.argv, cwd=start.cwd, environment=start.environment
        )

    def _tell_program(self, name: str, transport: StdioTransport) -> None:
        """Warn once if a shell would start another program than this one."""
        note = self._programs.passed_over_note(
            transport.argv[0], transport.environment, f"the MCP server `{name}`"
        )
        if note is not None and name not in self._told:
            self._told.add(name)
            self._setup.warn(note)

    def _stdio_transport(self, server: McpServerConfig) -> StdioTransport:
        assert server.command is not None
        wanted = _INHERITED | set(server.env_vars)
        inherited = {
            name: value
            for name, value in self._setup.environment.items()
            if name in wanted or name.startswith("LC_")
        }
        if server.cwd is None:
            cwd = self._programs.cwd()
        else:
            cwd = Path(os.path.normpath(self._setup.config.cwd / server.cwd))
        argv = (server.command, *server.args)
        return StdioTransport(argv, cwd, {**inherited, **server.env})

    def __call__(self, thread: Thread) -> Extension:
        # Tools that a search finds are offered to the thread that searched.
        catalogue = McpCatalogue(self)
        # The first session owns the servers. Later calls come from its children.
        if self._has_session:
            around_session = nullcontext
        else:
            around_session = self._around_session
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
        self.start()
        try:
            await self.require()
            if self._setup.options.begins_with_call:
                await self.settled()
            yield
        finally:
            await self.aclose()

    def _wrap_model(self, catalogue: McpCatalogue, model: ModelStream) -> ModelStream:
        """Requests that offer tools wait for the servers and offer theirs."""

        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            # A request without tools, such as the last one of a compaction, must not get any.
            if not prompt.tools:
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


def server_headers(
    name: str,
    config: McpServerConfig,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> dict[str, str]:
    """Make the headers of every request to a server with a URL.

    Warns if the variable of its token is not set.
    """
    headers = dict(config.http_headers)
    for header, variable in config.env_http_headers.items():
        value = environment.get(variable)
        if value:
            headers[header] = value
    variable = config.bearer_token_env_var
    if variable is not None:
        token = environment.get(variable)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            warn(
                f"MCP server `{name}`: its `bearer_token_env_var` {variable!r} is not set"
            )
    return headers
