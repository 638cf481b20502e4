"""Runs the turns of a session, one at a time, each with one terminal event."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codex_py.core.compact import is_worth_compacting
from codex_py.core.compactor import Compactor
from codex_py.core.conversation import SessionTurn
from codex_py.core.parts import SessionParts
from codex_py.core.past import is_cut_off
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.core.turn_state import TurnResult, TurnState, with_valid_answer
from codex_py.errors import CodexError, PromptRefused, TurnAborted, single_error
from codex_py.protocol.events import (
    Error,
    ErrorInfo,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.extension import TurnStart
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.stream import ModelStream
from codex_py.protocol.tools import ToolCall

EndT = TypeVar("EndT", TurnCompleted, TurnFailed)
AnswerCheck = Callable[[Any], Callable[[str], str | None]]
"""Returns, for an output schema, a function that says how an answer breaks it."""


class Turns:
    """
    Args:
        model: wrapped by the extensions.
        load_handlers: see `Turn`.
        retries: makes the retry budget of a turn.
    """

    def __init__(
        self,
        parts: SessionParts,
        model: ModelStream,
        load_handlers: Callable[[], ItemHandlers],
        retries: Callable[[], RetryBudget],
        answer_check: AnswerCheck,
    ) -> None:
        self._parts = parts
        self._model = model
        self._load_handlers = load_handlers
        self._retries = retries
        self._answer_check = answer_check
        self._compactor = Compactor(parts, model)
        self._ran: list[ToolCall] = []
        """Calls of a response that broke off: they must not run again when it is retried."""
        self.running: TurnState | None = None
        """The running turn or compaction."""
        self.is_unfinished = is_cut_off(parts.log.thread.items)
        """The last turn failed or was interrupted."""
        self.is_closed = False
        self._idle = asyncio.Event()

    async def run(self, prompt: UserPrompt | None, output_schema: Any) -> TurnResult:
        """Run a turn, the unfinished one if there is no prompt. See `Session.run_turn`."""

        def run(again: str | None) -> Awaitable[TurnResult]:
            said = prompt if again is None else UserPrompt(again)
            return self._run(said, self._work, output_schema)

        if output_schema is None:
            return await run(None)
        check = self._answer_check(output_schema)
        return await with_valid_answer(run, check, self._parts.thread.warn)

    async def compact(self) -> TurnResult:
        """See `Session.compact`."""

        async def work(turn: TurnState) -> None:
            if not is_worth_compacting(self._parts.log.items):
                raise CodexError("there is nothing to compact yet", code="nothing_to_compact")
            await self._compactor.compact(turn.retries, "manual")

        return await self._run(None, work)

    async def close(self) -> None:
        """Refuse all later turns, end the one that runs, and wait until it has ended."""
        self.is_closed = True
        if self.running is not None:
            self.running.end()
            await self._idle.wait()

    def must_be_idle(self) -> None:
        """
        Raises:
            RuntimeError: a turn is running, or the session is closed.
        """
        if self.running is not None:
            raise RuntimeError("a turn of this session is running; wait for its end, or cancel it")
        if self.is_closed:
            raise RuntimeError("the session is closed: its `async with` block has ended")

    def forget(self) -> None:
        """The last turn was rolled back: there is nothing to retry."""
        self.is_unfinished = False
        self._ran.clear()

    async def _work(self, state: TurnState) -> None:
        state.takes_steering = True
        conversation = SessionTurn(self._parts, state, self._compactor, self._ran)
        turn = Turn(
            conversation,
            self._model,
            self._load_handlers,
            state.retries,
            max_responses=self._parts.thread.settings.max_responses,
            ran=self._ran,
        )
        was_unfinished, self.is_unfinished = self.is_unfinished, True
        try:
            await conversation.begin(state.start.prompt)
            await turn.run()
            await state.be_cancelled()
        except asyncio.CancelledError:
            self._parts.log.abort(state.ending)
            raise
        except PromptRefused:
            self.is_unfinished = was_unfinished
            raise
        self.is_unfinished = False

    async def _run(
        self,
        prompt: UserPrompt | None,
        work: Callable[[TurnState], Awaitable[None]],
        output_schema: Any = None,
    ) -> TurnResult:
        self.must_be_idle()
        parts = self._parts
        start = TurnStart(new_thread_id(), prompt)
        self.running = turn = TurnState(start, self._retries(), output_schema)
        self._idle.clear()
        end: BaseException | None = None
        facts: Mapping[str, Any] = {}
        try:
            parts.thread.emit(TurnStarted())
            try:
                async with parts.extension.around_turn(start):
                    await work(turn)
            except BaseException as error:  # noqa: BLE001
                end = single_error(error)
            turn.is_over = True
            try:
                await turn.be_cancelled()
                facts = parts.extension.turn_facts()
            except BaseException as error:  # noqa: BLE001
                end = error if end is None else end
            result = self._finish(turn, end, facts)
        finally:
            self.running = None
            self._idle.set()
            parts.log.tell(parts.outbox.take_notes())
        is_cancelled = isinstance(end, asyncio.CancelledError)
        if end is not None and not (is_cancelled or isinstance(end, CodexError)):
            raise end
        if turn.is_cancelled_by_others() or (is_cancelled and not turn.is_ended):
            raise asyncio.CancelledError
        return result

    def _finish(
        self, turn: TurnState, end: BaseException | None, facts: Mapping[str, Any]
    ) -> TurnResult:
        """Emit the terminal event of a turn."""
        usage, emit = self._parts.tokens.total, self._parts.thread.emit
        match end:
            case None:
                denied = turn.denied if turn.denied.calls else None
                emit(_with_facts(TurnCompleted(usage, denied=denied), facts))
                return turn.result(usage, None, facts)
            case CodexError():
                error = end
            case asyncio.CancelledError():
                error = turn.ending or TurnAborted("the turn was interrupted")
            case _:
                error = CodexError(f"internal error: {end!r}", code="internal")
        info = ErrorInfo(str(error), error.code, error.retryable, error.status)
        emit(Error(info.message, info.code, info.retryable, info.http_status))
        emit(_with_facts(TurnFailed(info), facts))
        return turn.result(usage, error, facts)


def _with_facts(event: EndT, facts: Mapping[str, Any]) -> EndT:
    """Add the facts of extensions to the event: to the fields of these names, the others to `facts`."""
    fields = event.__dataclass_fields__
    own = {name: value for name, value in facts.items() if name in fields and name != "type"}
    others = {name: facts[name] for name in facts if name not in {*own, "exit_code", "type"}}
    return replace(event, **own, facts=others) if facts else event
