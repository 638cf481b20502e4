"""Events as the JSON objects that `exec --json` prints."""

from collections.abc import Sequence
from typing import Any, cast

from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.events import Event


def event_data(event: Event) -> dict[str, Any] | None:
    """The JSON object that `exec --json` prints for an event; None for a live-only one."""
    if event.type is None or getattr(getattr(event, "item", None), "live_only", False):
        return None
    return plain_data(event)


def item_data(item: ThreadItem) -> dict[str, Any]:
    """The JSON object of an item as in an event, with the fields that `exec --json` leaves out too."""
    return plain_data(item, is_whole=True)


def plain_data(value: Any, *, is_whole: bool = False) -> Any:
    """JSON of an event, of an item, or of a part of them."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        if isinstance(value, list | tuple):
            return [plain_data(part, is_whole=is_whole) for part in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return {
                k: plain_data(v, is_whole=is_whole)
                for k, v in cast("dict[str, Any]", value).items()
            }
        return value
    data: dict[str, Any] = {}
    if "id" in fields:
        data["id"] = value.id
    if (tag := getattr(value, "type", None)) is not None:
        data["type"] = tag
    for name, spec in fields.items():
        shown = spec.metadata.get("json", True)
        if not (shown or is_whole) or name in data or name in {"type", "live_only"}:
            continue
        part = getattr(value, name)
        if shown == "inline":
            data.update(plain_data(part, is_whole=is_whole))
        elif part is not None or shown != "unless none":
            data[name] = plain_data(part, is_whole=is_whole)
    return data
