"""The running turn or compaction of a session: its results so far, and the way to end it from
outside."""

import asyncio
from typing import Any

from codex_py.errors import CodexError
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import Denied
from codex_py.protocol.extension import TurnStart


class RunningTurn:
    """The state of a running turn or compaction. Create it in the task that runs the turn."""

    def __init__(self, start: TurnStart) -> None:
        self.start = start
        self.takes_steering = False
        """True if the turn will send another request, which can carry steered prompts."""
        self.ending: CodexError | None = None
        """The reason for the cancellation; None if the user cancelled the turn."""
        self.last_message: str | None = None
        """The text of the last message of the agent."""
        self.denied = Denied()
        """The calls that a policy, or the user, refused."""
        self.overridden: events.StopOverridden | None = None
        """Set if the turn ends although an extension wanted to continue it."""
        self.is_over = False
        """True when only the last events of the turn are left: `end` is too late."""
        self._is_ended = False
        """True if `end` has cancelled the turn."""
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancellations = task.cancelling()
        """The number of cancellations of the task before the turn."""

    def watch(self, event: events.Event) -> None:
        """Note the last message of the agent and the refused calls."""
        match event:
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self.last_message = text
            case events.CallDenied(cause=cause, allow=allow):
                self.denied = self.denied.plus(cause, allow)
            case _:
                pass

    def end(self, error: CodexError | None = None) -> None:
        """Cancel the turn, once. `error`: the reason; None if the user cancels."""
        if self._is_ended or self.is_over:
            return
        self._is_ended = True
        self.ending = error
        self.takes_steering = False
        self._task.cancel()

    @property
    def was_cancelled(self) -> bool:
        """True if `end`, or somebody outside, has cancelled the turn."""
        return self._is_ended or self._task.cancelling() > 0

    async def be_cancelled(self) -> None:
        """Let the cancellation by `end` arrive, if the turn has awaited nothing since.

        Before Python 3.13, `uncancel` does not take back a cancellation that has not arrived: the
        caller's next `await` would raise it. See https://github.com/python/cpython/issues/116720.
        """
        if self._is_ended:
            await asyncio.sleep(0)

    def take_back_cancellation(self, end: BaseException | None) -> None:
        """Take back the cancellation by `end`, so that the caller of the turn can continue.

        Args:
            end: the exception that ended the turn.

        Raises:
            CancelledError: the turn was cancelled from elsewhere.
        """
        if self._is_ended:
            self._task.uncancel()
        if self._task.cancelling() > self._cancellations:
            raise asyncio.CancelledError
        is_cancelled = isinstance(end, asyncio.CancelledError)
        if is_cancelled and not self._is_ended:
            raise asyncio.CancelledError
