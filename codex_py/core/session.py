"""A conversation with a model: the one owner of its state."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_py.core.compact import (
    compacted_items,
    estimated_tokens,
    is_too_long,
    is_worth_compacting,
    makes_room,
    summarise,
    summary_text,
)
from codex_py.core.past import PastPrompt, past_prompts
from codex_py.core.settings import Choices, TurnSettings
from codex_py.core.thread_log import Recorder, ThreadLog, ThreadState
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import CodexError, ExitCode, ModelError, TurnAborted
from codex_py.protocol.denied import Denied
from codex_py.protocol.events import (
    AgentMessage,
    CallDenied,
    ContextCompaction,
    Error,
    ErrorInfo,
    ErrorItem,
    Event,
    EventSink,
    ItemCompleted,
    ItemStarted,
    ThreadStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import UserPrompt, is_summary, user_prompt
from codex_py.protocol.stream import ModelClient, Prompt, Usage
from codex_py.protocol.tools import ToolCall

if TYPE_CHECKING:
    # pydantic is not loaded before the first request is out.
    from codex_py.protocol.items import ResponseItem
    from codex_py.protocol.mcp import McpServerStatus


_ONCE_MORE = (
    "Your last message can not be used: {}\n"
    "Send the whole answer again, as JSON that satisfies the schema, and nothing else."
)


@dataclass(frozen=True, slots=True)
class TurnResult:
    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """Of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """A call was not let run: by a policy, or by whoever was asked."""
    refusal: CodexError | None = None
    """Why the model could not do all it wanted on this machine, although the turn completed."""

    def raise_for_error(self) -> None:
        """
        Raises:
            CodexError: the turn failed; `error` is raised.
        """
        if self.error is not None:
            raise self.error


class Session:
    """One thread. One turn, or one compaction, runs at a time.

    Args:
        settings_for: what turns run with when a user chooses so.
        context: what a new thread is told first, base prompt aside.
        compact_prompt: what the model is asked for a summary with, in place of our own words.
        told_with: what else the model is told after a prompt, given its text; each a message.
        mcp_servers: how they are now, for people to see.
        stop_commands: kills what the commands of the thread have left running; how many it were.
        answer_check: what says, for an output schema, how an answer breaks it; see `output_schema`.
        load_handlers: see `Turn`.
        retries: gives each turn its budget.
        end_turn: awaited at the end of every turn, before its last event; again if it was
            interrupted.
    """

    def __init__(
        self,
        *,
        thread: ThreadState,
        settings: TurnSettings,
        settings_for: Callable[[Choices], TurnSettings],
        context: Callable[[TurnSettings], Sequence[EncodedItem]],
        compact_prompt: str | None,
        model: ModelClient,
        recorder: Recorder,
        load_handlers: Callable[["Session"], ItemHandlers],
        retries: Callable[[], RetryBudget],
        end_turn: Callable[["Session"], Awaitable[None]],
        sink: EventSink,
        told_with: Callable[[str], Sequence[str]] = lambda _: (),
        mcp_servers: "Callable[[], Sequence[McpServerStatus]]" = tuple,
        stop_commands: Callable[[], int] = int,
        answer_check: Callable[[Any], Callable[[str], str | None]] = lambda _: lambda _: None,
    ) -> None:
        self.thread_id = thread.id
        self.name = thread.name
        """What the user calls the thread; see `rename`."""
        self.earlier = thread.shown
        """What was said before this session, for `thread_items` to show."""
        self.settings = settings
        self.mcp_servers = mcp_servers
        self.stop_commands = stop_commands
        self._answer_check = answer_check
        self._settings_for = settings_for
        self._compact_prompt = compact_prompt
        self._sink = sink
        self._log = ThreadLog(thread, recorder, context, self.warn)
        self._usage = thread.usage
        self._last_usage = thread.last_usage
        self._model = model
        self._load_handlers = load_handlers
        self._new_retries = retries
        self._retries = retries()
        self._ran: list[ToolCall] = []
        """Calls of a response that broke off and is not there whole yet: they must not run again."""
        self._end_turn = end_turn
        self._told_with = told_with
        self._next_item = 0
        self._next_live_item = 0
        self._is_running = False
        self._turn: asyncio.Task[Any] | None = None
        self._is_aborted = False
        self._takes_steering = False
        self._steered: list[UserPrompt] = []
        self._untold: list[str] = []
        self._made_room = False
        self._output_schema: Any = None
        self._last_message: str | None = None
        self._denied = Denied()
        self._refusal: CodexError | None = None
        self.is_unfinished = False
        """The last turn did not come to its end: see `retry`."""

    def start(self) -> None:
        """Announce the thread."""
        self.emit(ThreadStarted(self.thread_id))

    def warn(self, text: str) -> None:
        """Tell the user something that does not end the turn."""
        self.emit(ItemCompleted(ErrorItem(id=self.next_item_id(), message=text)))

    def refuse(self, error: CodexError) -> None:
        """Tell the user, once, that something can not be done on this machine. The turn goes on."""
        if self._refusal is None:
            self._refusal = error
            self.warn(str(error))

    def next_item_id(self) -> str:
        """`item_0`, `item_1`, … in the order of first appearance."""
        name = f"item_{self._next_item}"
        self._next_item += 1
        return name

    @property
    def is_running(self) -> bool:
        return self._is_running

    @property
    def items(self) -> Sequence[EncodedItem]:
        """The history, base prompt first, as the model has it. A live view; see `thread_items`."""
        return self._log.items

    @property
    def token_usage(self) -> UsageReported:
        """As last reported, or as the session file has it."""
        return UsageReported(self._last_usage, self._usage, self.settings.context_window)

    async def run_turn(
        self, text: str, *, images: Sequence[Path] = (), output_schema: Any = None
    ) -> TurnResult:
        """Run one turn to its end.

        Emits `TurnStarted` and exactly one of `TurnCompleted` and `TurnFailed` on every path. What
        the user has to know of a failure is returned, not raised. When cancelled, the turn ends
        the same way, the history can be sent again, and the cancellation goes on.

        Args:
            output_schema: a JSON Schema for the final answer. An answer that breaks it is sent back once,
                as a second turn; if that one breaks it too, the result's `error` has the code `schema`.

        Raises:
            RuntimeError: a turn is running.
            ConfigError: `output_schema` is no JSON Schema, or refers to one that it does not contain.
        """
        if output_schema is None:
            return await self._run_prompt(text, images, None)
        violation = self._answer_check(output_schema)
        first = await self._run_prompt(text, images, output_schema)
        if first.error is not None or (wrong := violation(first.last_message or "")) is None:
            return first
        self.warn(f"{wrong}; asking once more")
        second = await self._run_prompt(_ONCE_MORE.format(wrong), (), output_schema)
        second = replace(second, denied=first.denied or second.denied)
        if second.error is not None or (wrong := violation(second.last_message or "")) is None:
            return second
        return replace(second, error=CodexError(wrong, code="schema", exit_code=ExitCode.SCHEMA))

    async def _run_prompt(
        self, text: str, images: Sequence[Path], output_schema: Any
    ) -> TurnResult:

        prompt = UserPrompt(text, tuple(map(str, images)))
        return await self._run(partial(self._run_turn, prompt, output_schema))

    async def retry(self, *, output_schema: Any = None) -> TurnResult:
        """Go on with a turn that failed or was interrupted; nothing is said anew, no call runs again.

        Events, errors and cancellation are those of `run_turn`.

        Raises:
            RuntimeError: a turn is running.
            CodexError: the last turn came to its end, or was taken back.
        """
        if not self.is_unfinished:
            raise CodexError("there is nothing to try again", code="nothing_to_retry")
        return await self._run(partial(self._run_turn, None, output_schema))

    async def compact(self) -> TurnResult:
        """Put a summary in place of the history. Events, errors and cancellation are those of a turn.

        Raises:
            RuntimeError: a turn is running.
        """

        async def work() -> None:
            if not is_worth_compacting(self.items):
                raise CodexError("there is nothing to compact yet", code="nothing_to_compact")
            await self._compact()

        return await self._run(work)

    def steer(self, text: str, *, images: Sequence[Path] = ()) -> bool:
        """Say something while a turn runs: it goes out with the turn's next request.

        There is one, even if the running response calls nothing. `ItemCompleted(UserMessage)` says when
        the message is in the history. False where no turn is running or it is past its last request:
        then it wants a turn of its own.
        """
        if self._takes_steering:
            self._steered.append(UserPrompt(text, tuple(map(str, images))))
        return self._takes_steering

    def abort(self) -> None:
        """End the running turn, if there is one, as if it was cancelled; `run_turn` returns and says so.

        For what runs within the turn, which can not cancel it without cancelling who waits for it too.
        """
        if self._turn is not None and not self._is_aborted:
            self._is_aborted = True
            self._turn.cancel()

    def take_unsent(self) -> list[UserPrompt]:
        """What was steered into a turn that ended too early, by a failure or cancelled; forgotten here."""
        unsent, self._steered = self._steered, []
        return unsent

    def tell(self, text: str) -> None:
        """Add what the model is to know, as a message of the user's that no answer is wanted to.

        It goes out with the next request, be it of the running turn.
        """
        self._untold.append(text)
        if not self._is_running:
            self._log_untold()

    def change(self, choices: Choices) -> None:
        """Run the next turns with other settings: `session.change(replace(session.settings.choices, …))`.

        The model is told with the next prompt.

        Raises:
            RuntimeError: a turn is running.
            ConfigError: there can be no such settings. Nothing changed.
        """
        self._must_be_idle()
        self.settings = self._settings_for(choices)

    @property
    def has_begun(self) -> bool:
        """Something was said in the thread: there is something to come back to."""
        return any(is_summary(item) or user_prompt(item) is not None for item in self.items)

    def past_prompts(self) -> list[PastPrompt]:
        """The prompts that `rollback` can go back to, oldest first."""
        return past_prompts(self.items)

    def rollback(self, turns: int) -> UserPrompt:
        """Forget the last prompts and all that came of them, files aside. The first of those prompts.

        What was said into a running turn counts as a prompt.

        Raises:
            RuntimeError: a turn is running.
            ValueError: there are not so many, see `past_prompts`.
        """
        self._must_be_idle()
        prompts, before = self.past_prompts(), estimated_tokens(self.items)
        self._log.rollback(turns)
        self.is_unfinished = False
        self._ran.clear()
        left = estimated_tokens(self.items) / max(1, before)
        self._report_estimate(round(self._last_usage.total_tokens * left))
        return prompts[-turns].prompt

    def rename(self, name: str) -> None:
        """
        Raises:
            CodexError: the name is blank.
            SessionError: it could not be written down.
        """
        name = " ".join(name.split())
        if not name:
            raise CodexError("a thread can not have a blank name", code="name")
        self._log.rename(name)
        self.name = name

    # What a `Turn` asks for.

    def prompt(self) -> Prompt:
        self._log_untold()
        while self._steered:
            prompt = self._steered.pop(0)
            self._log_prompt(prompt)
            item = UserMessage(id=self._live_item_id(), text=prompt.text, images=prompt.images)
            self.emit(ItemCompleted(item))
        return self._request()

    def record(self, item: "ResponseItem") -> None:
        self._log.item(item)

    def emit(self, event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, AgentMessage):
            self._last_message = event.item.text
        elif isinstance(event, CallDenied):
            self._denied = self._denied.plus(event.cause, event.allow)
        self._sink(event)

    def add_usage(self, usage: Usage) -> None:
        self._usage += usage
        self._last_usage = usage
        self.emit(self.token_usage)

    async def goes_on(self, *, follow_up: bool) -> bool:
        self._made_room = False
        if not (follow_up or self._steered):
            self._takes_steering = False
            return False
        await self._make_room()
        return True

    async def is_mended(self, failure: ModelError) -> bool:
        if self._made_room or not is_too_long(failure) or not makes_room(self.items):
            return False
        await self._compact()
        self._made_room = True
        return True

    async def _run_turn(self, prompt: UserPrompt | None, output_schema: Any) -> None:
        self._output_schema = output_schema
        self._takes_steering = True
        try:
            try:
                await self._make_room()
            finally:
                # Whatever becomes of the turn, what the user said is kept.
                self._log.begin_turn(self.settings)
                if prompt is not None:
                    self._log_prompt(prompt)
                self.is_unfinished = True
            turn = Turn(
                self,
                self._model,
                lambda: self._load_handlers(self),
                self._retries,
                max_responses=self.settings.max_responses,
                ran=self._ran,
            )
            await turn.run()
            self.is_unfinished = False
            await self._end_turn(self)
        except asyncio.CancelledError:
            self._log.abort()
            raise

    async def _run(self, work: Callable[[], Awaitable[None]]) -> TurnResult:
        self._must_be_idle()
        self._is_running = True
        self._turn = asyncio.current_task()
        self._is_aborted = False
        self._retries = self._new_retries()
        self._made_room = False
        self._last_message = None
        self._denied = Denied()
        try:
            self.emit(TurnStarted())
            try:
                await work()
            except CodexError as error:
                await self._fail(error)
                return self._result(error)
            except asyncio.CancelledError:
                aborted = TurnAborted("the turn was interrupted")
                await self._fail(aborted)
                if self._is_only_aborted():
                    return self._result(aborted)
                raise
            except BaseException as error:
                # A mistake of ours. Whoever reads the events still gets an end; the traceback goes on.
                await self._fail(CodexError(f"internal error: {error!r}", code="internal"))
                raise
            self.emit(
                TurnCompleted(self._usage, denied=self._denied if self._denied.calls else None)
            )
            return self._result()
        finally:
            self._is_running = self._takes_steering = False
            self._turn = None
            self._log_untold()

    def _is_only_aborted(self) -> bool:
        """Whether the cancellation of the turn was all ours, which ends here."""
        return self._is_aborted and self._turn is not None and self._turn.uncancel() == 0

    def _must_be_idle(self) -> None:
        if self._is_running:
            raise RuntimeError("a turn of this session is running; wait for its end, or cancel it")

    def _request(self) -> Prompt:
        settings = self.settings
        return Prompt(
            model=settings.model,
            input=self._log.items,
            cache_key=self.thread_id,
            tools=settings.tools,
            parallel_tool_calls=settings.parallel_tool_calls,
            reasoning=settings.reasoning,
            verbosity=settings.verbosity,
            output_schema=self._output_schema,
            service_tier=settings.service_tier,
        )

    def _result(self, error: CodexError | None = None) -> TurnResult:
        return TurnResult(
            self._last_message, self._usage, error, self._denied.calls > 0, self._refusal
        )

    async def _make_room(self) -> None:
        """Compact what is so long that little more fits."""
        limit = self.settings.auto_compact_token_limit
        is_full = limit is not None and self._last_usage.total_tokens >= limit
        if not is_full or not is_worth_compacting(self.items):
            return
        try:
            await self._compact()
        except ModelError:
            raise
        except CodexError as error:
            self.warn(
                f"The conversation could not be compacted: {error}. It goes on in full length."
            )

    async def _compact(self) -> None:
        item = ContextCompaction(id=self._live_item_id())
        status = "failed"
        self.emit(ItemStarted(item))
        try:
            summary = summary_text(
                await summarise(
                    self._request(),
                    self._compact_prompt,
                    self._model,
                    self._retries,
                    emit=self.emit,
                    add_usage=self.add_usage,
                )
            )
            replacement = partial(
                compacted_items,
                history=self.items,
                summary=summary,
                context_window=self.settings.context_window,
            )
            self._log.compact(summary, replacement, self.settings)
            self._report_estimate(estimated_tokens(self.items))
            status = "completed"
        finally:
            self.emit(ItemCompleted(ContextCompaction(id=item.id, status=status)))

    def _report_estimate(self, tokens: int) -> None:
        self._last_usage = Usage(input_tokens=tokens)
        self.emit(self.token_usage)

    def _log_prompt(self, prompt: UserPrompt) -> None:
        self._log.prompt(prompt, self.settings.image_detail)
        for text in self._told_with(prompt.text):
            self._log.tell(text)

    def _log_untold(self) -> None:
        while self._untold:
            self._log.tell(self._untold.pop(0))

    def _live_item_id(self) -> str:
        # Not counted with the others: `--json` shows no gaps for what it does not show.
        self._next_live_item += 1
        return f"live_{self._next_live_item - 1}"

    async def _fail(self, error: CodexError) -> None:
        facts = (str(error), error.code, error.retryable, error.status)
        try:
            await self._end_turn(self)
        finally:
            self.emit(Error(*facts))
            self.emit(TurnFailed(ErrorInfo(*facts)))
