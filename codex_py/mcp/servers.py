"""All MCP servers of a session, and the tools of all of them. LIGHT."""

import asyncio
from collections.abc import Mapping, Sequence

from codex_py.errors import CodexError
from codex_py.mcp.naming import ToolId, folded, wire_names
from codex_py.mcp.server import McpServer
from codex_py.mcp.tools import ServerTool


class McpServers:
    """Servers that start, live and end side by side."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = {server.name: server for server in servers}
        self._revisions: list[int] = []
        self._tools: dict[str, tuple[McpServer, ServerTool]] = {}
        self._aliases: dict[str, str] = {}

    def start(self) -> None:
        for server in self._servers.values():
            server.start()

    def get(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    def all(self) -> list[McpServer]:
        """By name."""
        return [self._servers[name] for name in sorted(self._servers)]

    async def settled(self) -> None:
        """Wait until each is up with its latest list of tools, or is not to be had."""
        await asyncio.gather(*(server.settled() for server in self._servers.values()))

    def starting(self) -> list[str]:
        """Names of those that `settled` waits for."""
        return [server.name for server in self.all() if not server.is_settled]

    async def require(self) -> None:
        """Wait for the servers without which there is no session.

        Raises:
            CodexError: one of them is not to be had.
        """
        required = [server for server in self._servers.values() if server.settings.required]
        await asyncio.gather(*(server.settled() for server in required))
        if errors := [server.error for server in required if server.error is not None]:
            raise CodexError(
                f"required MCP servers failed to initialize: {'; '.join(errors)}", code="mcp"
            )

    def tools(self) -> Mapping[str, tuple[McpServer, ServerTool]]:
        """Every tool by the name that models call it by, in the order of these names."""
        revisions = [server.revision for server in self._servers.values()]
        if revisions != self._revisions:
            self._revisions = revisions
            self._tools, self._aliases = _index(self.all())
        return self._tools

    def find(self, name: str) -> tuple[McpServer, ServerTool] | None:
        """The tool that a model means: by its name, by the server's own, or by one much like these."""
        tools = self.tools()
        return tools.get(name) or tools.get(self._aliases.get(folded(name), ""))

    async def aclose(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))


def _index(
    servers: Sequence[McpServer],
) -> tuple[dict[str, tuple[McpServer, ServerTool]], dict[str, str]]:
    by_id: dict[ToolId, tuple[McpServer, ServerTool]] = {
        (server.name, tool.name): (server, tool) for server in servers for tool in server.tools
    }
    names = wire_names(by_id)
    aliases: dict[str, str] = {}
    for tool_id, name in names.items():
        for spelling in (name, f"mcp__{tool_id[0]}__{tool_id[1]}"):
            # A spelling that several tools share names none of them.
            known = aliases.setdefault(folded(spelling), name)
            if known != name:
                aliases[folded(spelling)] = ""
    by_name = sorted(names.items(), key=lambda item: item[1])
    return {name: by_id[tool_id] for tool_id, name in by_name}, aliases
