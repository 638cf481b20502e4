"""The process of a server, as `app` starts and owns it. LIGHT."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from codex_py.mcp.settings import StdioTransport


class ServerProcess(Protocol):
    exited: asyncio.Event
    """Set when it has exited, its stderr was read, and its process group is gone."""
    exit_code: int | None
    """Negative after a signal; None until it has exited."""

    async def streams(
        self, *, max_line_bytes: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Its stdout and stdin. Called once."""
        ...

    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        ...

    async def stop(self) -> None:
        """Close its input, wait, then kill its process group if it is still there.

        It has exited afterwards, even if this is cancelled.
        """
        ...


Spawn: TypeAlias = Callable[[StdioTransport], ServerProcess]
"""Starts a server in the running loop. Raises OSError or ValueError if it cannot be started."""
