"""Lists names of Codex that are keys of the configuration: features and events of hooks. LIGHT."""

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
    """Return the names in `[features]` that Codex 0.171 knows, old spellings included."""
    return frozenset(line.split()[0] for line in feature_lines())


def feature_lines() -> list[str]:
    """Return the rows that `codex features list` of Codex 0.171 prints.

    They have a name, a stage and a default, at least two blanks apart. An old spelling is a name
    alone. Codex has removed `undo`; its row is that of this program.
    """
    listed = Path(__file__).parent.with_name("codex_features.txt")
    return listed.read_text(encoding="utf-8").splitlines()
