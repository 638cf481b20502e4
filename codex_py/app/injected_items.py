"""Checks items that a client adds to the history of a thread, as the Responses API has them.

An item that passes can be sent to any provider, and read from the session file again.
"""

from collections.abc import Sequence
from typing import Any, Final

from codex_py.errors import CodexError, MalformedItem
from codex_py.protocol.items import parse_item
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.messages import EncodedItem
from codex_py.rollout.entries import RolloutEntry, paired

MAX_ITEMS: Final = 1000
MAX_BYTES: Final = 16 << 20
"""The limit for all items together. A provider would refuse a larger request."""
_ROLES: Final = {"user", "assistant", "developer", "system"}
_CALLS: Final = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS: Final = {"function_call_output", "custom_tool_call_output"}
_TYPES: Final = {"message", "reasoning", "web_search_call", *_CALLS, *_OUTPUTS}


def encoded_items(values: Sequence[Any]) -> list[EncodedItem]:
    """Encode the items of a client.

    Raises:
        CodexError: an item is malformed or of an unknown type, a call has no output behind it, an
            output has no call before it, or there are too many items.
    """
    if not values:
        raise _refused("items must not be empty")
    if len(values) > MAX_ITEMS:
        raise _refused(f"there are more than {MAX_ITEMS} items")
    entries = [_entry(number, value) for number, value in enumerate(values)]
    encoded = [entry.encoded for entry in entries]
    if sum(map(len, encoded)) > MAX_BYTES:
        raise _refused(f"the items have more than {MAX_BYTES >> 20} MB")
    _check_calls(entries)
    return encoded


def _entry(number: int, value: Any) -> RolloutEntry:
    """Read the item with this number, from 0."""
    item = as_object(value)
    kind = item.get("type", "message")
    if not isinstance(kind, str) or kind not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise _bad(number, f"the type {kind!r} is not one of {known}")
    try:
        parse_item(item)
    except MalformedItem as error:
        _, _, reason = str(error).partition("malformed item: ")
        raise _bad(number, reason) from None
    if kind == "reasoning" and not isinstance(item.get("summary"), list):
        raise _bad(number, "field 'summary' is not a list")
    if kind == "message" and "content" not in item:
        raise _bad(number, "field 'content' is missing")
    if kind == "message" and item["role"] not in _ROLES:
        raise _bad(number, f"the role {item['role']!r} is unknown")
    entry = RolloutEntry.of({"type": kind, **item})
    if entry.is_damaged:
        raise _bad(number, "a call or an output has no `call_id`")
    return entry


def _check_calls(entries: Sequence[RolloutEntry]) -> None:
    """Check that outputs follow their calls, and that nothing stands between them."""
    waiting: set[str | None] = set()
    for number, entry in enumerate(entries):
        if entry.type in _CALLS:
            waiting.add(entry.call_id)
        elif entry.type in _OUTPUTS:
            if entry.call_id not in waiting:
                raise _bad(number, "there is no call before this output")
            waiting.remove(entry.call_id)
        elif waiting and entry.type != "reasoning":
            raise _bad(number, "a call before this item has no output yet")
    # A reader of the session file adds outputs that are missing, and drops what has no call.
    if waiting or paired(entries) != [entry.encoded for entry in entries]:
        raise _refused("a call has no output: add it behind the call")


def _bad(number: int, reason: str) -> CodexError:
    return _refused(f"items[{number}] is not a valid response item: {reason}")


def _refused(text: str) -> CodexError:
    return CodexError(text, code="items")
