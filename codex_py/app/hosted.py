"""A session in a task of its own: any task of the loop may open it, run its turns and close it.

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
        """End a running turn, and close the session. Once is enough. Raises what a bug has ended the session with."""
        self.let_close()
        await asyncio.wait([self._host])
        if not self._host.cancelled():
            self._host.result()

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


class HostedThread:
    """A thread of a server for programs or editors. Its session is open or not.

    Attributes:
        options: those that the session is opened with the next time.
        lock: held by whoever opens or closes the session, or starts a turn.
    """

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.lock = asyncio.Lock()
        self._hosted: HostedSession | None = None
        self._opened: Session | None = None

    @property
    def session(self) -> Session:
        assert self._opened is not None
        return self._opened

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    @property
    def is_idle(self) -> bool:
        """True if it can be closed, and opened again later."""
        return self.is_open and not self.lock.locked()

    async def host(self, opening: AbstractAsyncContextManager[Session]) -> Session:
        """Open the session. Raises what opening it raises."""
        self._hosted = HostedSession(opening)
        try:
            self._opened = session = await self._hosted.opened()
        except BaseException:
            # For instance, the client left meanwhile.
            await self._hosted.close()
            raise
        # A fork is one thread from now on.
        self.options = replace(self.options, resume=session.thread_id, fork=False)
        return session

    async def close(self) -> None:
        """End the turn, and close the session. The choices of its user hold when it is opened again."""
        if self._opened is not None:
            self.options = replace(self.options, choices=self._opened.settings.choices)
        try:
            if self._hosted is not None:
                await self._hosted.close()
        finally:
            self._opened = self._hosted = None


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
        self._threads = {name: each for name, each in self._threads.items() if each is not thread}

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
