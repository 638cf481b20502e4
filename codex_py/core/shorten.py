"""Shortens a history without a model: first cuts old outputs, then drops old answers, then cuts
prompts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, objects
from codex_py.protocol.messages import (
    EncodedItem,
    decode_json,
    encode_json,
    estimated_tokens,
    input_text,
)
from codex_py.protocol.prompts import is_models, is_summary, prompt_of, user_prompt

Size = Callable[[EncodedItem], int]

_STUB_BYTES: Final = 400
"""The least that stays of a text that is cut: its beginning and its end."""
_MARK_BYTES: Final = 40
"""Room for the line that says how much was cut."""
_IMAGE: Final = input_text("…image cut…")
_PROMPT_PART: Final = 8
"""If there is too little room, each old prompt may keep an eighth of it, and all of them together a
half."""


def weight(item: EncodedItem) -> int:
    """The size of an item in a context window, in bytes of text. All images count the same."""
    return 4 * estimated_tokens([item])


@frozen
class Shortened:
    items: Sequence[EncodedItem]
    outputs: int
    """How many outputs were cut."""
    turns: int
    """How many turns lost answers and calls."""
    prompts: int
    """How many prompts were cut or left out."""


def shortened(
    items: Sequence[EncodedItem], room: int, size: Size = weight
) -> Shortened:
    """Cut items until their size is at most `room`, or nothing more can go, in this order:

    1. the bodies of outputs, oldest first,
    2. old prompts and summaries, as far as they take more than half of the room,
    3. responses with their outputs and the notes between them, oldest first,
    4. the other prompts, the last one only as far as it does not fit alone.

    A response stays or goes as a whole, so that no call loses its output and no reasoning the item
    after it. The beginning and the end of the last prompt, and of a summary after it, always stay.

    Args:
        items: the history after the context. Prompts and summaries count as the user's.
    """
    entries = _entries(items)
    outputs = [entry for entry in entries if entry.is_output]
    prompts = [entry for entry in entries if entry.response is None]
    in_responses = [entry for entry in entries if entry.response is not None]
    last = _index_of_last_prompt(prompts)
    old = prompts[:last]
    work = _Work(size, sum(map(size, items)) - room)
    work.cut(outputs, work.excess, _STUB_BYTES)
    least = max(_STUB_BYTES, room // _PROMPT_PART)
    work.cut(old, work.too_much(old, room // 2), least)
    work.drop(old, work.too_much(old, room // 2))
    work.drop(in_responses, work.excess)
    work.cut(old, work.excess, _STUB_BYTES)
    work.drop(old, work.excess)
    work.cut(prompts[last:], work.excess, _STUB_BYTES)
    cut_outputs = [entry for entry in outputs if entry.item and entry.is_changed]
    turns_with_gaps = {entry.turn for entry in in_responses if not entry.item}
    changed_prompts = [entry for entry in prompts if entry.is_changed]
    return Shortened(
        [entry.item for entry in entries if entry.item],
        outputs=len(cut_outputs),
        turns=len(turns_with_gaps),
        prompts=len(changed_prompts),
    )


class _Entry:
    """An item while the history is shortened."""

    __slots__ = ("is_changed", "is_output", "item", "response", "turn")

    def __init__(
        self,
        item: EncodedItem,
        turn: int,
        response: int | None,
        *,
        is_output: bool,
    ) -> None:
        self.item = item
        """The item; empty once it is left out."""
        self.turn = turn
        self.response = response
        """The number of the response; None for a prompt, which stays when the responses around it
        go."""
        self.is_output = is_output
        self.is_changed = False


def _index_of_last_prompt(prompts: Sequence[_Entry]) -> int:
    """The index of the last prompt by the user; a summary of the work on it may follow."""
    for index in reversed(range(len(prompts))):
        if user_prompt(prompts[index].item):
            return index
    return 0


class _Work:
    """Cuts and drops entries, and counts how much is still to go."""

    def __init__(self, size: Size, excess: int) -> None:
        self.size = size
        self.excess = excess
        """The size of all entries beyond the room."""

    def too_much(
        self,
        entries: Iterable[_Entry],
        room: int,
    ) -> int:
        """The size that these entries must lose to fit into `room`, at most `excess`."""
        size = sum(self.size(entry.item) for entry in entries if entry.item)
        return min(self.excess, size - room)

    def cut(
        self,
        entries: Iterable[_Entry],
        excess: int,
        min_bytes: int,
    ) -> None:
        """Cut texts, oldest first, by `excess` in all. `min_bytes` of each text stay."""
        for entry in entries:
            if excess <= 0:
                break
            if entry.item:
                shorter = _cut(entry.item, excess, min_bytes, self.size)
                excess -= self._replace(entry, shorter)

    def drop(
        self,
        entries: Iterable[_Entry],
        excess: int,
    ) -> None:
        """Leave out entries, oldest first, until `excess` is gone; a response goes as a whole."""
        last: int | None = None
        for entry in entries:
            is_in_last = last is not None and entry.response == last
            if excess <= 0 and not is_in_last:
                break
            last = entry.response
            if entry.item:
                excess -= self._replace(entry, EncodedItem(b""))

    def _replace(self, entry: _Entry, item: EncodedItem) -> int:
        """Replace an item, or leave it out if `item` is empty. Returns the size saved."""
        saved = self.size(entry.item)
        if item:
            saved -= self.size(item)
        if item != entry.item:
            entry.is_changed = True
        entry.item = item
        self.excess -= saved
        return saved


def _entries(items: Sequence[EncodedItem]) -> list[_Entry]:
    """The items with the numbers of their turns and responses."""
    entries: list[_Entry] = []
    turn = 0
    response = 0
    was_model = False
    for item in items:
        data: Any = decode_json(item)
        kind = str(data.get("type"))
        is_prompt = (
            prompt_of(data) is not None
            or is_summary(item)
            or kind.startswith("compaction")
        )
        is_model = not is_prompt and is_models(item)
        # A response has its items side by side: outputs and notes follow.
        if is_prompt or (is_model and not was_model):
            response += 1
        if is_prompt:
            turn += 1
        number = None if is_prompt else response
        is_output = kind.endswith("_output")
        entries.append(_Entry(item, turn, number, is_output=is_output))
        was_model = is_model
    return entries


def _cut(
    item: EncodedItem,
    excess: int,
    min_bytes: int,
    size: Size,
) -> EncodedItem:
    """Cut the texts of an item, then leave out its images, until it is smaller by `excess`.

    Returns the smallest item that was reached if that fails.
    """
    data: Any = decode_json(item)
    name = "output" if "output" in data else "content"
    body: object = data.get(name)
    if isinstance(body, str):
        parts = [input_text(body)]
    else:
        parts = objects(body)
    best = item
    target = size(item) - excess
    for n in _texts_first(parts):
        left = size(best) - target
        if left <= 0:
            break
        match parts[n]:
            case {"text": str(text)}:
                max_bytes = len(text.encode()) - left
                parts[n]["text"] = _cut_text(text, max(min_bytes, max_bytes))
            case {"type": "input_image"} if name == "output":
                parts[n] = _IMAGE
            case {"type": "input_image"}:
                # In a prompt, the texts around the image name it.
                parts[n] = {}
            case _:
                pass
        if isinstance(body, str):
            cut = parts[0]["text"]
        else:
            cut = list(filter(None, parts)) or [_IMAGE]
        best = EncodedItem(encode_json({**data, name: cut}))
    return min(item, best, key=size)


def _texts_first(parts: Sequence[JsonObject]) -> list[int]:
    """The indexes of the parts in order, but those of images last."""
    texts: list[int] = []
    images: list[int] = []
    for index, part in enumerate(parts):
        if part.get("type") == "input_image":
            images.append(index)
        else:
            texts.append(index)
    return texts + images


def _cut_text(text: str, max_bytes: int) -> str:
    """Cut the middle out of a text with more than `max_bytes`."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    half = (max_bytes - _MARK_BYTES) // 2
    start = data[:half].decode(errors="ignore")
    end = data[-half:].decode(errors="ignore")
    cut = len(text) - len(start) - len(end)
    return f"{start}\n…{cut} characters cut…\n{end}"
