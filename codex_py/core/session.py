"""A conversation with a model: the one owner of its state."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from codex_py.core.compact import Compactor, is_worth_compacting
from codex_py.core.history import past_prompts
from codex_py.core.retry import RetryBudget
from codex_py.core.running_turn import RunningTurn
from codex_py.core.session_state import SessionState, ToolCalls
from codex_py.core.session_turn import TurnResult, run_turn
from codex_py.core.thread_log import ThreadLog, ThreadState
from codex_py.core.turn import Turn
from codex_py.errors import CodexError, ConfigError, UsageError
from codex_py.protocol import events
from codex_py.protocol.combined import combined
from codex_py.protocol.extension import (
    ChildThread,
    CommandOptions,
    CommandResult,
    Extension,
    Feature,
    FeatureT,
    NewChild,
    Script,
    TurnStart,
)
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.messages import EncodedItem, estimated_tokens
from codex_py.protocol.output_model import answer_schema
from codex_py.protocol.prompts import (
    Note,
    PastPrompt,
    UserPrompt,
    is_summary,
    user_prompt,
)
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.stream import ModelClient, ToolChoice, Usage


class Session(SessionState):
    """One thread.

    One turn, or one compaction, runs at a time. Features see it as a `protocol.extension.Thread`.

    Args:
        settings_for: returns the settings that follow from a user's choices.
        tools: runs the tool calls of all turns.
        retries: called for each turn; returns its retry budget.
        features: the outermost first, which is the order of their extensions; they include the
            event sinks.
        run_command: implements `Thread.run_command`.
        open_child: implements `Thread.open_child`.
    """

    def __init__(
        self,
        log: ThreadLog,
        settings: TurnSettings,
        *,
        settings_for: Callable[[Choices], TurnSettings],
        model: ModelClient,
        tools: ToolCalls,
        retries: Callable[[], RetryBudget],
        features: Sequence[Feature],
        run_command: Callable[
            ["Session", Script, CommandOptions], Awaitable[CommandResult]
        ],
        open_child: Callable[
            ["Session", NewChild], AbstractAsyncContextManager[ChildThread]
        ],
    ) -> None:
        super().__init__(log, settings, tools)
        thread = log.thread
        self.name = thread.name
        """The user's name for the thread; see `rename`."""
        self.keeps_file = False
        """True if the session file is worth keeping even if no turn begins."""
        self.is_resumed = thread.model is not None
        """True if the thread had a session before this one."""
        self.initial_items = thread.read_conversation
        """Reads the history from before this session, for `thread_items`. Raises a `SessionError`
        if that fails."""
        self._settings_for = settings_for
        self.features: Sequence[object] = features
        self._retries = retries
        self._is_closed = False
        self._idle = asyncio.Event()
        """Set when a turn or a compaction has ended."""
        self._run_command = run_command
        self._open_child = open_child
        self.extensions = [self._extension_of(each) for each in features]
        """The extensions of the features, in the same order; `extension` combines them."""
        self.extension = combined(self.extensions)
        self.model = self.extension.wrap_model(model.stream)
        self._compactor = Compactor(self)
        self._use(settings)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Announce the thread.

        On exit, end a running turn as `abort` does, and refuse later turns with a `RuntimeError`.

        Raises:
            CodexError: a feature cannot start. Nothing was emitted.
        """
        async with self.extension.around_session():
            self.announce()
            try:
                yield
            finally:
                self._is_closed = True
                if self.running is not None:
                    self.running.end()
                    await self._idle.wait()

    def announce(self) -> None:
        """Emit `ThreadStarted`, and the warnings that waited for it."""
        self.emit(events.ThreadStarted(self.thread_id))
        waiting = self._unsaid or []
        self._unsaid = None
        for text in waiting:
            self.warn(text)

    async def run_command(
        self, command: Script, **how: Unpack[CommandOptions]
    ) -> CommandResult:
        """See `Thread`."""
        return await self._run_command(self, command, how)

    def open_child(self, child: NewChild) -> AbstractAsyncContextManager[ChildThread]:
        """See `Thread`."""
        return self._open_child(self, child)

    def feature(self, kind: type[FeatureT]) -> FeatureT | None:
        """The feature of this class, for a frontend to use; None if the session has none."""
        for feature in self.features:
            if isinstance(feature, kind):
                return feature
        return None

    @property
    def is_running(self) -> bool:
        return self.running is not None

    @property
    def is_unfinished(self) -> bool:
        """True if the last turn failed or was interrupted, so that `retry` can continue it."""
        return self.log.is_unfinished

    async def run_turn(
        self,
        text: str,
        *,
        images: Sequence[Path] = (),
        output_schema: Any = None,
        tool_choice: str | None = None,
    ) -> TurnResult:
        """Run one turn to its end.

        Emits `TurnStarted` and exactly one of `TurnCompleted` and `TurnFailed` on every path. An
        error is returned, not raised. A cancelled turn ends the same way, with a history that
        can be sent again, and then raises `CancelledError`.

        Args:
            output_schema: a JSON Schema for the final answer, or a pydantic model. An answer that
                breaks it is sent back once; if the second one breaks it too, the result's `error`
                has the code `schema`.
            tool_choice: overrides the setting of this name for this turn.

        Raises:
            RuntimeError: a turn is running, or the session is closed.
            TypeError: the text is not a `str`, or the schema is a class but not a pydantic model.
            ConfigError: the tool choice is invalid.
            UsageError: there is neither text nor an image.
        """
        if not isinstance(cast("object", text), str):
            raise TypeError(f"the prompt is a {type(text).__name__}, not a str")
        if not (text.strip() or images):
            raise UsageError("the prompt is empty")
        choice = None
        if tool_choice is not None:
            choice = ToolChoice.parse(tool_choice)
        prompt = UserPrompt(text, tuple(map(str, images)))
        start = TurnStart(new_thread_id(), prompt, choice, answer_schema(output_schema))
        return await self._run(start, self._answer)

    async def retry(self, *, output_schema: Any = None) -> TurnResult:
        """Continue a turn that failed or was interrupted.

        No prompt is added, and no call runs again.

        Events, errors and cancellation are the same as for `run_turn`.

        Raises:
            RuntimeError: a turn is running.
            CodexError: the last turn completed, or was rolled back.
        """
        if not self.is_unfinished:
            raise CodexError("there is nothing to try again", code="nothing_to_retry")
        start = TurnStart(
            new_thread_id(), None, output_schema=answer_schema(output_schema)
        )
        return await self._run(start, self._answer)

    async def compact(self) -> TurnResult:
        """Replace the history by a summary.

        Events, errors and cancellation are the same as for a turn.

        Raises:
            RuntimeError: a turn is running.
        """
        return await self._run(TurnStart(new_thread_id(), None), self._compact)

    async def run_own(self, work: Callable[[], Awaitable[None]]) -> TurnResult:
        """Run work of the user's as a turn: the model is asked only if prompts are steered into it.

        Events, errors and cancellation are the same as for `run_turn`.

        Args:
            work: it may `emit` items, and `tell` the model about its result.

        Raises:
            RuntimeError: a turn is running, or the session is closed.
        """

        async def run(turn: RunningTurn, retries: RetryBudget) -> None:
            turn.takes_steering = True
            try:
                await work()
            except asyncio.CancelledError:
                self.log.abort(turn.ending)
                raise
            if self.steered:
                await self._answer(turn, retries)
            else:
                turn.takes_steering = False

        return await self._run(TurnStart(new_thread_id(), None), run)

    def steer(
        self,
        text: str,
        *,
        images: Sequence[Path] = (),
    ) -> bool:
        """Add a prompt to the running turn. It is sent with the turn's next request.

        That request is sent even if the running response calls no tool.
        `ItemCompleted(UserMessage)` is emitted when the prompt is in the history. Returns False if
        no turn is running, or the turn has sent its last request or was aborted: then run a turn
        with the prompt.
        """
        if self.running is None or not self.running.takes_steering:
            return False
        self.steered.append(UserPrompt(text, tuple(map(str, images))))
        return True

    def abort(self) -> None:
        """End the running turn, if there is one, as if cancelled; `run_turn` returns its result.

        For code inside the turn, which cannot cancel the turn without cancelling its caller too.
        """
        if self.running is not None:
            self.running.end()

    def end(self, error: CodexError) -> None:
        """End the running turn, if there is one, with an error.

        Its calls are answered `aborted: {error}`.
        """
        if self.running is not None:
            self.running.end(error)

    def take_unsent(self) -> list[UserPrompt]:
        """Take the steered prompts that were not sent because the turn failed or was cancelled."""
        unsent = self.steered
        self.steered = []
        return unsent

    def tell(self, note: Note) -> None:
        """Append a note to the history without starting a turn.

        It is sent with the next request, also within the running turn.
        """
        self.log.notes.append(note)
        if not self.is_running:
            self.log.send_notes()

    def inject(self, items: Sequence[EncodedItem]) -> None:
        """Append items to the history without starting a turn.

        They are sent with the next request, also within the running turn.

        Args:
            items: every call among them is followed by its output.
        """
        self.log.inject(items)
        if not self.is_running:
            self.log.send_notes()

    def change(self, choices: Choices) -> None:
        """Use other settings from the next call and the next request on, also in a running turn.

        For example: `session.change(replace(session.settings.choices, …))`.
        That request tells the model about the change.

        Raises:
            RuntimeError: the session is closed.
            ConfigError: the settings are not possible. Nothing changed.
        """
        self._must_be_open()
        self._use(self._settings_for(choices))
        self.log.outdate_context()

    @property
    def has_begun(self) -> bool:
        """True if the thread has a prompt or a summary, so that it is worth resuming."""
        return any(
            is_summary(item) or user_prompt(item) is not None for item in self.items
        )

    @property
    def is_kept(self) -> bool:
        """True if the thread has begun, and its session file is there to be resumed."""
        file = self.session_file
        return self.has_begun and file is not None and file.exists()

    @property
    def is_untouched(self) -> bool:
        """True if the thread is new, and nothing was added to its first items."""
        return self.log.is_untouched

    def state(self) -> ThreadState | None:
        """The state of the thread, for `SessionOptions.continued`; None if nothing was added."""
        if self.is_untouched:
            return None
        return self.log.state(self.name)

    def past_prompts(self) -> list[PastPrompt]:
        """The prompts that `rollback` can drop, oldest first."""
        return past_prompts(self.items)

    def rollback(self, turns: int) -> UserPrompt:
        """Drop the last `turns` prompts and everything after them; files are untouched.

        Returns the oldest prompt dropped. A steered prompt counts as a separate prompt.

        Raises:
            RuntimeError: a turn is running.
            ValueError: there are fewer prompts, see `past_prompts`.
        """
        self._must_be_idle()
        prompts = self.past_prompts()
        before = estimated_tokens(self.items)
        self.log.rollback(turns)
        # No response has counted the shorter history: scale the last count with the estimate.
        part_left = estimated_tokens(self.items) / max(1, before)
        tokens = round(self.log.last_usage.total_tokens * part_left)
        self.count(Usage(), Usage(input_tokens=tokens))
        oldest = prompts[-turns]
        return oldest.prompt

    def rename(self, name: str) -> None:
        """Rename the thread.

        Raises a `CodexError` for a blank name, and a `SessionError` if saving fails.
        """
        name = " ".join(name.split())
        if not name:
            raise CodexError("a thread cannot have a blank name", code="name")
        self.log.rename(name)
        self.name = name

    async def _run(
        self,
        start: TurnStart,
        work: Callable[[RunningTurn, RetryBudget], Awaitable[None]],
    ) -> TurnResult:
        """Run a turn or a compaction, which does its `work` and nothing else meanwhile."""
        self._must_be_idle()
        turn = RunningTurn(start)
        retries = self._retries()
        self.running = turn
        self._idle.clear()
        try:
            return await run_turn(self, turn, lambda: work(turn, retries))
        finally:
            self.running = None
            self._idle.set()
            self.log.send_notes()

    def _answer(self, turn: RunningTurn, retries: RetryBudget) -> Awaitable[None]:
        return Turn(self, turn, self._compactor, retries).run()

    async def _compact(self, _: RunningTurn, retries: RetryBudget) -> None:
        if not is_worth_compacting(self.items):
            raise CodexError(
                "there is nothing to compact yet", code="nothing_to_compact"
            )
        await self._compactor.compact(retries)

    def _must_be_idle(self) -> None:
        """Raise a `RuntimeError` if a turn is running, or the session is closed."""
        if self.running is not None:
            raise RuntimeError(
                "a turn of this session is running; wait for its end, or cancel it"
            )
        self._must_be_open()

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(
                "the session is closed: its `async with` block has ended"
            )

    def _extension_of(self, feature: Feature) -> Extension:
        """Call a feature with this session. Raises a `ConfigError` if it is no feature."""
        extension: Any = None
        if callable(feature):
            extension = feature(self)
        if not isinstance(extension, Extension):
            name = getattr(feature, "__qualname__", type(feature).__name__)
            raise ConfigError(
                f"{name} is not a feature: a feature is a function that takes the session and"
                " returns an `Extension`"
            )
        return extension

    def _use(self, settings: TurnSettings) -> None:
        """Use these settings, with the tools of the extensions added."""
        specs = [tool.spec for tool in self.extension.tools if tool.spec is not None]
        if specs:
            self.settings = replace(settings, tools=(*settings.tools, *specs))
        else:
            self.settings = settings
