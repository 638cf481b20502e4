"""A session in a separate task. Any task of the loop may open it, run its turns and close it.

It can also be opened again. The sessions of the library, of subagents and of servers are such ones.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar, cast

from codex_py.core.session import Session
from codex_py.protocol.dispatch import is_cancelled
from codex_py.protocol.frozen import frozen

_T = TypeVar("_T")


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

    @property
    def is_closing(self) -> bool:
        """True from the beginning of a close to the next opening."""
        return self._closing.is_set()

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
