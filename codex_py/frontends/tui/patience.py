"""Waiting for MCP servers to start: as long as the user does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from codex_py.frontends.tui.status import Status


class Patience:
    """
    Args:
        status: shows whom is waited for.
        changed: is told to draw.
    """

    def __init__(self, status: Status, changed: Callable[[], None]) -> None:
        self._status = status
        self._changed = changed
        self._lost: asyncio.Future[None] | None = None

    async def wait(self, missing: Callable[[], Sequence[str]], settled: Awaitable[None]) -> None:
        """Come back when all servers have started or failed, or when the user will not wait for more.

        Args:
            missing: names of those that are waited for.
        """
        starting = asyncio.ensure_future(settled)
        self._lost = asyncio.get_running_loop().create_future()
        self._status.waiting_for = missing
        self._changed()
        try:
            await asyncio.wait([starting, self._lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._lost = None
            self._status.waiting_for = None
            self._changed()
            starting.cancel()
        if starting.done() and not starting.cancelled():
            starting.result()

    def lose(self) -> bool:
        """Wait no longer; whether anything was waited for."""
        if self._lost is None or self._lost.done():
            return False
        self._lost.set_result(None)
        return True
