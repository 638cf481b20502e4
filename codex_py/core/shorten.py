"""Shortens a history without a model: first cuts old outputs, then drops old answers, then cuts
prompts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import objects
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
    work = _Work(_entries(items), size, sum(map(size, items)) - room)
    entries = work.entries
    prompts = [entry for entry in entries if entry.response is None]
    # A summary of the work on the last prompt may follow it.
    last = max(
        (n for n, each in enumerate(prompts) if user_prompt(each.item)), default=0
    )
    old = prompts[:last]
    outputs = [entry for entry in entries if entry.is_output]
    work.cut(outputs, work.excess, _STUB_BYTES)
    least = max(_STUB_BYTES, room // _PROMPT_PART)
    work.cut(old, work.too_much(old, room // 2), least)
    work.drop(old, work.too_much(old, room // 2))
    in_responses = [entry for entry in entries if entry.response is not None]
    work.drop(in_responses, work.excess)
    work.cut(old, work.excess, _STUB_BYTES)
    work.drop(old, work.excess)
    work.cut(prompts[last:], work.excess, _STUB_BYTES)
    return Shortened(
        [entry.item for entry in entries if entry.item],
        sum(entry.is_changed and bool(entry.item) for entry in outputs),
        len(
            {
                entry.turn
                for entry in entries
                if entry.response is not None and not entry.item
            }
        ),
        sum(entry.is_changed for entry in prompts),
    )


class _Entry:
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


class _Work:
    def __init__(
        self,
        entries: Sequence[_Entry],
        size: Size,
        excess: int,
    ) -> None:
        self.entries = entries
        self.size = size
        self.excess = excess
        """The size of all entries beyond the room."""

    def too_much(self, entries: Iterable[_Entry], room: int) -> int:
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
                excess -= self._replace(
                    entry, _cut(entry.item, excess, min_bytes, self.size)
                )

    def drop(self, entries: Iterable[_Entry], excess: int) -> None:
        """Leave out entries, oldest first, until `excess` is gone; a response goes as a whole."""
        last: int | None = None
        for entry in entries:
            if excess <= 0 and (last is None or entry.response != last):
                break
            last = entry.response
            if entry.item:
                excess -= self._replace(entry, EncodedItem(b""))

    def _replace(self, entry: _Entry, item: EncodedItem) -> int:
        """Replace an item. Returns how much smaller the new one is."""
        saved = self.size(entry.item) - (self.size(item) if item else 0)
        entry.is_changed = entry.is_changed or item != entry.item
        entry.item = item
        self.excess -= saved
        return saved


def _entries(items: Sequence[EncodedItem]) -> list[_Entry]:
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
        is_output = kind.endswith("_output")
        entries.append(
            _Entry(item, turn, None if is_prompt else response, is_output=is_output)
        )
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
    is_image = [part.get("type") == "input_image" for part in parts]
    for n in sorted(range(len(parts)), key=is_image.__getitem__):
        if size(best) <= target:
            break
        match parts[n]:
            case {"text": str(text)}:
                max_bytes = len(text.encode()) - size(best) + target
                parts[n]["text"] = _cut_text(text, max(min_bytes, max_bytes))
            case {"type": "input_image"}:
                # In a prompt, the texts around the image name it.
                parts[n] = _IMAGE if name == "output" else {}
            case _:
                pass
        if isinstance(body, str):
            cut = parts[0]["text"]
        else:
            cut = list(filter(None, parts)) or [_IMAGE]
        best = EncodedItem(encode_json({**data, name: cut}))
    return min(item, best, key=size)


def _cut_text(text: str, max_bytes: int) -> str:
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    half = (max_bytes - _MARK_BYTES) // 2
    start = data[:half].decode(errors="ignore")
    end = data[-half:].decode(errors="ignore")
    return f"{start}\n…{len(text) - len(start) - len(end)} characters cut…\n{end}"
