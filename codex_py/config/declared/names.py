"""The names of Codex that stand for keys: of features, and of events that hooks are run at. LIGHT."""

from functools import cache
from pathlib import Path
from typing import Final

HOOK_EVENTS: Final = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
)
"""The events in the order in which Codex counts the hooks of a file."""


def hook_events() -> tuple[str, ...]:
    return HOOK_EVENTS


@cache
def feature_names() -> frozenset[str]:
    """The names that `[features]` of Codex 0.171 knows, old spellings included."""
    return frozenset(line.split()[0] for line in feature_lines())


def feature_lines() -> list[str]:
    """The rows that `codex features list` of Codex 0.171 prints: name, stage and default, at least two blanks apart.

    An old spelling is a line without more. `undo`, which Codex has removed, is as it is here.
    """
    listed = Path(__file__).parent.with_name("codex_features.txt")
    return listed.read_text(encoding="utf-8").splitlines()
