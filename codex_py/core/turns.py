"""Runs the turns of a session, one at a time, each with one terminal event."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codex_py.core.compact import Compactor, is_worth_compacting
from codex_py.core.history import is_cut_off
from codex_py.core.parts import SessionParts
from codex_py.core.session_turn import SessionTurn, TurnResult
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import (
    CodexError,
    ExitCode,
    PromptRefused,
    TurnAborted,
    TurnSkipped,
    single_error,
)
from codex_py.protocol import events
from codex_py.protocol.extension import TurnStart
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.stream import ModelStream, ToolChoice
from codex_py.protocol.tools import ToolCall

_ONCE_MORE = (
    "Your last message cannot be used: {}\n"
    "Send the whole answer again, as JSON that satisfies the schema, and nothing else."
)

EndT = TypeVar("EndT", events.TurnCompleted, events.TurnFailed)
AnswerCheck = Callable[[Any], Callable[[str], str | None]]
"""Returns, for an output schema, a function that says how an answer breaks it."""


class Turns:
    """
    Args:
        model: wrapped by the extensions.
        retries: makes the retry budget of a turn.
    """

    def __init__(
        self,
        parts: SessionParts,
        model: ModelStream,
        handlers: ItemHandlers,
        retries: Callable[[], RetryBudget],
        answer_check: AnswerCheck,
    ) -> None:
        self._parts = parts
        self._model = model
        self._handlers = handlers
        self._retries = retries
        self._answer_check = answer_check
        self._compactor = Compactor(parts, model)
        self._ran: list[ToolCall] = []
        """Calls of a response that broke off: they must not run again when it is retried."""
        self.running: SessionTurn | None = None
        """The running turn or compaction."""
        self.is_unfinished = is_cut_off(parts.log.thread.items)
        """The last turn failed or was interrupted."""
        self._is_closed = False
        self._idle = asyncio.Event()

    async def run(
        self,
        prompt: UserPrompt | None,
        output_schema: Any,
        tool_choice: ToolChoice | None = None,
    ) -> TurnResult:
        """Run a turn, the unfinished one if there is no prompt; a second one if its answer breaks the output schema.

        See `Session.run_turn`.
        """
        if output_schema is None:
            return await self._run(prompt, self._work, tool_choice=tool_choice)
        violation = self._answer_check(output_schema)
        first = await self._run(prompt, self._work, output_schema, tool_choice)
        is_over = first.error or (first.exit_code and first.last_message is None)
        if is_over or (wrong := violation(first.last_message or "")) is None:
            return first
        self._parts.thread.warn(f"{wrong}; asking once more")
        again = UserPrompt(_ONCE_MORE.format(wrong))
        second = await self._run(again, self._work, output_schema)
        second = replace(second, denied=first.denied or second.denied)
        if second.error is not None or (wrong := violation(second.last_message or "")) is None:
            return second
        return replace(second, error=CodexError(wrong, code="schema", exit_code=ExitCode.SCHEMA))

    async def compact(self) -> TurnResult:
        async def work(turn: SessionTurn) -> None:
            if not is_worth_compacting(self._parts.log.items):
                raise CodexError("there is nothing to compact yet", code="nothing_to_compact")
            await self._compactor.compact(turn.retries)

        return await self._run(None, work)

    async def close(self) -> None:
        """Refuse all later turns, end the one that runs, and wait until it has ended."""
        self._is_closed = True
        if self.running is not None:
            self.running.end()
            await self._idle.wait()

    def must_be_idle(self) -> None:
        """Raises a `RuntimeError` if a turn is running, or the session is closed."""
        if self.running is not None:
            raise RuntimeError("a turn of this session is running; wait for its end, or cancel it")
        if self._is_closed:
            raise RuntimeError("the session is closed: its `async with` block has ended")

    def forget(self) -> None:
        """The last turn was rolled back: there is nothing to retry."""
        self.is_unfinished = False
        self._ran.clear()

    async def _work(self, session_turn: SessionTurn) -> None:
        turn = Turn(
            session_turn,
            self._model,
            self._handlers,
            session_turn.retries,
            max_responses=self._parts.thread.settings.max_responses,
            ran=self._ran,
        )
        was_unfinished, self.is_unfinished = self.is_unfinished, True
        try:
            await session_turn.begin()
            await turn.run()
            await session_turn.be_cancelled()
        except asyncio.CancelledError:
            self._parts.log.abort(session_turn.ending)
            raise
        except PromptRefused:
            self.is_unfinished = was_unfinished
            raise
        self.is_unfinished = False

    async def _run(
        self,
        prompt: UserPrompt | None,
        work: Callable[[SessionTurn], Awaitable[None]],
        output_schema: Any = None,
        tool_choice: ToolChoice | None = None,
    ) -> TurnResult:
        self.must_be_idle()
        parts = self._parts
        start = TurnStart(new_thread_id(), prompt, tool_choice)
        retries = self._retries()
        turn = SessionTurn(parts, self._compactor, start, retries, self._ran, output_schema)
        self.running = turn
        self._idle.clear()
        end: BaseException | None = None
        facts: Mapping[str, Any] = {}
        try:
            parts.thread.emit(events.TurnStarted())
            try:
                async with parts.extension.around_turn(start):
                    try:
                        await work(turn)
                    except BaseException as error:
                        # The turn fails even if an extension suppresses it.
                        end = single_error(error)
                        raise
            except BaseException as error:  # noqa: BLE001
                end = single_error(error)
            turn.is_over = True
            try:
                await turn.be_cancelled()
                facts = _checked(parts.extension.turn_facts())
                if isinstance(end, TurnSkipped):
                    parts.thread.warn(str(end))
                    facts = {**facts, "exit_code": end.exit_code, "prompt_refused": str(end)}
            except BaseException as error:  # noqa: BLE001
                end = error if end is None else end
            self._emit_end(turn, error := _shown_error(turn, end), facts)
        finally:
            self.running = None
            self._idle.set()
            parts.send_notes()
        is_cancelled = isinstance(end, asyncio.CancelledError)
        if end is not None and not (is_cancelled or isinstance(end, CodexError)):
            raise end
        if turn.is_cancelled_by_others() or (is_cancelled and not turn.is_ended):
            raise asyncio.CancelledError
        return turn.result(error, facts)

    def _emit_end(
        self, turn: SessionTurn, error: CodexError | None, facts: Mapping[str, Any]
    ) -> None:
        emit = self._parts.thread.emit
        if error is None:
            denied = turn.denied if turn.denied.calls else None
            end = events.TurnCompleted(self._parts.usage, denied=denied, stop=turn.overridden)
            emit(_with_facts(end, facts))
            return
        info = events.ErrorInfo(str(error), error.code, error.retryable, error.status)
        emit(events.Error(info.message, info.code, info.retryable, info.http_status))
        emit(_with_facts(events.TurnFailed(info), facts))


def _shown_error(turn: SessionTurn, end: BaseException | None) -> CodexError | None:
    if end is None or isinstance(end, CodexError):
        return None if isinstance(end, TurnSkipped) else end
    if isinstance(end, asyncio.CancelledError):
        return turn.ending or TurnAborted("the turn was interrupted")
    return CodexError(f"internal error: {end!r}", code="internal")


def _checked(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    code, diff = facts.get("exit_code") or 0, facts.get("diff") or ""
    if not isinstance(code, int) or code not in range(256):
        reason = f"`exit_code` is {code!r}, not a number from 0 to 255"
    elif not isinstance(diff, str):
        reason = f"`diff` is {diff!r}, not a string"
    else:
        return facts
    raise CodexError(f"an extension returned bad `turn_facts`: {reason}", code="extension")


def _with_facts(event: EndT, facts: Mapping[str, Any]) -> EndT:
    """Add the facts of extensions to the event: to the fields of these names, the others to `facts`."""
    fields = event.__dataclass_fields__
    own = {name: value for name, value in facts.items() if name in fields and name != "type"}
    others = {name: facts[name] for name in facts if name not in {*own, "exit_code", "type"}}
    return replace(event, **own, facts=others) if facts else event
