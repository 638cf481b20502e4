"""What it takes to reach an MCP server, with every name looked up. LIGHT."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A program that we start and speak to over its standard input and output."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    """All that it gets."""


MakeAuth: TypeAlias = "Callable[[Callable[[str | None], None]], httpx2.Auth]"
"""Makes what signs every request to a server. It tells the callable why the server turns us away, and with
None that it does not any more."""


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server at an address: Streamable HTTP."""

    url: str
    headers: Mapping[str, str]
    make_auth: "MakeAuth | None" = None
    """Called once for each connection, when the SDK is loaded."""


Transport: TypeAlias = StdioTransport | HttpTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    name: str
    """As configured; any text."""
    transport: Transport
    required: bool = False
    """Without it there is no session."""
    startup_timeout_s: float = 10.0
    """From its start to its list of tools."""
    tool_timeout_s: float = 300.0
    enabled_tools: frozenset[str] | None = None
    """The server's own names; None for all."""
    disabled_tools: frozenset[str] = frozenset()
    """Counts after `enabled_tools`."""

    def offers(self, tool: str) -> bool:
        return (
            self.enabled_tools is None or tool in self.enabled_tools
        ) and tool not in self.disabled_tools
