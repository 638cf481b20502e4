"""One response: its items go into the history, and its calls run, each with exactly one output."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from codex_py.core.response_items import item_events
from codex_py.core.session_state import SessionState
from codex_py.errors import CodexError, ModelError, TurnSuspended, single_error
from codex_py.protocol.bugs import bug_found, bug_line
from codex_py.protocol.events import (
    CallDenied,
    Event,
    ItemCompleted,
    MessageDelta,
    ReasoningSummaryDelta,
)
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.prompts import Note
from codex_py.protocol.response_order import HistoryPlace, OpenCall
from codex_py.protocol.stream import (
    Completed,
    ModelStream,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ReasoningDelta,
    ResponseEvent,
)
from codex_py.protocol.tools import ToolCall, ToolOutput, coded_text

_WITHOUT_PAUSE_S = 0.005
"""The longest time for which events are taken before other tasks may run."""
_SERVICE_FAILED = "aborted: the provider failed"


async def receive(
    model: ModelStream, prompt: Prompt, take: Callable[[ResponseEvent], None]
) -> None:
    """Send a request, and pass the events of its response to `take`.

    Raises a `ModelError` if the stream fails.
    """
    async with model(prompt) as events:
        paused_at = time.monotonic()
        async for event in events:
            take(event)
            # Give a pressed key its turn before all buffered events are shown.
            if time.monotonic() - paused_at > _WITHOUT_PAUSE_S:
                await asyncio.sleep(0)
                paused_at = time.monotonic()


class _Call:
    """A call of the response.

    Its completion is shown after its output is recorded, so that a kill loses nothing that was
    shown.
    """

    def __init__(
        self,
        call: ToolCall,
        place: HistoryPlace,
        session: SessionState,
    ) -> None:
        """`place`: the place of the call's output."""
        self.call = call
        self.place = place
        self.session = session
        self.task: asyncio.Task[None] | None = None
        self.is_answered = False
        self.suspended: TurnSuspended | None = None
        """Raised by the call: the turn ends with it when the other calls have ended."""
        self.held: list[Event] = []
        """Events that are emitted once the output is recorded."""
        self.started_at = time.monotonic()

    def emit(self, event: Event) -> None:
        if self.is_answered or not isinstance(event, ItemCompleted | CallDenied):
            self.session.emit(event)
        else:
            # Keep the order: the reason of a refusal follows the call.
            self.held.append(event)

    async def run(self) -> None:
        """Run the call and record its output, or leave it open if it is suspended."""
        try:
            items = await self.session.tools.dispatch(self.call, self.emit)
            self.answer(items)
        except TurnSuspended as error:
            self.session.log.leave_open(self.place)
            self.suspended = error

    def refuse(
        self,
        text: str,
        code: str | None = None,
    ) -> None:
        """Answer a call that did not run or did not end with an error."""
        output = ToolOutput(text, success=False, error_code=code)
        answer = self.session.tools.answer(self.call, output, self.emit)
        self.answer([answer])

    def abort(self, reason: str) -> None:
        """Answer a call that was cancelled. `reason`: a text such as `aborted by user`."""
        elapsed_s = time.monotonic() - self.started_at
        items = (getattr(event, "item", None) for event in self.held)
        if any(getattr(item, "status", None) == "completed" for item in items):
            reason += "; the call itself was done, only its output is lost"
        text = f"Wall time: {elapsed_s:.1f} seconds\n{reason}"
        self.refuse(coded_text("Canceled", text))

    def answer(self, items: Sequence[Note | OutputItem]) -> None:
        """Record the notes and the output of the call, then emit the events that waited."""
        for item in items:
            self.session.log.record(item, self.place)
        self.is_answered = True
        for event in self.held:
            try:
                self.session.emit(event)
            except CodexError:
                raise
            # The item is the tool's, and the call has its output already.
            except Exception as bug:  # noqa: BLE001
                self.session.emit(bug_found(bug))
                self.session.warn(f"A call could not be shown: {bug_line(bug)}")


class Response:
    """One request, its response, and the calls in it.

    `ThreadLog.ran` lists the calls that ran in earlier, failed attempts, also those of an earlier
    turn: a call runs once, however often the server sends it.
    """

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._earlier = list(session.log.ran)
        self._calls: list[_Call] = []
        self._number = time.time_ns() // 1000
        """The response's number in each `HistoryPlace`."""
        self._arrivals = 0
        """The number of items that have come."""
        self._is_whole = False
        """True once the stream has completed."""
        self._has_repeated = False
        """True if a call was left out because it ran before. Reasoning before it is then not the
        response's end."""
        self._failure: ModelError | None = None
        self._open_call: OpenCall | None = None
        """The call of an earlier response that `answer` runs."""
        self.follow_up = False
        """True if the response asks for another request."""

    async def run(self, prompt: Prompt) -> ModelError | None:
        """Stream the response and answer its calls.

        Returns the failure that ended the stream, if one did.

        When cancelled, every call has its output in the history.

        Raises:
            CodexError: a call, or a wrapper of the model, ended the turn. A `ModelError` can only
                come from a call: the stream's own is returned.
        """
        await self._settle_calls_of(self._stream(prompt))
        return self._failure

    async def answer(self, open_call: OpenCall) -> None:
        """Run a call of an earlier response that has no output in the history.

        Raises the errors of `run`.
        """

        self._open_call = open_call
        await self._settle_calls_of(self._run_open(open_call))

    async def _run_open(self, open_call: OpenCall) -> None:
        async with asyncio.TaskGroup() as calls:
            call = self._session.tools.build_tool_call(open_call.item)
            if call is not None:
                self._start(call, open_call.place, calls)

    async def _settle_calls_of(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, which runs calls in a group, and give each call its one output.

        Raises the error that ended the group, or the suspension of a call.
        """
        end: BaseException | None = None
        try:
            end = await _failure_of_group(work)
            if end is None:
                suspended = (call.suspended for call in self._calls)
                end = next(filter(None, suspended), None)
        finally:
            self._settle(end)
        if end is not None:
            raise end

    async def _stream(self, prompt: Prompt) -> None:
        async with asyncio.TaskGroup() as calls:
            try:
                await receive(
                    self._session.model, prompt, lambda event: self._take(event, calls)
                )
            except ModelError as error:
                # The traceback leads back to this object. With it, all that had been received would
                # stay in memory until the next full garbage collection.
                self._failure = error.with_traceback(None)
                if not error.retryable:
                    self._cancel_calls()

    def _cancel_calls(self) -> None:
        for call in self._calls:
            if call.task is not None:
                call.task.cancel()

    def _take(self, event: ResponseEvent, calls: asyncio.TaskGroup) -> None:
        match event:
            case OutputTextDelta(_, delta):
                self._session.emit(MessageDelta(delta))
            case ReasoningDelta(_, delta, part, raw=False):
                self._session.emit(ReasoningSummaryDelta(delta, part))
            case OutputItemDone(index, item):
                self._take_item(index, item, calls)
            case Completed(usage, end_turn, plan=plan):
                self._is_whole = True
                self._session.count(usage, usage, plan)
                self.follow_up = self.follow_up or end_turn is False
            case _:
                pass

    def _take_item(
        self, index: int, item: ResponseItem, calls: asyncio.TaskGroup
    ) -> None:
        place = HistoryPlace(
            self._number, is_output=False, position=index, arrival=self._arrivals
        )
        self._arrivals += 1
        call = self._session.tools.build_tool_call(item)
        self.follow_up = self.follow_up or call is not None
        if call in self._earlier:
            # A retry sent the call again. The history already has it, with its output.
            self._has_repeated = True
            return
        self._session.log.record(item, place)
        if call is not None:
            # The tool emits the events that show the call.
            self._start(call, place._replace(is_output=True), calls)
            return
        for event in item_events(item, self._session.next_item_id):
            self._session.emit(event)

    def _start(
        self, call: ToolCall, place: HistoryPlace, calls: asyncio.TaskGroup
    ) -> None:
        is_repeated = any(call.call_id == other.call.call_id for other in self._calls)
        running = _Call(call, place, self._session)
        self._calls.append(running)
        if is_repeated:
            text = f"duplicate call_id {call.call_id!r}: this call was not run; give each its own"
            running.refuse(text, "InvalidArgs")
        else:
            self._session.log.ran.append(call)
            running.task = calls.create_task(running.run())

    def _settle(self, end: BaseException | None) -> None:
        """Answer the calls that did not end, and add the items to the history."""
        for call in self._calls:
            if not call.is_answered:
                call.abort(self._abort_reason(end))
        log = self._session.log
        if self._is_whole and not self._has_repeated:
            log.mark_response_complete()
        log.insert_response(self._open_call)

    def _abort_reason(self, end: BaseException | None) -> str:
        """The reason that the model gets for a call that did not end."""
        if end is None or isinstance(end, asyncio.CancelledError):
            running = self._session.running
            assert running is not None
            end = running.ending
        if isinstance(end, CodexError):
            return f"aborted: {end}"
        if end is not None:
            return "aborted: internal error"
        if self._failure is not None:
            return _SERVICE_FAILED
        return "aborted by user"


async def _failure_of_group(work: Coroutine[Any, Any, None]) -> BaseException | None:
    """Run a group of calls to its end. Returns the error with which it failed, if it did.

    A `TaskGroup` that fails cancels the task that it runs in, and does not always take this back:

    - Before Python 3.12, a group whose call fails at the very end leaves its task cancelled.
    - A call that answers its cancellation with an error makes the group forget that its task was
      cancelled from outside: https://github.com/python/cpython/issues/116720

    So the group gets a task of its own, which ends with it. The task of the turn can go on, and
    still counts the cancellations that it got itself.

    Raises:
        CancelledError: the turn was cancelled while the group ran.
    """
    turn = asyncio.current_task()
    assert turn is not None
    cancellations_before = turn.cancelling()
    try:
        await asyncio.create_task(work)
    except BaseExceptionGroup as group:
        failure = single_error(group)
        was_cancelled = turn.cancelling() > cancellations_before
        if was_cancelled and isinstance(failure, CodexError):
            raise asyncio.CancelledError from group
        return failure
    return None
