"""A conversation with a model: the one owner of its state."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_py.core.compact import estimated_tokens, is_worth_compacting
from codex_py.core.compactor import Compactor
from codex_py.core.past import is_cut_off, past_prompts
from codex_py.core.thread_log import Recorder, ThreadLog, ThreadState
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.core.turn_state import TurnResult, TurnState, with_valid_answer
from codex_py.errors import CodexError, ModelError, TurnAborted
from codex_py.protocol.events import (
    Error,
    ErrorInfo,
    ErrorItem,
    Event,
    EventSink,
    ItemCompleted,
    ThreadStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, PastPrompt, UserPrompt, is_summary, user_prompt
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.stream import ModelClient, Prompt, Usage
from codex_py.protocol.tools import ToolCall

if TYPE_CHECKING:
    # pydantic is not loaded before the first request is out.
    from codex_py.protocol.items import ResponseItem
    from codex_py.protocol.mcp import McpServerStatus


class Session:
    """One thread. One turn, or one compaction, runs at a time.

    Args:
        settings_for: what turns run with when a user chooses so.
        context: what a new thread is told first, base prompt aside.
        compact_prompt: what the model is asked for a summary with, in place of our own words.
        extra_context: gives messages that follow a prompt, by its text.
        mcp_servers: gives the state of the MCP servers, for people to see.
        stop_commands: kills the commands that are still running, and returns how many.
        answer_check: for an output schema, gives the function that says how an answer breaks it;
            see `output_schema`.
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
        extra_context: Callable[[str], Sequence[str]] = lambda _: (),
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
        self._sink = sink
        self._log = ThreadLog(thread, recorder, context, self.warn)
        self._usage = thread.usage
        self._last_usage = thread.last_usage
        self._model = model
        self._load_handlers = load_handlers
        self._retries = retries
        self._ran: list[ToolCall] = []
        """Calls of a response that broke off and is not there whole yet: they must not run again."""
        self._end_turn = end_turn
        self._extra_context = extra_context
        self._next_item = 0
        self._next_live_item = 0
        self._turn: TurnState | None = None
        """Of the turn, or the compaction, that is running."""
        self._is_closed = False
        self._steered: list[UserPrompt] = []
        self._untold: list[str] = []
        self._refusal: CodexError | None = None
        self.is_unfinished = is_cut_off(thread.items)
        """The last turn did not come to its end: see `retry`."""
        self._compactor = Compactor(
            self._log,
            model,
            cache_key=thread.id,
            instructions=compact_prompt,
            emit=self.emit,
            add_usage=self.add_usage,
            estimate=self._report_estimate,
            warn=self.warn,
            next_item_id=self._live_item_id,
        )

    def start(self) -> None:
        """Announce the thread."""
        self.emit(ThreadStarted(self.thread_id))

    def close(self) -> None:
        """Refuse all later turns, with a `RuntimeError`."""
        self._is_closed = True

    def warn(self, text: str) -> None:
        """Tell the user something that does not end the turn."""
        self.emit(ItemCompleted(ErrorItem(id=self.next_item_id(), message=text)))

    def refuse(self, error: CodexError) -> None:
        """Tell the user, once, that something cannot be done on this machine. The turn goes on."""
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
        return self._turn is not None

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
            RuntimeError: a turn is running, or the session is closed.
            ConfigError: `output_schema` is no JSON Schema, or refers to one that it does not contain.
        """
        prompt = UserPrompt(text, tuple(map(str, images)))
        return await self._run_checked(prompt, output_schema)

    async def retry(self, *, output_schema: Any = None) -> TurnResult:
        """Go on with a turn that failed or was interrupted; nothing is said anew, no call runs again.

        Events, errors and cancellation are those of `run_turn`.

        Raises:
            RuntimeError: a turn is running.
            CodexError: the last turn came to its end, or was taken back.
        """
        if not self.is_unfinished:
            raise CodexError("there is nothing to try again", code="nothing_to_retry")
        return await self._run_checked(None, output_schema)

    async def compact(self) -> TurnResult:
        """Put a summary in place of the history. Events, errors and cancellation are those of a turn.

        Raises:
            RuntimeError: a turn is running.
        """

        async def work(turn: TurnState) -> None:
            if not is_worth_compacting(self.items):
                raise CodexError("there is nothing to compact yet", code="nothing_to_compact")
            await self._compactor.compact(self.settings, turn.retries)

        return await self._run(work)

    def steer(self, text: str, *, images: Sequence[Path] = ()) -> bool:
        """Say something while a turn runs: it goes out with the turn's next request.

        There is one, even if the running response calls nothing. `ItemCompleted(UserMessage)` says when
        the message is in the history. False where no turn is running or it is past its last request:
        then it wants a turn of its own.
        """
        is_taken = self._turn is not None and self._turn.takes_steering
        if is_taken:
            self._steered.append(UserPrompt(text, tuple(map(str, images))))
        return is_taken

    def abort(self) -> None:
        """End the running turn, if there is one, as if it was cancelled; `run_turn` returns and says so.

        For what runs within the turn, which cannot cancel it without cancelling who waits for it too.
        """
        if self._turn is not None:
            self._turn.abort()

    def take_unsent(self) -> list[UserPrompt]:
        """What was steered into a turn that ended too early, by a failure or cancelled; forgotten here."""
        unsent, self._steered = self._steered, []
        return unsent

    def tell(self, text: str) -> None:
        """Append a user message to the history without starting a turn.

        It goes out with the next request, also of the running turn.
        """
        self._untold.append(text)
        if not self.is_running:
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
        """Drop the last `turns` prompts and everything after them; files are untouched. Returns the oldest one dropped.

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
            raise CodexError("a thread cannot have a blank name", code="name")
        self._log.rename(name)
        self.name = name

    # What a `Turn` asks for.

    @property
    def ending(self) -> CodexError | None:
        return None

    async def prompt(self) -> Prompt:
        self._log_untold()
        while self._steered:
            prompt = self._steered.pop(0)
            self._log_prompt(prompt)
            item = UserMessage(id=self._live_item_id(), text=prompt.text, images=prompt.images)
            self.emit(ItemCompleted(item))
        schema = None if self._turn is None else self._turn.output_schema
        return self.settings.prompt(self.items, self.thread_id, output_schema=schema)

    def record(self, item: "ResponseItem | Note") -> None:
        self._log.item(item)

    def emit(self, event: Event) -> None:
        if self._turn is not None:
            self._turn.watch(event)
        self._sink(event)

    def add_usage(self, usage: Usage) -> None:
        self._usage += usage
        self._last_usage = usage
        self.emit(self.token_usage)

    async def should_continue(self, *, follow_up: bool) -> bool:
        assert self._turn is not None
        self._turn.made_room = False
        if not (follow_up or self._steered):
            self._turn.takes_steering = False
            return False
        await self._make_room(self._turn)
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:  # noqa: ARG002
        assert self._turn is not None
        if self._turn.made_room:
            return False
        made_room = await self._compactor.recover(failure, self.settings, self._turn.retries)
        self._turn.made_room = made_room
        if made_room:
            self._ran.clear()
        return made_room

    async def _run_checked(self, prompt: UserPrompt | None, output_schema: Any) -> TurnResult:
        """Run a turn, the unfinished one where there is no prompt, and see to it that the answer keeps to a schema."""

        def run(again: str | None) -> Awaitable[TurnResult]:
            said = prompt if again is None else UserPrompt(again)
            return self._run(partial(self._run_turn, said, output_schema))

        if output_schema is None:
            return await run(None)
        return await with_valid_answer(run, self._answer_check(output_schema), self.warn)

    async def _run_turn(
        self, prompt: UserPrompt | None, output_schema: Any, state: TurnState
    ) -> None:
        state.output_schema = output_schema
        state.takes_steering = True
        try:
            try:
                await self._make_room(state)
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
                state.retries,
                max_responses=self.settings.max_responses,
                ran=self._ran,
            )
            await turn.run()
            self.is_unfinished = False
            await self._end_turn(self)
        except asyncio.CancelledError:
            self._log.abort()
            raise

    async def _run(self, work: Callable[[TurnState], Awaitable[None]]) -> TurnResult:
        self._must_be_idle()
        self._turn = turn = TurnState(self._retries())
        try:
            self.emit(TurnStarted())
            try:
                await work(turn)
            except CodexError as error:
                await self._fail(error)
                return self._result(turn, error)
            except asyncio.CancelledError:
                aborted = TurnAborted("the turn was interrupted")
                await self._fail(aborted)
                if turn.is_only_aborted():
                    return self._result(turn, aborted)
                raise
            except BaseException as error:
                # A mistake of ours. Whoever reads the events still gets an end; the traceback goes on.
                await self._fail(CodexError(f"internal error: {error!r}", code="internal"))
                raise
            denied = turn.denied if turn.denied.calls else None
            self.emit(TurnCompleted(self._usage, denied=denied))
            return self._result(turn)
        finally:
            self._turn = None
            self._log_untold()

    def _must_be_idle(self) -> None:
        if self.is_running:
            raise RuntimeError("a turn of this session is running; wait for its end, or cancel it")
        if self._is_closed:
            raise RuntimeError("the session is closed: its `async with` block has ended")

    def _result(self, turn: TurnState, error: CodexError | None = None) -> TurnResult:
        return TurnResult(
            turn.last_message, self._usage, error, turn.denied.calls > 0, self._refusal
        )

    async def _make_room(self, turn: TurnState) -> None:
        used_tokens = self._last_usage.total_tokens
        await self._compactor.make_room(self.settings, turn.retries, used_tokens=used_tokens)

    def _report_estimate(self, tokens: int) -> None:
        self._last_usage = Usage(input_tokens=tokens)
        self.emit(self.token_usage)

    def _log_prompt(self, prompt: UserPrompt) -> None:
        self._log.prompt(prompt, self.settings.image_detail)
        for text in self._extra_context(prompt.text):
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
