"""What is known of the MCP servers of a session, for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

McpFailure: TypeAlias = Literal[
    "not_started", "exited", "timed_out", "refused", "unreachable", "protocol"
]
"""Why a server is not to be had: its program cannot be run, or ended; it did not come up in time; it answered
with an HTTP error; nobody is there; it does not speak as it should."""


@dataclass(frozen=True, slots=True)
class McpToolSummary:
    name: str
    """The server's own."""
    description: str


@dataclass(frozen=True, slots=True)
class McpServerStatus:
    """One server at one moment."""

    name: str
    state: Literal["starting", "ready", "failed"]
    tools: tuple[McpToolSummary, ...] = ()
    """Those that the configuration lets through."""
    software: str | None = None
    """By its own account: name and version. None before it has said so."""
    protocol_version: str | None = None
    connect_s: float | None = None
    """From its start to the end of the handshake; None before that."""
    list_s: float | None = None
    """How long it took to list its tools."""
    failure: McpFailure | None = None
    error: str | None = None
    """A sentence that names it, and the end of its stderr."""


@runtime_checkable
class McpServers(Protocol):
    """The servers of a session, for a frontend: `session.feature(McpServers)`."""

    def statuses(self) -> Sequence[McpServerStatus]:
        """By name; servers that are switched off are not among them."""
        ...
