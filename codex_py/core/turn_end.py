"""How a turn ended, and the event that says so."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codex_py.errors import CodexError, TurnAborted, TurnSkipped
from codex_py.protocol import events
from codex_py.protocol.approval import Denied
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

EndT = TypeVar("EndT", events.TurnCompleted, events.TurnFailed)


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


def checked_facts(facts: Mapping[str, Any]) -> Mapping[str, Any]:
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
