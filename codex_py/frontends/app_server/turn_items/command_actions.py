"""Tells the client what a command does, in the format of Codex: it reads, lists or searches files.

Clients show such a command by its action, and any other by its script.
"""

import os.path
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from codex_py.app.views.looks import Look, looks_of

_Action: TypeAlias = dict[str, Any]
_FLAGS: Final = {
    "rg": set("nilwcvHFoPsSuaUILx"),
    "grep": set("nrRilwcvHhFEoPsaILx"),
}
"""The options of programs that search which take no value."""
_LONG_FLAGS: Final = {
    "--files",
    "--files-with-matches",
    "--fixed-strings",
    "--hidden",
    "--ignore-case",
    "--line-number",
    "--no-heading",
    "--no-ignore",
    "--recursive",
}


def command_actions(script: str, cwd: str) -> list[_Action]:
    """Return the actions of a script; a single unknown one if it does more than look at files.

    Args:
        cwd: the folder of the command, absolute.
    """
    unknown: _Action = {"type": "unknown", "command": script}
    actions: list[_Action] = []
    for look in looks_of(script):
        action = _action(look, cwd)
        if action is None:
            return [unknown]
        actions.append(action)
    return actions or [unknown]


def _action(look: Look, cwd: str) -> _Action | None:
    """Make the action of a command; None if it looks at several files, or it is unclear at which."""
    if len(look.paths) > 1 or not _has_flags_only(look.command):
        return None
    path = None
    if look.paths:
        path = look.paths[0]
    command = shlex.join(look.command)
    match look.kind:
        case "read":
            if path is None or look.folder is None:
                return None
            whole = os.path.normpath(PurePath(cwd, look.folder, path))
            name = PurePath(path).name
            return {"type": "read", "command": command, "name": name, "path": whole}
        case "list":
            return {"type": "listFiles", "command": command, "path": path}
        case "search":
            return {
                "type": "search",
                "command": command,
                "query": look.pattern,
                "path": path,
            }


def _has_flags_only(command: Sequence[str]) -> bool:
    """False for a search with options whose values look like patterns or files."""
    program, *words = command
    flags = _FLAGS.get(program)
    if flags is None:
        return True
    for word in words:
        if word.startswith("--"):
            if "=" not in word and word not in _LONG_FLAGS:
                return False
        elif word.startswith("-") and not flags.issuperset(word[1:]):
            return False
    return True
