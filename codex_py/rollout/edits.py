"""What later lines of a session do to the items before them: compaction, and going back to a prompt."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from codex_py.protocol.messages import input_text, message
from codex_py.protocol.prompts import SUMMARY_OPENING
from codex_py.rollout.entries import Entry

_KEPT_PROMPTS_CHARACTERS = 80_000
"""Of the prompts that outlive a compaction: some 20,000 tokens, as Codex keeps."""


def compacted(entries: Sequence[Entry], payload: Mapping[str, Any]) -> list[Entry]:
    """The items after a line of type `compacted`."""
    replacement = payload.get("replacement_history")
    if isinstance(replacement, list):
        items = cast("list[Any]", replacement)
        return [Entry.of(cast("dict[str, Any]", i)) for i in items if isinstance(i, dict)]
    return _summarised(entries, str(payload.get("message", "")))


def without_last_turns(entries: Sequence[Entry], turns: Any) -> list[Entry]:
    """The items when the last turns are dropped, each from its prompt on."""
    starts = [index for index, entry in enumerate(entries) if entry.is_prompt]
    if not isinstance(turns, int) or turns <= 0 or not starts:
        return list(entries)
    return list(entries[: starts[-min(turns, len(starts))]])


def _summarised(entries: Sequence[Entry], summary: str) -> list[Entry]:
    """What older programs, which kept the summary alone, made of it.

    That is the first context, the latest prompts that fit, and the summary as a last message.
    """
    context: list[Entry] = []
    for entry in entries:
        if not entry.is_context:
            break
        context.append(entry)
    prompts: list[Entry] = []
    room = _KEPT_PROMPTS_CHARACTERS
    for entry in reversed(entries):
        text = "".join(entry.texts)
        if not entry.is_prompt or text.startswith(SUMMARY_OPENING):
            continue
        if len(text) > room:
            break
        room -= len(text)
        prompts.append(entry)
    item = message("user", [input_text(summary)])
    return [*context, *reversed(prompts), Entry(item, "message", None, "user", (summary,))]
