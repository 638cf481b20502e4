"""Runs a turn between its first event and its last, and makes the events that end it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
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
from codex_py.protocol.dispatch import ApproverFailed
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

EndT = TypeVar("EndT", events.TurnCompleted, events.TurnFailed)


@frozen
class TurnResult:
    """The result of a turn of a `Session`."""

    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """The tokens of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """True if a policy, or the user, refused a call."""
    exit_code: int = 0
    """The exit code of `codex-py exec`: the error's if the turn failed, else the one that an
    extension sets, else 3 if the turn ended although an extension wanted to continue it (see
    `Extension.before_stop`), else 0."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields that extensions add to the last event of the turn; see `Extension.turn_facts`."""

    def raise_for_error(self) -> None:
        """Raises `error`, a `CodexError`, if the turn failed."""
        if self.error is not None:
            raise self.error


@frozen
class TurnOutcome:
    """How a turn ended, before its last events are made."""

    end: BaseException | None
    """The error, bug or cancellation that ended the turn; None if it completed."""
    ending: CodexError | None
    """The reason for the cancellation; None if the user cancelled the turn."""
    facts: Mapping[str, Any]
    """See `Extension.turn_facts`."""
    was_cancelled: bool = False
    """True if the turn was cancelled, from inside or outside."""

    @property
    def is_cancellation(self) -> bool:
        """True if a cancellation of the turn ended it.

        Without one, a `CancelledError` is a bug: a function that the turn called has raised it.
        """
        return self.was_cancelled and isinstance(self.end, asyncio.CancelledError)

    @property
    def bug(self) -> BaseException | None:
        """The unexpected exception that ended the turn, if there was one."""
        if self.is_cancellation or isinstance(self.end, CodexError):
            return None
        return self.end

    @property
    def error(self) -> CodexError | None:
        """The error to show to the user; None if the turn completed."""
        end = self.end
        if end is None or isinstance(end, TurnSkipped):
            return None
        if self.is_cancellation:
            return self.ending or TurnAborted("the turn was interrupted")
        if isinstance(end, CodexError):
            return end
        return CodexError(bug_line(end), code="internal")

    def events(
        self, usage: Usage, denied: Denied, stop: events.StopOverridden | None
    ) -> list[events.Event]:
        """Make the events that end the turn; the terminal event is the last."""
        error = self.error
        if error is None:
            refused = denied if denied.calls else None
            completed = events.TurnCompleted(usage, denied=refused, stop=stop)
            return [_with_facts(completed, self.facts)]
        info = events.ErrorInfo(str(error), error.code, error.retryable, error.status)
        failed = _with_facts(events.TurnFailed(info), self.facts)
        return [
            events.Error(info.message, info.code, info.retryable, info.http_status),
            failed,
        ]


async def run_turn(
    session: SessionState, turn: RunningTurn, work: Callable[[], Awaitable[None]]
) -> TurnResult:
    """Do the work of a turn or a compaction, and emit its first and last events.

    See `Session.run_turn`.
    """
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
    """Do the work inside the extensions' `around_turn`.

    Returns the exception that ended it, and raises nothing.
    """
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
    cause = single_error(end)
    if isinstance(cause, ApproverFailed):
        return cause.error
    return cause


async def _outcome(
    session: SessionState, turn: RunningTurn, end: BaseException | None
) -> TurnOutcome:
    """Ask the extensions for their facts.

    An exception here counts as the turn's end, unless the turn has already failed.
    """
    turn.is_over = True
    facts: Mapping[str, Any] = {}
    try:
        await turn.be_cancelled()
        facts = session.extension.turn_facts()
        if isinstance(end, TurnSkipped):
            session.warn(str(end))
            refused = {"exit_code": end.exit_code, "prompt_refused": str(end)}
            facts = {**facts, **refused}
    except BaseException as error:  # noqa: BLE001
        if end is None:
            end = error
    return TurnOutcome(end, turn.ending, facts, turn.was_cancelled)


def _result(
    session: SessionState, turn: RunningTurn, outcome: TurnOutcome
) -> TurnResult:
    exit_code: int = outcome.facts.get("exit_code") or 0
    if not exit_code and turn.overridden:
        exit_code = ExitCode.GATE
    error = outcome.error
    if error is not None:
        is_gate = ExitCode.GATE <= error.exit_code <= ExitCode.SANDBOX
        if is_gate:
            # The most serious gate counts.
            exit_code = max(error.exit_code, exit_code)
        else:
            # Any other error is more serious than a gate.
            exit_code = error.exit_code
    denied = turn.denied.calls > 0
    return TurnResult(
        turn.last_message,
        session.log.usage,
        error,
        denied,
        exit_code,
        outcome.facts,
    )


def _with_facts(event: EndT, facts: Mapping[str, Any]) -> EndT:
    """Add the extensions' facts to the event: to the field of that name, or else to `facts`."""
    if not facts:
        return event
    fields = event.__dataclass_fields__
    own: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in facts.items():
        if name == "type":
            continue
        if name in fields:
            own[name] = value
        elif name != "exit_code":
            others[name] = value
    return replace(event, **own, facts=others)
