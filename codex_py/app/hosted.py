"""A session in a separate task. Any task of the loop may open it, run its turns and close it.

It can also be opened again. The threads of a server are such sessions: the server closes those that
were used longest ago, and continues them from their files.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar, cast

from codex_py.app.options import SessionOptions
from codex_py.core.session import Session
from codex_py.protocol.dispatch import is_cancelled
from codex_py.protocol.frozen import frozen

_T = TypeVar("_T")
_MAX_IDLE: Final = 16
"""The number of sessions that stay open between turns, with their MCP servers and connections."""


@frozen
class Outcome(Generic[_T]):
    """The value of an operation, or the exception that ended it."""

    _value: _T
    _error: BaseException | None = None

    def result(self) -> _T:
        """Return the value, or raise the exception."""
        if self._error is not None:
            raise self._error
        return self._value


async def outcome_of(operation: Coroutine[Any, Any, _T]) -> Outcome[_T]:
    """Await the operation and return its outcome, even if it raises, so that its task raises nothing.

    A task that raises `SystemExit` or `KeyboardInterrupt` ends its loop before anybody who awaits
    the task gets the exception.
    """
    try:
        return Outcome(await operation)
    except BaseException as error:  # noqa: BLE001 - the outcome raises it
        return Outcome(cast("_T", None), error)


class HostedSession:
    """A session, open or closed.

    One task opens, holds and closes it. If that task is cancelled, for example because the loop ends,
    it closes the session too.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._host: asyncio.Task[None] | None = None
        """The task that holds the session open."""
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
        """Open the session. Raises the errors of `opening`."""
        self._opened = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._host = asyncio.create_task(self._hold(opening))
        try:
            session = await asyncio.shield(self._opened)
            self._session = session
        except BaseException:
            # The client has left, or the session did not open. So there are no choices to keep, as the
            # `close` of the subclass does.
            await HostedSession.close(self)
            raise
        return session

    async def run(self, turn: Coroutine[Any, Any, _T]) -> _T:
        """Run a turn, or another exclusive operation, as a separate task.

        A cancellation ends the turn in order, and waits for its end. Raises what the turn raises.
        """
        task = asyncio.create_task(outcome_of(turn))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        return task.result().result()

    async def close(self) -> None:
        """End a running turn and close the session.

        Further calls do nothing. Raises the exception if a bug has ended the session.
        """
        self.let_close()
        try:
            host = self._host
            if host is not None:
                await asyncio.wait([host])
                if not host.cancelled():
                    host.result()
        finally:
            self._session = None
            self._host = None

    def let_close(self) -> None:
        """Start to close the session, without waiting.

        If the session is still being opened, that is cancelled.
        """
        self._closing.set()
        if self._host is not None and not self._opened.done():
            self._host.cancel()

    async def _hold(self, opening: AbstractAsyncContextManager[Session]) -> None:
        """Open the session, hold it until `_closing` is set, and close it."""
        try:
            async with opening as session:
                self._opened.set_result(session)
                await self._closing.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                if is_cancelled():
                    # Nobody waits for the session any more.
                    self._opened.cancel()
                    raise
                # The opening raised it by itself. Whoever waits would take it for a cancellation of his.
                bug = RuntimeError(f"the session was not opened: {error!r}")
                bug.__cause__ = error
                error = bug
            self._opened.set_exception(error)
            # If nobody waits for the error any more, asyncio would complain.
            self._opened.exception()


class HostedThread(HostedSession):
    """A thread of a server for programs or editors.

    Attributes:
        options: the options for the next opening of the session.
        lock: held while the session is opened or closed, and while a turn starts.
    """

    def __init__(self, options: SessionOptions) -> None:
        super().__init__()
        self.options = options
        self.lock = asyncio.Lock()

    @property
    def is_idle(self) -> bool:
        """True if the session can be closed, and opened again later."""
        return self.is_open and not self.lock.locked()

    async def host(self, opening: AbstractAsyncContextManager[Session]) -> Session:
        session = await super().host(opening)
        # From now on, the fork is a thread of its own.
        self.options = replace(self.options, resume=session.thread_id, fork=False)
        return session

    async def close(self) -> None:
        """End the turn and close the session.

        The user's choices still hold when it is opened again.
        """
        if self.is_open:
            self.options = replace(self.options, choices=self.session.settings.choices)
        await super().close()


_ThreadT = TypeVar("_ThreadT", bound=HostedThread)


class HostedThreads(Generic[_ThreadT]):
    """The threads of a server, by id. A thread may have several ids."""

    def __init__(self) -> None:
        self._threads: dict[str, _ThreadT] = {}
        """The threads in the order of their last use, the latest at the end."""
        self._closing: set[asyncio.Task[None]] = set()
        """The tasks that close sessions."""

    def __iter__(self) -> Iterator[_ThreadT]:
        """Yield each thread once."""
        return iter(dict.fromkeys(self._threads.values()))

    def get(self, thread_id: str) -> _ThreadT | None:
        return self._threads.get(thread_id)

    def use(self, thread_id: str, thread: _ThreadT) -> None:
        """Add a thread, or record that it is used again."""
        self._threads.pop(thread_id, None)
        self._threads[thread_id] = thread

    def remove(self, thread: _ThreadT) -> None:
        """Forget a thread under all of its ids."""
        names = [name for name, each in self._threads.items() if each is thread]
        for name in names:
            del self._threads[name]

    def close_idle(self) -> None:
        """Close the sessions that were used longest ago."""
        idle = [thread for thread in self if thread.is_idle]
        for thread in idle[:-_MAX_IDLE]:
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
