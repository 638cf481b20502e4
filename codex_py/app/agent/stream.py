"""The events of one turn, as an async iterator."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, Self

from codex_py.app.agent.result import OutputT, Result, aborted_before_start
from codex_py.errors import CodexError
from codex_py.protocol.events import Event

_MAX_WAITING: Final = 10_000
"""The number of events that may wait for a reader. Beyond it, events that only show progress are
left out."""


class EventStream(Generic[OutputT]):
    """The events of one turn as they happen; see `Agent.stream`. The turn begins with the loop.

    The loop ends with the turn, and raises the turn's `CodexError` if it failed. Leaving the loop
    early interrupts the turn; `async with` waits for its end.

    >>> import asyncio
    >>> from codex_py import Agent, MessageDelta
    >>> from codex_py.testing import FakeModel
    >>> async def main():
    ...     async with Agent(FakeModel("Hello.")).stream("Say hello") as stream:
    ...         async for event in stream:
    ...             if isinstance(event, MessageDelta):
    ...                 print(event.delta, end="|")
    ...         print(stream.result.text)
    >>> asyncio.run(main())
    He|ll|o.|Hello.
    """

    def __init__(
        self,
        run: Callable[[Callable[[Event], None]], Awaitable[Result[OutputT]]],
        leave: Callable[["asyncio.Task[Any]"], None],
    ) -> None:
        """
        Args:
            run: runs the turn, and calls its argument with each event.
            leave: interrupts the task that runs the turn.
        """
        self._run = run
        self._leave = leave
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Event] = deque()
        self._news = asyncio.Event()
        """Set when an event has come, or the turn has ended."""
        self._result: Result[OutputT] | None = None
        self._error: BaseException | None = None
        """The error that ended the turn. It is raised after the last event."""
        self._is_left = False
        """True if the turn was interrupted because nobody reads on."""

    @property
    def result(self) -> Result[OutputT]:
        """The result of the turn.

        After a failure or an interruption, it has the results so far, and an `error`.

        Raises:
            RuntimeError: the turn has not ended, or it never began, or a bug ended it.
        """
        if self._task is None:
            raise RuntimeError(
                "the turn has not ended: it begins with `async for event in stream`"
            )
        if not self._task.done():
            raise RuntimeError(
                "the turn has not ended; read its events, or `await stream.aclose()`"
            )
        if self._result is None:
            raise RuntimeError(
                f"the turn has no result: {self._error!r}"
            ) from self._error
        return self._result

    async def aclose(self) -> None:
        """Interrupt the turn if it runs, and wait for its end."""
        if self._task is not None:
            self.leave()
            await asyncio.wait([self._task])

    def leave(self) -> None:
        """Interrupt the turn if it runs. Further calls do nothing."""
        if self._is_left or self._task is None or self._task.done():
            return
        self._leave(self._task)
        self._is_left = True

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._task is None:
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(lambda _: self._news.set())
        return _Events(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def next(self) -> Event:
        """Return the next event.

        Raises `StopAsyncIteration` when the turn has ended, or the error that it failed with.
        """
        assert self._task is not None
        while not self._waiting:
            if self._task.done():
                raise self._error or StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    async def _work(self) -> None:
        """Run the turn, and keep its result and its error."""
        try:
            self._result = await self._run(self._tell)
        except asyncio.CancelledError as error:
            if self._is_left:
                # An interrupted turn that has begun returns a result, so this one has not begun.
                self._end(aborted_before_start())
            else:
                self._end(error)
            raise
        except Exception as error:  # noqa: BLE001 - the reader of the events gets it
            self._end(error)
        except BaseException as error:
            self._end(error)
            raise

    def _end(self, error: BaseException) -> None:
        self._error = error
        if isinstance(error, CodexError):
            self._result = error.result

    def _tell(self, event: Event) -> None:
        # Only events that show progress have no type on the wire.
        only_shows_progress = event.type is None
        if only_shows_progress and len(self._waiting) >= _MAX_WAITING:
            return
        self._waiting.append(event)
        self._news.set()


class _Events(AsyncIterator[Event]):
    """The iterator of one `async for` loop, which is deleted when the loop is left."""

    def __init__(self, stream: EventStream[Any]) -> None:
        self._stream = stream

    # This is no coroutine: its frame would be part of the traceback of a cancelled loop, and
    # whoever keeps the exception would keep the iterator.
    def __anext__(self) -> Coroutine[Any, Any, Event]:
        return self._stream.next()

    def __del__(self) -> None:
        # The event loop may be closed.
        with suppress(RuntimeError):
            self._stream.leave()
