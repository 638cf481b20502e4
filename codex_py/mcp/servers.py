"""The MCP servers of a session, and the names of their tools for the model: `mcp__server__tool`. LIGHT.

A name has at most 64 characters, all of them letters, digits, `_` and `-`, as the strictest provider demands.
"""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


class McpServers:
    """The servers of a session, which start, run and end at the same time."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self.by_name = {
            s.name: s for s in sorted(servers, key=lambda server: server.name)
        }
        """The servers by name, sorted."""
        self._indexed: list[tuple[ServerTool, ...]] = []
        self._tools: dict[str, tuple[McpServer, ServerTool]] = {}
        self._aliases: dict[str, str] = {}

    def start(self) -> None:
        for server in self.by_name.values():
            server.start()

    async def settled(self) -> None:
        """Wait until each is ready, with its latest list of tools, or has failed."""
        settling = [server.settled() for server in self.by_name.values()]
        await asyncio.gather(*settling)

    def starting(self) -> list[str]:
        """The names of the servers that `settled` waits for."""
        return [
            server.name for server in self.by_name.values() if not server.is_settled
        ]

    async def require(self) -> None:
        """Wait for the servers that the session requires.

        Raises a `CodexError` if one of them failed to start.
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

    def tools(self) -> Mapping[str, tuple[McpServer, ServerTool]]:
        """Every tool by the name that the model uses, sorted by name."""
        tools = [server.tools for server in self.by_name.values()]
        if tools != self._indexed:
            self._indexed = tools
            self._tools, self._aliases = _index(self.by_name.values())
        return self._tools

    def find(self, name: str) -> tuple[McpServer, ServerTool] | None:
        """The tool with this name, or with a similar spelling of it or of the server's own name."""
        tools = self.tools()
        alias = self._aliases.get(folded(name), "")
        return tools.get(name) or tools.get(alias)

    async def aclose(self) -> None:
        closing = [server.aclose() for server in self.by_name.values()]
        await asyncio.gather(*closing)


def _index(
    servers: Iterable[McpServer],
) -> tuple[dict[str, tuple[McpServer, ServerTool]], dict[str, str]]:
    by_id: dict[ToolId, tuple[McpServer, ServerTool]] = {
        (server.name, tool.name): (server, tool)
        for server in servers
        for tool in server.tools
    }
    names = wire_names(by_id)
    aliases: dict[str, str] = {}
    for tool_id, name in names.items():
        for spelling in (name, f"mcp__{tool_id[0]}__{tool_id[1]}"):
            # A spelling that several tools share is not used.
            known = aliases.setdefault(folded(spelling), name)
            if known != name:
                aliases[folded(spelling)] = ""
    by_name = sorted(names.items(), key=lambda item: item[1])
    return {name: by_id[tool_id] for tool_id, name in by_name}, aliases


def wire_names(tools: Iterable[ToolId]) -> dict[ToolId, str]:
    """A unique name for every tool, independent of their order.

    A name that is too long, or that several tools would share, is shortened and ends with a hash.
    """
    plain = {
        tool: _NOT_IN_A_NAME.sub("_", f"mcp__{tool[0]}__{tool[1]}") for tool in tools
    }
    shared = Counter(plain.values())
    names = dict(plain)
    for tool, name in plain.items():
        if shared[name] > 1 or len(name) > MAX_NAME_CHARS:
            names[tool] = _hashed(name, tool)
    return names


def folded(name: str) -> str:
    """One spelling for names that models confuse: `get-sum` and `get_sum`."""
    return _NOT_IN_A_NAME.sub("_", name).replace("-", "_")


def _hashed(name: str, tool: ToolId) -> str:
    digest = hashlib.sha1(
        "\0".join(tool).encode(errors="replace"), usedforsecurity=False
    )
    return (
        f"{name[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest.hexdigest()[:_HASH_CHARS]}"
    )
