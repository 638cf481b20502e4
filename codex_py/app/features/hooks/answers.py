"""Reads what a hook answers, from its exit code and its output. Source: Codex 0.169, measured. LIGHT."""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import decode_json
from codex_py.tools.truncate import truncate_output

_REFUSED: Final = 2
"""The exit code of a refusal; stderr gives the reason."""
_CAN_REFUSE: Final = frozenset(
    {"PreToolUse", "PermissionRequest", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop"}
)
_ADDS_TEXT: Final = frozenset({"SessionStart", "SubagentStart", "UserPromptSubmit"})
"""Events for which plain output is context for the model."""
_MAX_TOKENS: Final = 2_500
"""Of each text, as in Codex."""


@frozen
class Ended:
    """How a hook ended."""

    exit_code: int
    """Negative after a signal."""
    stdout: str
    stderr: str = ""


@frozen(kw_only=True)
class Answer:
    """What a hook wants. Its texts are trimmed, bounded and never blank."""

    refusal: str | None = None
    """Why the hook refuses what the event is about."""
    is_approved: bool = False
    """A `PermissionRequest` hook says yes."""
    context: str | None = None
    """For the model."""
    updated_input: Mapping[str, Any] | None = None
    is_stopped: bool = False
    """`continue: false`."""
    stop_reason: str | None = None
    message: str | None = None
    """For the user."""
    failure: str | None = None
    """Why something of the answer does not count, to be read after the name of the hook."""

    @property
    def ends(self) -> str | None:
        """Why the hook refuses or stops what the event is about; None if it does not."""
        if self.refusal is None and self.is_stopped:
            return self.stop_reason or "a hook stopped it"
        return self.refusal

    @property
    def outcome(self) -> Literal["blocked", "failed", "completed"]:
        if self.ends is not None:
            return "blocked"
        return "completed" if self.failure is None else "failed"


def read_answer(event: str, ended: Ended) -> Answer:
    code, output = ended.exit_code, ended.stdout.strip()
    if code == _REFUSED and event in _CAN_REFUSE:
        reason = _text(ended.stderr)
        return Answer(refusal=reason, failure=None if reason else "refused without a reason")
    if code != 0:
        how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
        return Answer(failure=how)
    if not output.startswith(("{", "[")):
        return Answer(context=_text(output) if event in _ADDS_TEXT else None)
    try:
        fields = decode_json(output)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return Answer(failure="printed something that is not a JSON object")
    return _read_fields(event, cast("dict[str, Any]", fields))


def _read_fields(event: str, fields: Mapping[str, Any]) -> Answer:
    own = cast("Any", fields.get("hookSpecificOutput"))
    own = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    decision: dict[str, Any] = {}
    if event == "PermissionRequest":
        decision = _permission(own.get("decision"))
    elif event == "PreToolUse" and not own.keys().isdisjoint(
        {"permissionDecision", "updatedInput"}
    ):
        decision = _tool_decision(own)
    elif event in _CAN_REFUSE and fields.get("decision") == "block":
        decision = _refusal(fields.get("reason"))
    return Answer(
        context=_text(own.get("additionalContext")),
        # As in Codex, a hook cannot end the turn before a call.
        is_stopped=fields.get("continue") is False and event != "PreToolUse",
        stop_reason=_text(fields.get("stopReason")),
        message=_text(fields.get("systemMessage")),
        **decision,
    )


def _refusal(reason: Any) -> dict[str, Any]:
    text = _text(reason)
    return {"refusal": text, "failure": None if text else "refused without a reason"}


def _tool_decision(own: Mapping[str, Any]) -> dict[str, Any]:
    decision, updated = own.get("permissionDecision"), own.get("updatedInput")
    if decision == "deny":
        return _refusal(own.get("permissionDecisionReason"))
    if decision == "allow":
        return {"updated_input": updated if isinstance(updated, dict) else None}
    return {"failure": f"gave the unsupported `permissionDecision` {str(decision)[:40]!r}"}


def _permission(decision: Any) -> dict[str, Any]:
    match decision:
        case None:
            return {}
        case {"behavior": "allow"}:
            return {"is_approved": True}
        case {"behavior": "deny", **rest}:
            return {"refusal": _text(rest.get("message")) or "a hook refused it"}
        case _:
            return {"failure": "gave an unsupported `decision`"}


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    return truncate_output(text, _MAX_TOKENS)
