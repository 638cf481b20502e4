"""A session in a task of its own: any task of the loop may open it, run its turns and close it."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from codex_py.core.session import Session

_T = TypeVar("_T")


class HostedSession:
    """An open session. The task that holds it closes it too, as when a loop ends and cancels its tasks."""

    def __init__(self, opening: AbstractAsyncContextManager[Session]) -> None:
        self._opening = opening
        self._opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._host = asyncio.create_task(self._hold())

    async def opened(self) -> Session:
        """The session, once it is ready. Raises what opening it raises."""
        return await asyncio.shield(self._opened)

    async def run(self, turn: Coroutine[Any, Any, _T]) -> _T:
        """Run a turn, or what else takes the whole session, in a task of its own.

        Cancelling this ends the turn in order, and waits for its end.
        """
        task = asyncio.create_task(turn)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        return task.result()

    async def close(self) -> None:
        """End a running turn, and close the session. Once is enough."""
        self.let_close()
        await asyncio.wait([self._host])

    def let_close(self) -> None:
        """As `close`, without waiting for it. A session that is still opening is not opened."""
        self._closing.set()
        if not self._opened.done():
            self._host.cancel()

    async def _hold(self) -> None:
        try:
            async with self._opening as session:
                self._opened.set_result(session)
                await self._closing.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                self._opened.cancel()
                raise
            self._opened.set_exception(error)
            # Nobody may wait for it any more, which asyncio would complain about.
            self._opened.exception()
