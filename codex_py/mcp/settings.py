"""The settings of one MCP server, with variables and paths resolved, and its process. LIGHT."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A program that we start and talk to over its standard input and output."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    """The complete environment: nothing is inherited."""


MakeAuth: TypeAlias = Callable[[Callable[[str | None, bool], None]], Any]
"""Creates the server's `httpx2.Auth`, which signs each request.

The argument takes the reason of each authentication failure, and None once it works again; and
True if there was a login that the server refuses.
"""


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server at an address, with Streamable HTTP."""

    url: str
    headers: Mapping[str, str]
    make_auth: MakeAuth | None = None
    """Makes the `Auth` that signs the requests. It is called once for each connection, after the SDK
    was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one server."""

    name: str
    """The name in the configuration; any text."""
    transport: StdioTransport | HttpTransport
    required: bool = False
    """True: the session cannot start if the server fails to start."""
    startup_timeout_s: float = 10.0
    """The time limit from the server's start to its list of tools."""
    tool_timeout_s: float = 300.0
    enabled_tools: Collection[str] | None = None
    """The server's own names of the tools to offer; None for all."""
    disabled_tools: Collection[str] = ()
    """The server's own names of the tools to leave out; applied after `enabled_tools`."""

    def offers(self, tool: str) -> bool:
        """True if the model may call a tool, which is given by the server's own name."""
        if tool in self.disabled_tools:
            return False
        return self.enabled_tools is None or tool in self.enabled_tools


class ServerProcess(Protocol):
    """The process of a server, in a process group of its own."""

    exited: asyncio.Event
    """Set when the process has exited, its stderr was read, and its process group is gone."""
    exit_code: int | None
    """The exit code; negative after a signal, None until the process has exited."""

    async def streams(
        self, *, max_line_bytes: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The process's stdout and stdin. This is called once."""
        ...

    def stderr_tail(self) -> str:
        """The end of the process's output on stderr."""
        ...

    async def stop(self) -> None:
        """Close the process's input, wait, then kill its process group if it still exists.

        The process has exited afterwards, even if this is cancelled.
        """
        ...


Spawn: TypeAlias = Callable[[StdioTransport], ServerProcess]
"""Starts a server in the running event loop. Raises OSError or ValueError if that fails."""
