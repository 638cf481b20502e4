"""The running turn of a session, or its running compaction: what has come of it, and how it is ended from outside."""

import asyncio
from typing import Any

from codex_py.errors import CodexError
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import Denied
from codex_py.protocol.extension import TurnStart


class RunningTurn:
    """Made in the task that runs it."""

    def __init__(self, start: TurnStart) -> None:
        self.start = start
        self.takes_steering = False
        """The turn has a next request, with which steered prompts go out."""
        self.ending: CodexError | None = None
        """Why the turn was cancelled, if not by its user."""
        self.last_message: str | None = None
        self.denied = Denied()
        self.overridden: events.StopOverridden | None = None
        """An extension wanted to continue the turn that ends."""
        self.is_over = False
        """The last event of the turn is due: `end` is too late."""
        self._is_ended = False
        """The turn was cancelled by `end`."""
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancellations = task.cancelling()

    def watch(self, event: events.Event) -> None:
        match event:
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self.last_message = text
            case events.CallDenied(cause=cause, allow=allow):
                self.denied = self.denied.plus(cause, allow)
            case _:
                pass

    def end(self, error: CodexError | None = None) -> None:
        """Cancel the turn, once. `error`: the reason; None if the user wants it."""
        if not (self._is_ended or self.is_over):
            self._is_ended = True
            self.ending = error
            self.takes_steering = False
            self._task.cancel()

    async def be_cancelled(self) -> None:
        """Let the cancellation of `end` arrive, if the turn has awaited nothing since.

        Before Python 3.13, `uncancel` does not take back one that has not arrived: the caller's next `await` would get
        it. See https://github.com/python/cpython/issues/116720.
        """
        if self._is_ended:
            await asyncio.sleep(0)

    def take_back_cancellation(self, end: BaseException | None) -> None:
        """Take back the cancellation of `end`, so that the caller of the turn can go on.

        Args:
            end: what ended the turn.

        Raises:
            CancelledError: others have cancelled the turn.
        """
        if self._is_ended:
            self._task.uncancel()
        by_others = self._task.cancelling() > self._cancellations
        is_cancelled = isinstance(end, asyncio.CancelledError)
        if by_others or (is_cancelled and not self._is_ended):
            raise asyncio.CancelledError
