"""The state of the MCP servers of a session, for the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

McpFailure: TypeAlias = Literal[
    "not_started", "exited", "timed_out", "refused", "unreachable", "protocol"
]
"""Why a server is not available: its program cannot be started, or exited; it did not start in time; it answered
with an HTTP error; nothing listens at its address; it broke the protocol."""


@dataclass(frozen=True, slots=True)
class McpToolSummary:
    name: str
    """As the server names it."""
    description: str


@dataclass(frozen=True, slots=True)
class McpServerStatus:
    """One server at one moment."""

    name: str
    state: Literal["starting", "ready", "failed"]
    tools: tuple[McpToolSummary, ...] = ()
    """The tools that the configuration allows."""
    software: str | None = None
    """Name and version, as the server gives them; None before the handshake."""
    protocol_version: str | None = None
    connect_s: float | None = None
    """From its start to the end of the handshake; None before that."""
    list_s: float | None = None
    """How long it took to list its tools."""
    failure: McpFailure | None = None
    error: str | None = None
    """A sentence that names the server, and the end of its stderr."""


@runtime_checkable
class McpServers(Protocol):
    """The servers of a session, for a frontend: `session.feature(McpServers)`."""

    def statuses(self) -> Sequence[McpServerStatus]:
        """Sorted by name, without disabled servers."""
        ...
