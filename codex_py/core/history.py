"""The items of a thread in the order in which the model reads them, and the calls without an output."""

from collections.abc import Iterable, Sequence

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import EncodedItem

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

    def add(self, item: EncodedItem | ResponseItem) -> EncodedItem:
        """Append an item. Returns its encoded form.

        Calls and outputs must be typed; an encoded item must be neither.

        Raises:
            ValueError: an output for which no call is open. Nothing was appended.
        """
        if isinstance(item, bytes):
            encoded = item
        else:
            self._pair(item)
            encoded = item.encoded()
        self._items.append(encoded)
        return encoded

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
