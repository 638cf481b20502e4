"""How a turn runs between its first event and its last: how it ended, and the event that says so."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codex_py.core.running_turn import RunningTurn
from codex_py.core.session_state import SessionState
from codex_py.errors import (
    CodexError,
    ExitCode,
    TurnAborted,
    TurnSkipped,
    single_error,
)
from codex_py.protocol import events
from codex_py.protocol.approval import Denied
from codex_py.protocol.bugs import bug_found, bug_line
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

EndT = TypeVar("EndT", events.TurnCompleted, events.TurnFailed)


@frozen
class TurnResult:
    """What a turn of a `Session` brought."""

    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """Of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """True if a policy, or the user, refused a call."""
    exit_code: int = 0
    """That of `codex-py exec`: of the error, if the turn failed; else what an extension sets, or 3 if one was
    overridden, see `Extension.before_stop`. 0: the turn completed."""

    def raise_for_error(self) -> None:
        """Raises `error`, a `CodexError`, if the turn failed."""
        if self.error is not None:
            raise self.error


@frozen
class TurnOutcome:
    end: BaseException | None
    """What ended the turn: an error, a bug or a cancellation; None if it completed."""
    ending: CodexError | None
    """Why it was cancelled, if not by its user."""
    facts: Mapping[str, Any]
    """See `Extension.turn_facts`."""

    @property
    def bug(self) -> BaseException | None:
        """The exception that nobody expected, if one ended the turn."""
        is_expected = isinstance(self.end, CodexError | asyncio.CancelledError)
        if is_expected:
            return None
        return self.end

    @property
    def error(self) -> CodexError | None:
        """What the user is told; None if the turn completed."""
        end = self.end
        if end is None or isinstance(end, TurnSkipped):
            return None
        if isinstance(end, asyncio.CancelledError):
            return self.ending or TurnAborted("the turn was interrupted")
        if isinstance(end, CodexError):
            return end
        return CodexError(bug_line(end), code="internal")

    def events(
        self, usage: Usage, denied: Denied, stop: events.StopOverridden | None
    ) -> list[events.Event]:
        """The terminal event is the last."""
        error = self.error
        if error is None:
            refused = denied if denied.calls else None
            completed = events.TurnCompleted(usage, denied=refused, stop=stop)
            return [_with_facts(completed, self.facts)]
        info = events.ErrorInfo(str(error), error.code, error.retryable, error.status)
        return [
            events.Error(info.message, info.code, info.retryable, info.http_status),
            _with_facts(events.TurnFailed(info), self.facts),
        ]


async def run_turn(
    session: SessionState, turn: RunningTurn, work: Callable[[], Awaitable[None]]
) -> TurnResult:
    """Do the work of a turn, or of a compaction, between its first event and its last. See `Session.run_turn`."""
    session.emit(events.TurnStarted(turn.start.id))
    end = await _end_of(session, turn, work)
    outcome = await _outcome(session, turn, end)
    bug = outcome.bug
    if bug is not None:
        session.emit(bug_found(bug))
    for event in outcome.events(session.log.usage, turn.denied, turn.overridden):
        session.emit(event)
    if bug is not None:
        raise bug
    turn.take_back_cancellation(outcome.end)
    return _result(session, turn, outcome)


async def _end_of(
    session: SessionState, turn: RunningTurn, work: Callable[[], Awaitable[None]]
) -> BaseException | None:
    """Do the work inside `around_turn` of the extensions. Returns what ended it, and raises nothing."""
    end: BaseException | None = None
    try:
        async with session.extension.around_turn(turn.start):
            try:
                await work()
            except BaseException as error:
                # The turn fails even if an extension suppresses it.
                end = error
                raise
    except BaseException as error:  # noqa: BLE001
        end = error
    if end is None:
        return None
    return single_error(end)


async def _outcome(
    session: SessionState, turn: RunningTurn, end: BaseException | None
) -> TurnOutcome:
    """Ask the extensions for their facts. Whatever is raised here ends the turn, if nothing has before."""
    turn.is_over = True
    facts: Mapping[str, Any] = {}
    try:
        await turn.be_cancelled()
        facts = _checked_facts(session.extension.turn_facts())
        if isinstance(end, TurnSkipped):
            session.warn(str(end))
            refused = {"exit_code": end.exit_code, "prompt_refused": str(end)}
            facts = {**facts, **refused}
    except BaseException as error:  # noqa: BLE001
        if end is None:
            end = error
    return TurnOutcome(end, turn.ending, facts)


def _result(
    session: SessionState, turn: RunningTurn, outcome: TurnOutcome
) -> TurnResult:
    exit_code: int = outcome.facts.get("exit_code") or 0
    if not exit_code and turn.overridden:
        exit_code = ExitCode.GATE
    error = outcome.error
    if error is not None:
        # Of gates, the most serious one counts; any other error is stronger than they are.
        is_gate = ExitCode.GATE <= error.exit_code <= ExitCode.SANDBOX
        exit_code = max(error.exit_code, exit_code if is_gate else 0)
    denied = turn.denied.calls > 0
    return TurnResult(turn.last_message, session.log.usage, error, denied, exit_code)


def _checked_facts(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises a `CodexError` if they have another shape than `Extension.turn_facts` may return."""
    code = facts.get("exit_code") or 0
    diff = facts.get("diff") or ""
    if not isinstance(code, int) or code not in range(256):
        reason = f"`exit_code` is {code!r}, not a number from 0 to 255"
    elif not isinstance(diff, str):
        reason = f"`diff` is {diff!r}, not a string"
    else:
        return facts
    raise CodexError(
        f"an extension returned bad `turn_facts`: {reason}", code="extension"
    )


def _with_facts(event: EndT, facts: Mapping[str, Any]) -> EndT:
    """Add the facts of extensions to the event: to the fields of these names, the others to `facts`."""
    fields = event.__dataclass_fields__
    own = {
        name: value
        for name, value in facts.items()
        if name in fields and name != "type"
    }
    others = {
        name: facts[name] for name in facts if name not in {*own, "exit_code", "type"}
    }
    if facts:
        return replace(event, **own, facts=others)
    return event
