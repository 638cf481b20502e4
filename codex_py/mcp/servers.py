"""The MCP servers of a session, and the names of their tools for the model. LIGHT.

A name is `mcp__server__tool`. It has at most 64 characters, all of them letters, digits, `_` and
`-`, as the strictest provider demands.
"""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from codex_py.errors import CodexError
from codex_py.mcp.server import McpServer
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.mcp import McpServerStatus

MAX_NAME_CHARS = 64
_HASH_CHARS = 8
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")

ToolId: TypeAlias = tuple[str, str]
"""The configured name of a server, and the server's name of a tool."""
FoundTool: TypeAlias = tuple[McpServer, ServerTool]
"""A tool, after its server."""
Watcher: TypeAlias = Callable[[McpServerStatus], None]


class McpServers:
    """The servers of a session, which start, run and end at the same time."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        by_name = sorted(servers, key=lambda server: server.name)
        self.by_name = {server.name: server for server in by_name}
        """The servers by name, sorted."""
        self._indexed: list[tuple[ServerTool, ...]] | None = None
        """The lists of tools that `_tools` and `_aliases` are made from."""
        self._watcher: Watcher | None = None
        self._tools: Mapping[str, FoundTool] = {}
        self._aliases: Mapping[str, str] = {}
        """The names in `_tools` by a folded spelling; empty if several tools share it."""

    def start(self) -> None:
        for server in self.by_name.values():
            server.start()

    def watch(self, watcher: Watcher) -> None:
        """Tell the watcher of each server now, and again whenever its state changes.

        Args:
            watcher: must neither raise nor block. It replaces the one before.
        """
        self._watcher = watcher
        for server in self.by_name.values():
            self._let_watch(server, watcher)
            watcher(server.status())

    def put(self, servers: Iterable[McpServer]) -> list[McpServer]:
        """Replace all servers, and start those that are new. Returns those that are left out.

        The watcher is told of those that stay, too. The caller closes those that are left out.
        """
        earlier = list(self.by_name.values())
        by_name = sorted(servers, key=lambda server: server.name)
        self.by_name = {server.name: server for server in by_name}
        # Tools may be the same ones, and belong to another server.
        self._indexed = None
        watcher = self._watcher
        for server in by_name:
            if server in earlier and watcher is not None:
                watcher(server.status())
            elif server not in earlier:
                if watcher is not None:
                    self._let_watch(server, watcher)
                server.start()
        left_out = [server for server in earlier if server not in by_name]
        for server in left_out:
            server.changed = lambda: None
        return left_out

    def _let_watch(self, server: McpServer, watcher: Watcher) -> None:
        server.changed = lambda: watcher(server.status())

    async def settled(self) -> None:
        """Wait until each server is ready, with its latest list of tools, or has failed."""
        settling = [server.settled() for server in self.by_name.values()]
        await asyncio.gather(*settling)

    def starting(self) -> list[str]:
        """The names of the servers that `settled` waits for."""
        return [
            server.name for server in self.by_name.values() if not server.is_settled
        ]

    async def require(self) -> None:
        """Wait for the servers that the session requires.

        Raises:
            CodexError: one of them failed to start.
        """
        required = [
            server for server in self.by_name.values() if server.settings.required
        ]
        await asyncio.gather(*(server.settled() for server in required))
        errors = [server.error for server in required if server.error is not None]
        if errors:
            raise CodexError(
                f"required MCP servers failed to initialize: {'; '.join(errors)}",
                code="mcp",
            )

    def statuses(self) -> list[McpServerStatus]:
        """The status of each server, sorted by name."""
        return [server.status() for server in self.by_name.values()]

    def tools(self) -> Mapping[str, FoundTool]:
        """Every tool by the name that the model uses, sorted by name."""
        tools = [server.tools for server in self.by_name.values()]
        if tools != self._indexed:
            self._indexed = tools
            by_id = _tools_by_id(self.by_name.values())
            names = wire_names(by_id)
            sorted_names = sorted(names.items(), key=lambda item: item[1])
            self._tools = {name: by_id[tool_id] for tool_id, name in sorted_names}
            self._aliases = _aliases(names)
        return self._tools

    def find(self, name: str) -> FoundTool | None:
        """The tool with this name, or with one that models confuse with it; see `folded`.

        The server and the tool may also be spelled as they name themselves.
        """
        tools = self.tools()
        alias = self._aliases.get(folded(name), "")
        return tools.get(name) or tools.get(alias)

    async def aclose(self) -> None:
        closing = [server.aclose() for server in self.by_name.values()]
        await asyncio.gather(*closing)


def _tools_by_id(servers: Iterable[McpServer]) -> Mapping[ToolId, FoundTool]:
    by_id: dict[ToolId, FoundTool] = {}
    for server in servers:
        for tool in server.tools:
            tool_id = (server.name, tool.name)
            by_id[tool_id] = (server, tool)
    return by_id


def _aliases(names: Mapping[ToolId, str]) -> Mapping[str, str]:
    """The names by their folded spellings; empty for a spelling that several tools share."""
    aliases: dict[str, str] = {}
    for tool_id, name in names.items():
        for spelling in (name, _plain_name(tool_id)):
            alias = folded(spelling)
            known = aliases.setdefault(alias, name)
            if known != name:
                aliases[alias] = ""
    return aliases


def wire_names(tools: Iterable[ToolId]) -> dict[ToolId, str]:
    """A unique name for every tool, independent of their order.

    A name that is too long, or that several tools would share, is shortened and ends with a hash.
    """
    names = {tool: _NOT_IN_A_NAME.sub("_", _plain_name(tool)) for tool in tools}
    uses = Counter(names.values())
    for tool, name in names.items():
        if uses[name] > 1 or len(name) > MAX_NAME_CHARS:
            names[tool] = _hashed(name, tool)
    return names


def _plain_name(tool: ToolId) -> str:
    """The name before characters are replaced and the length is limited."""
    server_name, tool_name = tool
    return f"mcp__{server_name}__{tool_name}"


def folded(name: str) -> str:
    """Return one spelling for names that models confuse, such as `get-sum` and `get_sum`."""
    return _NOT_IN_A_NAME.sub("_", name).replace("-", "_")


def _hashed(name: str, tool: ToolId) -> str:
    """A name of the greatest length that ends with a hash of the tool's id."""
    encoded = "\0".join(tool).encode(errors="replace")
    digest = hashlib.sha1(encoded, usedforsecurity=False).hexdigest()
    beginning = name[: MAX_NAME_CHARS - _HASH_CHARS - 1]
    return f"{beginning}_{digest[:_HASH_CHARS]}"
