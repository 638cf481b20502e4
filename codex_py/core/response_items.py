"""Makes the events that show the items of a response."""

from collections.abc import Callable, Sequence

from codex_py.protocol.event_items import AgentMessage, ReasoningSummary, WebSearch
from codex_py.protocol.events import ItemCompleted, ItemStarted
from codex_py.protocol.items import Message, Reasoning, ResponseItem, WebSearchCall


def item_events(
    item: ResponseItem, next_id: Callable[[], str]
) -> Sequence[ItemStarted | ItemCompleted]:
    """Return the events that show one completed item.

    An item without text has none. Nor has a call: its tool shows it.

    Args:
        next_id: returns a fresh id for the thread item.
    """
    match item:
        case Message(role="assistant"):
            # A refusal is an answer too: a user who sees nothing cannot act on it.
            text = item.text or item.refusal
            if text:
                return [ItemCompleted(AgentMessage(id=next_id(), text=text))]
            return []
        case Reasoning():
            text = "\n".join(part.text for part in item.summary)
            if text:
                return [ItemCompleted(ReasoningSummary(id=next_id(), text=text))]
            return []
        case WebSearchCall():
            action = item.action or {}
            query = action.get("query") or action.get("url") or ""
            search = WebSearch(
                id=next_id(),
                query=str(query),
                action=item.action,
            )
            return [ItemStarted(search), ItemCompleted(search)]
        case _:
            return []
