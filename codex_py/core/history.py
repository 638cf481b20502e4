"""The items of a thread in the order in which the model reads them, and the prompts among them."""

from collections.abc import Iterable, Sequence
from typing import Any

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import PastPrompt, UserPrompt, is_summary, prompt_of, user_prompt

_OUTPUT_TYPES = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
}


class History:
    """An append-only list of items in which every call gets exactly one output.

    Calls and outputs are paired by place as well as by `call_id`, because a model may use an id
    twice: an output answers the earliest open call of its id. Between turns no call is open.
    """

    def __init__(self, items: Iterable[EncodedItem] = ()) -> None:
        """Begin with items in which every call has its output."""
        self._items = list(items)
        self._open: list[tuple[str, str]] = []

    @property
    def items(self) -> Sequence[EncodedItem]:
        """Everything, oldest first. A live view, not a copy: it grows as items are added."""
        return self._items

    @property
    def open_calls(self) -> Sequence[tuple[str, str]]:
        """`(call_id, item type)` of the calls without an output, in the order of the calls."""
        return self._open

    def add(self, encoded: EncodedItem, item: ResponseItem | None = None) -> None:
        """Append an item, which must be given decoded too if it is a call or an output.

        Raises:
            ValueError: an output for which no call is open. Nothing was appended.
        """
        if item is not None:
            self._pair(item)
        self._items.append(encoded)

    def replace(self, items: Iterable[EncodedItem]) -> None:
        """Replace all items (compaction, undo). Views taken before do not change.

        Raises:
            ValueError: a call is open; its output would have no call.
        """
        if self._open:
            raise ValueError(f"calls are open: {self._open!r}")
        self._items = list(items)

    def _pair(self, item: ResponseItem) -> None:
        # The oldest form of a local shell call has no `call_id` and its output has its `id`.
        call_id = str(getattr(item, "call_id", None) or item.id)
        if item.type in _OUTPUT_TYPES:
            self._open.append((call_id, item.type))
        elif item.type in _OUTPUT_TYPES.values():
            for index, (open_id, kind) in enumerate(self._open):
                if open_id == call_id and _OUTPUT_TYPES[kind] == item.type:
                    del self._open[index]
                    return
            raise ValueError(f"{item.type} answers no open call: {call_id!r}")


def past_prompts(items: Sequence[EncodedItem]) -> list[PastPrompt]:
    """The prompts that a rollback can drop, oldest first: those since the last compaction."""
    return [PastPrompt(prompt, turns) for _, prompt, turns in reversed(_from_the_end(items))]


def without_turns(items: Sequence[EncodedItem], turns: int) -> list[EncodedItem]:
    """The history before the last `turns` prompts. Raises a `ValueError` if there are fewer prompts."""
    places = _from_the_end(items)
    if not 1 <= turns <= len(places):
        raise ValueError(f"{len(places)} turns can be taken back, not {turns}")
    return list(items[: places[turns - 1][0]])


def is_cut_off(items: Sequence[EncodedItem]) -> bool:
    """True if the last turn did not complete: no answer follows the last prompt or call."""
    for item in reversed(items):
        data: Any = decode_json(item)
        match data:
            case {"role": "assistant"}:
                return False
            case {"role": "user"} if is_summary(item):
                return False
            case {"role": "user"} if prompt_of(data) is not None:
                return True
            case {"type": str(kind)} if kind.endswith(("_call", "_call_output")):
                return True
            case _:
                pass
    return False


def _from_the_end(items: Sequence[EncodedItem]) -> list[tuple[int, UserPrompt, int]]:
    """`(place, prompt, turns)`, the last first."""
    found: list[tuple[int, UserPrompt, int]] = []
    for index in range(len(items) - 1, -1, -1):
        if is_summary(items[index]):
            break
        if (prompt := user_prompt(items[index])) is not None:
            found.append((index, prompt, len(found) + 1))
    return found
