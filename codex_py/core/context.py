"""Makes the context of a thread: permissions, environment and instructions.

A block that has changed is sent again as a whole, as in Codex, so that only the last block of each
kind counts. LIGHT.
"""

import json
from collections.abc import Sequence
from typing import Final

from codex_py.instructions import instruction_text
from codex_py.protocol.messages import EncodedItem, decode_json, input_text, message
from codex_py.protocol.prompts import (
    AGENTS_MD,
    CONTEXT_BLOCKS,
    context_texts,
    message_texts,
)

_OPENING: Final = "<INSTRUCTIONS>\n"
_REPLACES: Final = "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
_NO_AGENTS: Final = (
    f"{AGENTS_MD}\n\n{_OPENING}The previously provided AGENTS.md instructions no longer apply.\n"
    "</INSTRUCTIONS>"
)


def initial_items(
    developer: Sequence[str | None], user: Sequence[str | None]
) -> list[EncodedItem]:
    """The items between the base prompt and the first prompt: a message for each role.

    Parts that are None or blank are left out. So is a message without parts.
    """
    items: list[EncodedItem] = []
    for role, texts in (("developer", developer), ("user", user)):
        parts = [input_text(text) for text in texts if text and text.strip()]
        if parts:
            items.append(message(role, parts))
    return items


def context_update(
    history: Sequence[EncodedItem], current: Sequence[EncodedItem]
) -> list[EncodedItem]:
    """The messages that tell the model about changed context.

    Args:
        history: the history of the thread.
        current: the first items of a new thread, see `initial_items`. Parts of other kinds, such as the
            user's own instructions, are not updated.
    """
    before = _latest_blocks(history)
    texts = _texts_by_role(current)
    all_texts = [*texts["developer"], *texts["user"]]
    has_agents = any(text.startswith(AGENTS_MD) for text in all_texts)
    if AGENTS_MD in before and not has_agents:
        texts["user"].insert(0, _NO_AGENTS)
    update: list[EncodedItem] = []
    for role in ("developer", "user"):
        changed: list[str] = []
        for text in texts[role]:
            kind = _kind(text)
            if kind is not None and text != before.get(kind):
                changed.append(_worded(text, kind, before))
        if changed:
            update.append(message(role, [input_text(text) for text in changed]))
    return update


def _texts_by_role(items: Sequence[EncodedItem]) -> dict[str, list[str]]:
    """The texts of all parts of developer and user messages."""
    texts: dict[str, list[str]] = {"developer": [], "user": []}
    for item in map(json.loads, items):
        parts = item["content"]
        texts[item["role"]] += [part["text"] for part in parts]
    return texts


def is_context_message(item: EncodedItem) -> bool:
    """True for a message of `initial_items` or `context_update`; a later one replaces it."""
    data = decode_json(item)
    if data.get("role") not in {"developer", "user"}:
        return False
    return any(map(_kind, message_texts(data.get("content"))))


def model_switch() -> EncodedItem:
    """The message that tells a model that another one wrote the earlier turns."""
    text = f"<model_switch>\n{instruction_text('model_switch.md')}\n</model_switch>"
    return message("developer", [input_text(text)])


def _latest_blocks(items: Sequence[EncodedItem]) -> dict[str, str]:
    """The last block of each kind, as it would stand in a new thread."""
    latest: dict[str, str] = {}
    for kind in CONTEXT_BLOCKS:
        text = next(context_texts(kind, items), None)
        if text:
            latest[kind] = text.replace(_REPLACES, "", 1)
    return latest


def _kind(text: str) -> str | None:
    """The opening of a block of context; None for any other text."""
    return next((kind for kind in CONTEXT_BLOCKS if text.startswith(kind)), None)


def _worded(
    text: str,
    kind: str,
    before: dict[str, str],
) -> str:
    if kind != AGENTS_MD or AGENTS_MD not in before or text == _NO_AGENTS:
        return text
    return text.replace(_OPENING, _OPENING + _REPLACES, 1)
