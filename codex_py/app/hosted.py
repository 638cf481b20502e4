"""A session in a task of its own: any task of the loop may open it, run its turns, close it and open it again.

The threads of a server are such sessions; those that were used longest ago are closed, and go on from their files.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from codex_py.app.options import SessionOptions
from codex_py.core.session import Session

_T = TypeVar("_T")
_MAX_IDLE: Final = 16
"""Sessions that stay open between turns, with their MCP servers and connections."""


class HostedSession:
    """A session, open or not. The task that holds it closes it too, as when a loop ends and cancels its tasks."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._host: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Session]
        self._closing = asyncio.Event()

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def host(self, opening: AbstractAsyncContextManager[Session]) -> Session:
        """Open the session. Raises what opening it raises."""
        self._opened = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._host = asyncio.create_task(self._hold(opening))
        try:
            self._session = session = await asyncio.shield(self._opened)
        except BaseException:
            # For instance, the client left meanwhile.
            await HostedSession.close(self)
            raise
        return session

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
        """End a running turn, and close the session. Once is enough. Raises what a bug has ended the session with."""
        self.let_close()
        try:
            host = self._host
            if host is not None:
                await asyncio.wait([host])
                if not host.cancelled():
                    host.result()
        finally:
            self._session = self._host = None

    def let_close(self) -> None:
        """As `close`, without waiting for it. A session that is still opening is not opened."""
        self._closing.set()
        if self._host is not None and not self._opened.done():
            self._host.cancel()

    async def _hold(self, opening: AbstractAsyncContextManager[Session]) -> None:
        try:
            async with opening as session:
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


class HostedThread(HostedSession):
    """A thread of a server for programs or editors.

    Attributes:
        options: those that the session is opened with the next time.
        lock: held by whoever opens or closes the session, or starts a turn.
    """

    def __init__(self, options: SessionOptions) -> None:
        super().__init__()
        self.options = options
        self.lock = asyncio.Lock()

    @property
    def is_idle(self) -> bool:
        """True if it can be closed, and opened again later."""
        return self.is_open and not self.lock.locked()

    async def host(self, opening: AbstractAsyncContextManager[Session]) -> Session:
        session = await super().host(opening)
        # A fork is one thread from now on.
        self.options = replace(self.options, resume=session.thread_id, fork=False)
        return session

    async def close(self) -> None:
        """End the turn, and close the session. The choices of its user hold when it is opened again."""
        if self.is_open:
            self.options = replace(self.options, choices=self.session.settings.choices)
        await super().close()


_ThreadT = TypeVar("_ThreadT", bound=HostedThread)


class HostedThreads(Generic[_ThreadT]):
    """The threads of a server, by their ids. One may have several."""

    def __init__(self) -> None:
        self._threads: dict[str, _ThreadT] = {}
        """The one that was used last at the end."""
        self._closing: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[_ThreadT]:
        """Each once."""
        return iter(dict.fromkeys(self._threads.values()))

    def get(self, thread_id: str) -> _ThreadT | None:
        return self._threads.get(thread_id)

    def use(self, thread_id: str, thread: _ThreadT) -> None:
        """Add a thread, or note that it is used again."""
        self._threads.pop(thread_id, None)
        self._threads[thread_id] = thread

    def remove(self, thread: _ThreadT) -> None:
        self._threads = {
            name: each for name, each in self._threads.items() if each is not thread
        }

    def close_idle(self) -> None:
        """Close the sessions that were used longest ago."""
        for thread in [thread for thread in self if thread.is_idle][:-_MAX_IDLE]:
            task = asyncio.create_task(self._close(thread))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """End every turn, and close every session."""
        closing = [*self._closing, *(thread.close() for thread in self)]
        self._threads = {}
        await asyncio.gather(*closing, return_exceptions=True)

    async def _close(self, thread: _ThreadT) -> None:
        if thread.is_idle:
            async with thread.lock:
                await thread.close()
