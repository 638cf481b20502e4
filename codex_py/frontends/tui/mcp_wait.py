"""Waits for MCP servers to start, as long as the user does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from codex_py.frontends.tui.status import Status


class McpStartupWait:
    """
    Args:
        status: shows the servers that have not started yet.
        changed: is called when there is something new to draw.
    """

    def __init__(self, status: Status, changed: Callable[[], None]) -> None:
        self._status = status
        self._changed = changed
        self._given_up: asyncio.Future[None] | None = None

    async def wait(self, missing: Callable[[], Sequence[str]], settled: Awaitable[None]) -> None:
        """Return when all servers have started or failed, or when the user gives up.

        Args:
            missing: names of the servers that have not.
        """
        starting = asyncio.ensure_future(settled)
        self._given_up = asyncio.get_running_loop().create_future()
        self._status.waiting_for = missing
        self._changed()
        try:
            await asyncio.wait([starting, self._given_up], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._given_up = None
            self._status.waiting_for = None
            self._changed()
            starting.cancel()
        if starting.done() and not starting.cancelled():
            starting.result()

    def give_up(self) -> bool:
        """Stop waiting; True if there was something to wait for."""
        if self._given_up is None or self._given_up.done():
            return False
        self._given_up.set_result(None)
        return True
