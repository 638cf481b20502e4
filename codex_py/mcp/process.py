"""The process of a server, which whoever composes the program starts and owns. LIGHT."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from codex_py.mcp.settings import StdioTransport


class ServerProcess(Protocol):
    exited: asyncio.Event
    """Set when it has exited, its stderr was read, and nothing that it started is left."""
    exit_code: int | None
    """Negative after a signal; None until it has exited."""

    async def streams(
        self, *, max_line_bytes: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Its stdout and its stdin. Called once."""
        ...

    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        ...

    async def stop(self) -> None:
        """Close its input, and kill it and all that it started unless they end of themselves.

        It has exited afterwards, also when this is cancelled.
        """
        ...


Spawn: TypeAlias = Callable[[StdioTransport], ServerProcess]
"""Starts a server in the running loop. OSError or ValueError where it cannot be started."""
