"""Advice for users who type a slash command of another coding agent, or of Codex, that is not here."""

from collections.abc import Mapping
from typing import Final

_FILES: Final = "`@` before a name adds a file."
_KEY: Final = "Leave, then run `codex-py login`."
_SETTINGS: Final = "Leave, then run `codex-py config explain KEY`."
_TOKENS: Final = "Use /cost."
_PERMISSIONS: Final = "Use /permissions."
_LEAVE: Final = "Use /quit."

ELSEWHERE: Final[Mapping[str, str]] = {
    "add": _FILES,
    "add-dir": "Leave, then use `codex-py --add-dir DIR`.",
    "allowed-tools": _PERMISSIONS,
    "approvals": _PERMISSIONS,
    "architect": "Use /plan.",
    "auth": _KEY,
    "bye": _LEAVE,
    "checkpoint": "Every turn can be undone: use /undo or /rewind.",
    "config": _SETTINGS,
    "context": "Use /status.",
    "doctor": "Leave, then run `codex-py doctor`.",
    "drop": "Use /rewind to drop turns, or /new.",
    "effort": "Use /model.",
    "files": _FILES,
    "history": "Use /transcript, or /resume for other sessions.",
    "ide": "An editor starts `codex-py acp`; see docs/editors.md.",
    "login": _KEY,
    "logout": "Leave, then run `codex-py logout`.",
    "ls": "Use `!ls`.",
    "memory": "Instructions are in AGENTS.md; /init writes one.",
    "mention": _FILES,
    "models": "Use /model.",
    "provider": "Use /model PROVIDER/MODEL.",
    "read": _FILES,
    "reasoning": "Use /model.",
    "reset": "Use /new.",
    "restore": "Use /undo or /rewind.",
    "run": "Use `!COMMAND`.",
    "sandbox": _PERMISSIONS,
    "sessions": "Use /resume.",
    "settings": _SETTINGS,
    "stats": _TOKENS,
    "think": "Use /model.",
    "tokens": _TOKENS,
    "tools": "Use /mcp.",
    "usage": _TOKENS,
    "yolo": _PERMISSIONS,
}
"""A sentence for each name."""
