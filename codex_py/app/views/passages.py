"""The passages of an item as an export or an editor shows them: safe to show, and of bounded size."""

import json

from codex_py.app.views.item_words import ItemWords, Passage
from codex_py.streams.plain_text import command_output, plain

MAX_CHARS = 20_000
"""The limit for one output, one diff or one prompt of an agent."""
_WHOLE = {"user", "agent", "thought", "plan"}
"""The kinds of items that are shown whole."""


def safe_passages(words: ItemWords) -> list[Passage]:
    """Return the arguments of an item as JSON, then its body, without passages that are blank.

    Labels have become the first line of their text.
    """
    found = list(words.body)
    if words.arguments:
        text = json.dumps(words.arguments, ensure_ascii=False, indent=2)
        found.insert(0, Passage(text, "json"))
    shown: list[Passage] = []
    for passage in found:
        if not passage.text.strip():
            continue
        text = passage.text
        if passage.label:
            text = f"{passage.label}:\n\n{text}"
        if words.kind not in _WHOLE:
            text = _shortened(text)
        if passage.form == "output":
            text = command_output(text).strip("\n")
        shown.append(Passage(plain(text, tab=4), passage.form))
    return [passage for passage in shown if passage.text.strip()]


def left_out_remark(text: str) -> str:
    """Return the words for the characters of a text beyond the limit."""
    return f"[… {len(text) - MAX_CHARS:,} characters are left out …]"


def _shortened(text: str) -> str:
    """Return the text; if it is long, its first and last characters with a remark between them."""
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return f"{text[:half]}\n{left_out_remark(text)}\n{text[-half:]}"
