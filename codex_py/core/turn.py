"""One turn: the model answers, its calls run, their outputs go back, until a response calls no tool.

Everything arrives as an argument; no feature has a name here.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from codex_py.errors import (
    CodexError,
    ModelError,
    TurnLimit,
    TurnSuspended,
    single_error,
)
from codex_py.protocol.events import (
    CallDenied,
    Event,
    EventSink,
    ItemCompleted,
    MessageDelta,
    ReasoningSummaryDelta,
    Reconnecting,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.prompts import Note
from codex_py.protocol.response_order import OpenCall, Place
from codex_py.protocol.stream import (
    Completed,
    ModelStream,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ReasoningDelta,
    ResponseEvent,
    Retry,
    Usage,
)
from codex_py.protocol.tools import ToolCall, ToolOutput, coded_text

_WITHOUT_PAUSE_S = 0.005
_SERVICE_FAILED = "aborted: the provider failed"


@frozen
class ItemHandlers:
    """How the items of a response are handled."""

    build_tool_call: Callable[[ResponseItem], ToolCall | None]
    dispatch: Callable[
        [ToolCall, EventSink], Coroutine[Any, Any, Sequence[Note | OutputItem]]
    ]
    """Runs a call; the sink gets its events. Returns its notes, then its output. See `protocol.dispatch.Dispatch`."""
    answer: Callable[[ToolCall, ToolOutput, EventSink], OutputItem]
    """Makes the output of a call that did not run or did not end."""
    item_events: Callable[[ResponseItem], Sequence[Event]]


class Conversation(Protocol):
    """The source of a turn's prompts, and the target of its results."""

    @property
    def ending(self) -> CodexError | None:
        """Why the turn is being cancelled, if not by its user."""
        ...

    async def prompt(self) -> Prompt:
        """The next request. Every call has its output by now, so notes and prompts may be added."""
        ...

    def record(self, item: ResponseItem | Note, place: Place) -> None:
        """Write an item of the response to the session file. `settle` adds it to the history."""
        ...

    def leave_open(self, place: Place) -> None:
        """Do not write the output of this place to the session file: a later session may run its call."""
        ...

    def settle(self, *, whole: bool) -> None:
        """Add what was recorded to the history, in order. Every call has its output.

        `whole`: the response is complete.
        """
        ...

    def emit(self, event: Event) -> None: ...

    def report_hidden(self, bug: Exception) -> None:
        """Tell the user that the end of a call could not be shown because of this exception."""
        ...

    def add_usage(self, usage: Usage) -> None: ...

    async def should_continue(self, *, follow_up: bool) -> bool:
        """True if another request should be sent. Called after each complete response, when every call has its output.

        `follow_up`: the response asks for another request. The history may be replaced here.
        """
        ...

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        """Try to make the next request succeed, for instance by compacting. True if it is worth sending."""
        ...


class RetryBudget(Protocol):
    """Bounds the failed requests of one turn."""

    def next(self, error: ModelError) -> Retry | None:
        """None if another attempt cannot help, or the budget is spent."""
        ...

    def renew(self) -> None:
        """A request succeeded: the next one has a full allowance."""
        ...


@dataclass(slots=True)
class _Call:
    """A call of the response. Its completion is shown only after its output is recorded: a kill loses nothing that was
    shown."""

    call: ToolCall
    place: Place
    """Of its output."""
    conversation: Conversation
    handlers: ItemHandlers
    task: asyncio.Task[None] | None = None
    is_answered: bool = False
    suspended: TurnSuspended | None = None
    """Raised by the call: the turn ends with it when the other calls have ended."""
    held: list[Event] = field(default_factory=list[Event])
    started_at: float = field(default_factory=time.monotonic)

    def emit(self, event: Event) -> None:
        if self.is_answered or not isinstance(event, ItemCompleted | CallDenied):
            self.conversation.emit(event)
        else:
            # In their order: the reason of a refusal stands behind the call.
            self.held.append(event)

    async def run(self) -> None:
        try:
            self.answer(await self.handlers.dispatch(self.call, self.emit))
        except TurnSuspended as error:
            self.conversation.leave_open(self.place)
            self.suspended = error

    def refuse(self, text: str, code: str | None = None) -> None:
        output = ToolOutput(text, success=False, error_code=code)
        self.answer([self.handlers.answer(self.call, output, self.emit)])

    def abort(self, aborted: str) -> None:
        elapsed_s = time.monotonic() - self.started_at
        items = (getattr(event, "item", None) for event in self.held)
        if any(getattr(item, "status", None) == "completed" for item in items):
            aborted += "; the call itself was done, only its output is lost"
        text = f"Wall time: {elapsed_s:.1f} seconds\n{aborted}"
        self.refuse(coded_text("Canceled", text))

    def answer(self, items: Sequence[Note | OutputItem]) -> None:
        for item in items:
            self.conversation.record(item, self.place)
        self.is_answered = True
        for event in self.held:
            self._show(event)

    def _show(self, event: Event) -> None:
        try:
            self.conversation.emit(event)
        except CodexError:
            raise
        except Exception as bug:  # noqa: BLE001 - the item is the tool's, and the call has its output already
            self.conversation.report_hidden(bug)


class Turn:
    """The state of one turn.

    Args:
        max_responses: ends the turn of a model that never stops calling tools.
        ran: calls that ran in failed attempts of the next request; kept up to date, so that another
            turn can continue if this one fails.
    """

    def __init__(
        self,
        conversation: Conversation,
        model: ModelStream,
        handlers: ItemHandlers,
        retries: RetryBudget,
        *,
        max_responses: int,
        ran: list[ToolCall] | None = None,
    ) -> None:
        self._ran = [] if ran is None else ran
        self._conversation = conversation
        self._model = model
        self._handlers = handlers
        self._retries = retries
        self._max_responses = max_responses

    async def run(self) -> None:
        """Run to the end of the turn. When cancelled, every call has its output in the history.

        Raises:
            ModelError: the provider failed for good, or the budget of retries is spent.
            CodexError: the limit of responses was reached, or a wrapper of the model or of a call ended the turn.
        """
        responses = 0
        while responses < self._max_responses:
            response = _Response(self._conversation, self._handlers, self._ran)
            failure = await response.run(self._model)
            if failure is not None and not await self._recover(failure):
                continue
            responses += 1
            self._retries.renew()
            if failure is None:
                self._ran.clear()
                if not await self._conversation.should_continue(
                    follow_up=response.follow_up
                ):
                    return
        raise TurnLimit(f"the turn was stopped after {self._max_responses} responses")

    async def answer(self, open_call: OpenCall) -> None:
        """Run a call that the history has without an output. Raises a `CodexError` if it ends the turn."""
        await _Response(self._conversation, self._handlers, self._ran).answer(open_call)
        self._ran.clear()

    async def _recover(self, failure: ModelError) -> bool:
        """False if the same request is sent again, after a wait. Raises a failure that is final."""
        retry = self._retries.next(failure)
        if retry is None:
            left = 0
        else:
            left = retry.maximum - retry.attempt + 1
        if await self._conversation.recover(failure, left):
            return True
        if retry is None:
            raise failure
        self._conversation.emit(
            Reconnecting(
                f"Reconnecting... {retry.attempt}/{retry.maximum} ({failure})",
                failure.code,
                failure.status,
                cause=str(failure),
                attempt=retry.attempt,
                max_attempts=retry.maximum,
                wait_s=round(retry.delay_s, 3),
            )
        )
        await asyncio.sleep(retry.delay_s)
        return False


class _Response:
    """One request, its response, and the calls in it.

    `ran` lists the calls that ran in earlier, failed attempts. It is shared with the next attempt: a
    call runs once, however often the server sends it.
    """

    def __init__(
        self, conversation: Conversation, handlers: ItemHandlers, ran: list[ToolCall]
    ) -> None:
        self._conversation = conversation
        self._handlers = handlers
        self._ran = ran
        self._earlier = list(ran)
        self._calls: list[_Call] = []
        self._number = time.time_ns() // 1000
        self._arrivals = 0
        self._is_whole = False
        self._failure: ModelError | None = None
        self.follow_up = False

    async def run(self, model: ModelStream) -> ModelError | None:
        """Stream the response and answer its calls. Returns the failure that ended the stream, if one did.

        Raises:
            CodexError: a call, or a wrapper of the model, ended the turn. If it is a `ModelError`, a call raised it:
                the stream's own is returned.
        """
        prompt = await self._conversation.prompt()
        await self._run(self._stream(model, prompt))
        return self._failure

    async def answer(self, open_call: OpenCall) -> None:
        """Run a call of an earlier response. Raises as `run` does."""

        async def run() -> None:
            async with asyncio.TaskGroup() as calls:
                call = self._handlers.build_tool_call(open_call.item)
                if call is not None:
                    self._start(call, open_call.place, calls)

        await self._run(run())

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, a group of calls, and answer each call."""
        # In a task of its own: before Python 3.12, a group whose call fails at the end leaves its task cancelled.
        task = asyncio.create_task(work)
        current = asyncio.current_task()
        assert current is not None
        cancellations = current.cancelling()
        end: BaseException | None = None
        try:
            await task
            end = next((each.suspended for each in self._calls if each.suspended), None)
        except BaseExceptionGroup as group:
            end = single_error(group)
            if isinstance(end, CodexError) and current.cancelling() > cancellations:
                # A call that answers its cancellation with an error makes the group forget the cancellation:
                # https://github.com/python/cpython/issues/116720
                end = asyncio.CancelledError()
        finally:
            self._settle(self._aborted(end))
        if end is not None:
            raise end

    async def _stream(self, model: ModelStream, prompt: Prompt) -> None:
        async with asyncio.TaskGroup() as calls:
            try:
                async with model(prompt) as events:
                    paused_at = time.monotonic()
                    async for event in events:
                        self._take(event, calls)
                        # A key that was pressed does not wait until all that has come is shown.
                        if time.monotonic() - paused_at > _WITHOUT_PAUSE_S:
                            await asyncio.sleep(0)
                            paused_at = time.monotonic()
            except ModelError as error:
                self._failure = error
                if not error.retryable:
                    for call in self._calls:
                        if call.task is not None:
                            call.task.cancel()

    def _take(self, event: ResponseEvent, calls: asyncio.TaskGroup) -> None:
        match event:
            case OutputTextDelta(_, delta):
                self._conversation.emit(MessageDelta(delta))
            case ReasoningDelta(_, delta, part, raw=False):
                self._conversation.emit(ReasoningSummaryDelta(delta, part))
            case OutputItemDone(index, item):
                self._take_item(index, item, calls)
            case Completed(usage, end_turn):
                self._is_whole = True
                self._conversation.add_usage(usage)
                self.follow_up = self.follow_up or end_turn is False
            case _:
                pass

    def _take_item(
        self, index: int, item: ResponseItem, calls: asyncio.TaskGroup
    ) -> None:
        place = Place(self._number, False, index, self._arrivals)
        self._arrivals += 1
        call = self._handlers.build_tool_call(item)
        self.follow_up = self.follow_up or call is not None
        if call in self._earlier:
            # A retry sent the call again. The history already has it, with its output.
            return
        self._conversation.record(item, place)
        if call is not None:
            self._start(call, place._replace(is_output=True), calls)
        for event in self._handlers.item_events(item):
            self._conversation.emit(event)

    def _start(self, call: ToolCall, place: Place, calls: asyncio.TaskGroup) -> None:
        is_repeated = any(call.call_id == other.call.call_id for other in self._calls)
        self._calls.append(
            running := _Call(call, place, self._conversation, self._handlers)
        )
        if is_repeated:
            text = f"duplicate call_id {call.call_id!r}: this call was not run; give each its own"
            running.refuse(text, "InvalidArgs")
        else:
            self._ran.append(call)
            running.task = calls.create_task(running.run())

    def _aborted(self, end: BaseException | None) -> str:
        """The output of a call that did not end."""
        if end is None or isinstance(end, asyncio.CancelledError):
            end = self._conversation.ending
            if end is None:
                if self._failure is None:
                    return "aborted by user"
                return _SERVICE_FAILED
        return f"aborted: {end if isinstance(end, CodexError) else 'internal error'}"

    def _settle(self, aborted: str) -> None:
        for call in self._calls:
            if not call.is_answered:
                call.abort(aborted)
        self._conversation.settle(whole=self._is_whole)
