"""What the calls of a model are shown as where no tool shows them: live, and when a session is read back."""

import re
from collections.abc import Mapping
from typing import Any, Final

from codex_py.protocol.events import Change, ErrorItem

_HEADING: Final = re.compile(r"^\*\*\* (Add|Delete|Update) File: (.+)$", re.MULTILINE)
_KINDS: Final[Mapping[str, Any]] = {"Add": "add", "Delete": "delete", "Update": "update"}
_MAX_NAME_CHARS = 200
_MAX_MESSAGE_CHARS = 10_000


def failed_call(item_id: str, tool: str, call_id: str, code: str, reason: str) -> ErrorItem:
    """The item of a call that ended before its tool could show one: bad arguments, an unknown tool, …"""
    tool = shortened(tool, _MAX_NAME_CHARS)
    return ErrorItem(
        id=item_id,
        message=f"{tool or 'a call without a name'} failed: {shortened(reason)}",
        tool=tool,
        call_id=call_id,
        code=code,
    )


def named_changes(patch: str) -> list[Change]:
    """The files that the headings of an envelope name, sorted by path; the paths are as written there."""
    changes = [Change(path=m[2].strip(), kind=_KINDS[m[1]]) for m in _HEADING.finditer(patch)]
    return sorted(changes, key=lambda change: change.path)


def shortened(text: str, max_chars: int = _MAX_MESSAGE_CHARS) -> str:
    """The text, or its first and last characters with an ellipsis between them."""
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}…{text[-half:]}"
