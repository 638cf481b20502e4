"""What hooks read: one JSON object for each event, with the fields of Codex 0.169. LIGHT."""

from typing import Any, Final

from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.extension import Thread

_OF_SESSION: Final = frozenset({"SessionStart", "SessionEnd"})
"""Events that belong to no turn."""
_WITHOUT_MODE: Final = frozenset({"SessionEnd", "PreCompact", "PostCompact"})


def hook_input(thread: Thread, event: str, **fields: Any) -> dict[str, Any]:
    """The common fields of an event, and its own."""
    settings, parent, turn = thread.settings, thread.parent, thread.turn
    file = thread.session_file
    data: dict[str, Any] = {
        "session_id": thread.thread_id if parent is None else parent.root_id,
        "transcript_path": None if file is None else str(file),
        "cwd": str(settings.cwd),
        "hook_event_name": event,
    }
    if event not in _OF_SESSION and turn is not None:
        data["turn_id"] = turn.id
    if event != "SessionEnd":
        data["model"] = settings.model
    if event not in _WITHOUT_MODE:
        is_never = settings.approval_policy is ApprovalPolicy.NEVER
        data["permission_mode"] = "bypassPermissions" if is_never else "default"
    if parent is not None:
        data |= {"agent_id": thread.thread_id, "agent_type": agent_type(thread)}
        if event == "SubagentStop":
            data["agent_transcript_path"] = data["transcript_path"]
            file = parent.session_file
            data["transcript_path"] = None if file is None else str(file)
    return data | fields


def agent_type(thread: Thread) -> str:
    return (thread.parent and thread.parent.role) or "default"
