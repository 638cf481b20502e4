"""The context of a thread: permissions, environment and instructions, which are sent again when
they change.

A changed block is sent again as a whole, as in Codex, so that only the last block of each kind
counts. LIGHT.
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
    return [
        message(role, parts)
        for role, texts in (("developer", developer), ("user", user))
        if (parts := [input_text(text) for text in texts if text and text.strip()])
    ]


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
    texts = [
        (item["role"], part["text"])
        for item in map(json.loads, current)
        for part in item["content"]
    ]
    if AGENTS_MD in before and not any(text.startswith(AGENTS_MD) for _, text in texts):
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


def is_context_message(item: EncodedItem) -> bool:
    """True for a message of `initial_items` or `context_update`; a later one replaces it."""
    data = decode_json(item)
    return data.get("role") in {"developer", "user"} and any(
        map(_kind, message_texts(data.get("content")))
    )


def model_switch() -> EncodedItem:
    """The message that tells a model that another one wrote the earlier turns."""
    text = f"<model_switch>\n{instruction_text('model_switch.md')}\n</model_switch>"
    return message("developer", [input_text(text)])


def _latest_blocks(items: Sequence[EncodedItem]) -> dict[str, str]:
    latest = {kind: next(context_texts(kind, items), None) for kind in CONTEXT_BLOCKS}
    return {
        kind: text.replace(_REPLACES, "", 1) for kind, text in latest.items() if text
    }


def _kind(text: str) -> str | None:
    return next((kind for kind in CONTEXT_BLOCKS if text.startswith(kind)), None)


def _worded(text: str, kind: str, before: dict[str, str]) -> str:
    if kind != AGENTS_MD or AGENTS_MD not in before or text == _NO_AGENTS:
        return text
    return text.replace(_OPENING, _OPENING + _REPLACES, 1)
