"""Reads the answer of a hook from its exit code and its output.

Source: Codex 0.169, measured. LIGHT.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, object_field
from codex_py.protocol.messages import decode_json
from codex_py.tools.truncate import truncate_output

_REFUSED: Final = 2
"""The exit code of a refusal; stderr gives the reason."""
_CAN_REFUSE: Final = frozenset(
    {
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
    }
)
_ADDS_TEXT: Final = frozenset({"SessionStart", "SubagentStart", "UserPromptSubmit"})
"""Events for which plain output is context for the model."""
_MAX_TOKENS: Final = 2_500
"""The limit of each text, as in Codex."""


@frozen(kw_only=True)
class HookAnswer:
    """The answer of a hook. Its texts are trimmed, bounded and never blank."""

    refusal: str | None = None
    """The reason why the hook refuses the event's call, prompt or other subject."""
    stop: str | None = None
    """The reason why the hook stops everything, with `continue: false`."""
    is_approved: bool = False
    """True if a `PermissionRequest` hook says yes."""
    context: str | None = None
    """A text for the model."""
    updated_input: Mapping[str, Any] | None = None
    message: str | None = None
    """A text for the user."""
    failure: str | None = None
    """The reason why a part of the answer does not count, such as `exited with code 1`. The subject of
    the sentence is the hook."""


def read_answer(
    event: str, exit_code: int, stdout: str, stderr: str = ""
) -> HookAnswer:
    """Read an answer. `exit_code`: negative after a signal."""
    output = stdout.strip()
    if exit_code == _REFUSED and event in _CAN_REFUSE:
        return HookAnswer(**_refusal(stderr))
    if exit_code != 0:
        if exit_code < 0:
            how = "was killed by signal"
        else:
            how = "exited with code"
        failure = f"{how} {abs(exit_code)}"
        said = stderr.strip().splitlines()
        if said:
            # The last line of a traceback or of a shell gives the reason.
            failure += f": {said[-1].strip().rstrip('.')}"
        return HookAnswer(failure=failure)
    if not output.startswith(("{", "[")):
        if event in _ADDS_TEXT:
            return HookAnswer(context=_text(output))
        return HookAnswer()
    try:
        fields: Any = decode_json(output)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return HookAnswer(failure="printed something that is not a JSON object")
    fields = cast("JsonObject", fields)
    own = object_field(fields, "hookSpecificOutput")
    answer = _decision(event, fields, own)
    # As in Codex, a hook cannot end the turn before a call.
    if fields.get("continue") is False and event != "PreToolUse":
        answer["stop"] = _text(fields.get("stopReason")) or "a hook stopped it"
    context = own.get("additionalContext")
    message = fields.get("systemMessage")
    return HookAnswer(context=_text(context), message=_text(message), **answer)


def _decision(
    event: str,
    fields: JsonObject,
    own: JsonObject,
) -> dict[str, Any]:
    """Return the fields of a `HookAnswer` that say whether the event's subject may go on.

    Args:
        own: the `hookSpecificOutput` in `fields`.
    """
    match event, own:
        case "PermissionRequest", {"decision": {"behavior": "allow"}}:
            return {"is_approved": True}
        case "PermissionRequest", {"decision": {"behavior": "deny", **more}}:
            return {"refusal": _text(more.get("message")) or "a hook refused it"}
        case "PermissionRequest", _:
            return {}
        case "PreToolUse", {"permissionDecision": "deny"}:
            return _refusal(own.get("permissionDecisionReason"))
        case "PreToolUse", {"permissionDecision": "allow"}:
            updated = own.get("updatedInput")
            return {"updated_input": updated if isinstance(updated, dict) else None}
        case "PreToolUse", {"permissionDecision": _} | {"updatedInput": _}:
            # Without a decision to allow, a new input does not count either.
            unsupported = str(own.get("permissionDecision"))[:40]
            return {
                "failure": f"gave the unsupported `permissionDecision` {unsupported!r}"
            }
        case _ if event in _CAN_REFUSE and fields.get("decision") == "block":
            return _refusal(fields.get("reason"))
        case _:
            return {}


def _refusal(reason: Any) -> dict[str, Any]:
    text = _text(reason)
    return {"refusal": text, "failure": None if text else "refused without a reason"}


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text:
        return None
    return truncate_output(text, _MAX_TOKENS)
