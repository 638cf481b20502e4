"""Context for a continued thread: permissions, environment and AGENTS.md, if they changed.

Whole blocks are sent again, as Codex does, so that only the last block of each kind counts. LIGHT:
this runs before the first request of a resumed session.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from codex_py.instructions import instruction_text
from codex_py.protocol.messages import EncodedItem, input_text, message

_AGENTS: Final = "# AGENTS.md instructions"
_KINDS: Final = ("<permissions instructions>", _AGENTS, "<environment_context>")
"""How the text of each block begins."""

_OPENING: Final = "<INSTRUCTIONS>\n"
_REPLACES: Final = (
    "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
)
_NO_AGENTS: Final = (
    f"{_AGENTS}\n\n{_OPENING}The previously provided AGENTS.md instructions no longer apply.\n"
    "</INSTRUCTIONS>"
)


def context_update(
    history: Sequence[EncodedItem], current: Sequence[EncodedItem]
) -> list[EncodedItem]:
    """The messages that bring a model up to date.

    Args:
        history: of the thread.
        current: the first items of a new thread, see `initial_items`. Parts of other kinds, such as the
            user's own instructions, are not updated.
    """
    before = _latest_blocks(history)
    texts = [
        (item["role"], part["text"])
        for item in map(json.loads, current)
        for part in item["content"]
    ]
    if _AGENTS in before and not any(text.startswith(_AGENTS) for _, text in texts):
        texts.insert(0, ("user", _NO_AGENTS))
    update: list[EncodedItem] = []
    for role in ("developer", "user"):
        parts = [
            input_text(_worded(text, kind, before))
            for its_role, text in texts
            if its_role == role and (kind := _kind(text)) and text != before.get(kind)
        ]
        if parts:
            update.append(message(role, parts))
    return update


def model_switch() -> EncodedItem:
    """The message that tells a model that another one wrote the earlier turns."""
    text = f"<model_switch>\n{instruction_text('model_switch.md')}\n</model_switch>"
    return message("developer", [input_text(text)])


def _latest_blocks(items: Sequence[EncodedItem]) -> dict[str, str]:
    """The newest block of each kind."""
    marks = [kind.encode() for kind in _KINDS]
    found: dict[str, str] = {}
    for item in reversed(items):
        # Decoding everything would take as long as reading the session did.
        if not any(mark in item for mark in marks):
            continue
        data: dict[str, Any] = json.loads(item)
        content: Any = data.get("content")
        if data.get("role") not in {"developer", "user"} or not isinstance(content, list):
            continue
        for part in cast("list[dict[str, Any]]", content):
            text = part.get("text")
            if isinstance(text, str) and (kind := _kind(text)):
                found.setdefault(kind, text.replace(_REPLACES, "", 1))
        if len(found) == len(_KINDS):
            break
    return found


def _kind(text: str) -> str | None:
    return next((kind for kind in _KINDS if text.startswith(kind)), None)


def _worded(text: str, kind: str, before: dict[str, str]) -> str:
    if kind != _AGENTS or _AGENTS not in before or text == _NO_AGENTS:
        return text
    return text.replace(_OPENING, _OPENING + _REPLACES, 1)
