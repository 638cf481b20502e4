"""Reads the hooks of one file by event, and finds names that are no event."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from codex_py.config.check import dotted, problems
from codex_py.config.files import read_text
from codex_py.config.hook_files import HookFile
from codex_py.config.tables import HOOK_EVENTS, HOOKS, Table
from codex_py.errors import nearest
from codex_py.protocol.frozen import frozen

_DOCUMENT: Final[Table] = {
    "description": "any",
    "hooks": {**dict.fromkeys(HOOK_EVENTS, HOOKS), "*": "any"},
}
"""A file of JSON."""
_KNOWN: Final = {name.lower(): name for name in (*HOOK_EVENTS, "state", "claude", "stop_rounds")}
_MOST_UNKNOWN: Final = 100
"""To look for what one may mean takes some 0.3 ms, and the place of one as long as the file is."""
_CLAUDE_EVENTS: Final = (
    *("PermissionDenied", "PostToolBatch", "PostToolUseFailure", "Setup", "UserPromptExpansion"),
)
"""Events of Claude Code that resemble one of ours. Codex accepts them in its own files, which may be copies."""


@frozen
class HookEvents:
    groups: Mapping[str, Any]
    """By event; those of known events have the right types."""
    misspelt: Sequence[str]
    """A sentence for each name that seems to mean another event, so what its hooks refuse would run."""
    unsupported: Sequence[str]
    """A sentence for each other name that is no event here."""


def read_events(file: HookFile) -> HookEvents:
    """What a file defines. No event of a file for Claude Code is misspelt: it may have more of them than are known here.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: the file is damaged, or something in it is of the wrong type.
    """
    text = file.text
    if file.layer is not None:
        groups: Mapping[str, Any] = file.layer.values["hooks"]
    else:
        text = read_text(file.path, root=file.root) if text is None else text
        groups = {} if text is None else _groups(text, is_for_claude=file.claude is not None)
    misspelt: list[str] = []
    unsupported: list[str] = []
    unknown = [name for name in groups if name not in _KNOWN.values()]
    if len(unknown) > _MOST_UNKNOWN:
        raise ValueError(f"it has {len(unknown)} names that are no hook event")
    for name in unknown:
        plain = name.replace("_", "").lower()
        similar = None if name in _CLAUDE_EVENTS else nearest(plain, _KNOWN)
        hint = f"; did you mean `{_KNOWN[similar]}`?" if similar else "."
        sentence = f"{_place(file, text or '', name)}: there is no hook event `{dotted([name])}`, so its hooks do not run{hint}"
        (misspelt if similar and file.claude is None else unsupported).append(sentence)
    return HookEvents(groups, misspelt, unsupported)


def _groups(text: str, *, is_for_claude: bool) -> Mapping[str, Any]:
    document = _parsed(text)
    if mistakes := problems(document, _DOCUMENT | {"*": "any"} if is_for_claude else _DOCUMENT):
        where = f"`{dotted(mistakes[0].key)}`" if mistakes[0].key else "it"
        raise ValueError(f"{where} {mistakes[0].text}")
    # The switch is a setting of Claude Code.
    return {} if document.get("disableAllHooks") is True else document.get("hooks", {})


def _place(file: HookFile, text: str, event: str) -> str:
    if file.layer is not None:
        return file.layer.where(("hooks", event))
    before = text[: max(0, text.find(json.dumps(event)))]
    return f"{file.path}:{before.count(chr(10)) + 1}"


def _parsed(text: str) -> Any:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        # A lone surrogate, which JSON can spell, is an error.
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. `null` is no value; of two values for one name, one would be lost silently."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an object has two fields of one name")
    return {name: value for name, value in pairs if value is not None}
