"""The items of a response: their order in the history, and how they are shown."""

from collections.abc import Callable, Sequence

from codex_py.protocol.events import (
    AgentMessage,
    ItemCompleted,
    ItemStarted,
    ReasoningSummary,
    WebSearch,
)
from codex_py.protocol.items import Message, Reasoning, ResponseItem, WebSearchCall


class ItemOrder:
    """Orders the items of a response by their index in it.

    An item is released once no earlier item is open. Reasoning is held until the next item is released:
    providers refuse reasoning that nothing follows, as after a broken or interrupted stream.
    """

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._done: dict[int, ResponseItem] = {}
        self._held_reasoning: list[ResponseItem] = []
        self.places: dict[int, int] = {}
        """By index in the response: the position among the released items."""

    def announce(self, index: int) -> None:
        self._open.add(index)

    def drop(self, index: int) -> None:
        """Leave out an item, and the reasoning before it."""
        self._open.discard(index)
        self._held_reasoning.clear()

    def take(self, index: int, item: ResponseItem) -> list[ResponseItem]:
        """Add a completed item. Returns the items that it releases."""
        self._open.discard(index)
        self._done[index] = item
        first_open = min(self._open, default=None)
        return self._release(
            [i for i in sorted(self._done) if first_open is None or i < first_open]
        )

    def rest(self, *, whole: bool) -> list[ResponseItem]:
        """Release the rest at the end. `whole`: the response is complete; else trailing reasoning is dropped."""
        released = self._release(sorted(self._done))
        return released + self._held_reasoning if whole else released

    def _release(self, indexes: list[int]) -> list[ResponseItem]:
        released: list[ResponseItem] = []
        for index in indexes:
            item = self._done.pop(index)
            self.places[index] = len(self.places)
            self._held_reasoning.append(item)
            if item.type != "reasoning":
                released += self._held_reasoning
                self._held_reasoning = []
        return released


def item_events(
    item: ResponseItem, next_id: Callable[[], str]
) -> Sequence[ItemStarted | ItemCompleted]:
    """The events of one completed item; none for reasoning without a summary, and for calls: their tools show them."""
    match item:
        case Message(role="assistant"):
            # A refusal is an answer too: a user who sees nothing cannot act on it.
            text = item.text or item.refusal
            return [ItemCompleted(AgentMessage(id=next_id(), text=text))] if text else []
        case Reasoning():
            text = "\n".join(part.text for part in item.summary)
            return [ItemCompleted(ReasoningSummary(id=next_id(), text=text))] if text else []
        case WebSearchCall():
            action = item.action or {}
            query = str(action.get("query") or action.get("url") or "")
            search = WebSearch(id=next_id(), query=query, action=item.action)
            return [ItemStarted(search), ItemCompleted(search)]
        case _:
            return []
