"""Reads the settings, prompts, usage and changed files of a session, line by line: the file may be larger than
memory."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object, object_field
from codex_py.protocol.prompts import prompt_of
from codex_py.protocol.stream import Usage
from codex_py.rollout.lines import ThreadLines
from codex_py.rollout.records import read_token_count

_DIFFED: Final = re.compile(r'^diff --git .* "?b/(.*?)"?$', re.MULTILINE)


@frozen
class SessionDetails:
    settings: Mapping[str, str | None]
    """Of the last turn: `model`, `reasoning_effort`, `approval_policy`, `sandbox_mode`."""
    prompts: tuple[str, ...]
    """One for each turn that was not taken back."""
    usage: Usage
    files: tuple[str, ...]
    """Paths that patches have changed, as the session file has them."""
    damaged_lines: int


def read_details(path: Path) -> SessionDetails:
    """Raises a `SessionError` as `ThreadLines` does."""
    context: Mapping[str, Any] = {}
    prompts: list[str] = []
    usage, damaged_lines = Usage(), 0
    files: dict[str, None] = {}
    for line in ThreadLines(path).since():
        if line is None:
            damaged_lines += 1
            continue
        match line.kind, line.payload:
            case "response_item", payload if (prompt := prompt_of(payload)) is not None:
                prompts.append(prompt.text)
            case "turn_context", payload:
                context = payload
            case "event_msg", {"type": "thread_rolled_back", "num_turns": int(turns)} if turns > 0:
                del prompts[-turns:]
            case "event_msg", {"type": "token_count"} as payload:
                usage = (read_token_count(payload) or (usage,))[0]
            case "event_msg", {"type": "patch_applied", "diff": str(diff)}:
                files |= dict.fromkeys(_DIFFED.findall(diff))
            case "event_msg", {"item": {"type": "FileChange", "changes": changes}}:
                files |= dict.fromkeys(as_object(changes))
            case _:
                pass
    settings = {
        "model": context.get("model"),
        "reasoning_effort": context.get("effort"),
        "approval_policy": context.get("approval_policy"),
        "sandbox_mode": object_field(context, "sandbox_policy").get("type"),
    }
    known = {name: value if isinstance(value, str) else None for name, value in settings.items()}
    return SessionDetails(known, tuple(prompts), usage, tuple(files), damaged_lines)
