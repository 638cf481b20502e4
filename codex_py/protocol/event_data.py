"""Events as the JSON objects that `exec --json` prints."""

import re
from collections.abc import Sequence
from typing import Any, cast

from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.events import AgentEvent, Event, FilesPatched, UsageReported


def event_data(event: Event) -> dict[str, Any] | None:
    """The JSON object that `exec --json` prints for an event; None for a live-only one."""
    if event.type is None or getattr(getattr(event, "item", None), "live_only", False):
        return None
    return plain_data(event)


def event_json(event: Event) -> dict[str, Any]:
    """The JSON object of any event, including events that `exec --json` does not print.

    `type` is its name in `exec --json`, or else the name of its class: `message_delta`. The event
    of a subagent has the `thread_id` of the subagent beside its own fields.

    >>> from codex_py import MessageDelta, event_json
    >>> event_json(MessageDelta("Hel"))
    {'type': 'message_delta', 'delta': 'Hel'}
    """
    match event:
        case AgentEvent(thread_id=thread_id, event=inner):
            return {**event_json(inner), "thread_id": thread_id}
        case UsageReported(total=total):
            # The same object as in `exec --json` with `--usage-events`.
            return {**plain_data(event), "type": "usage", "usage": plain_data(total)}
        case FilesPatched(files=files, entry=entry):
            paths = [{"path": str(file.path), "kind": file.kind} for file in files]
            return {"type": "files_patched", "files": paths, "entry": entry}
        case _:
            known = event_data(event)
            if known:
                return known
            class_name = type(event).__name__
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()
            return {"type": name, **plain_data(event, is_whole=True)}


def item_data(item: ThreadItem) -> dict[str, Any]:
    """The JSON object of an item, including the fields that `exec --json` leaves out."""
    return plain_data(item, is_whole=True)


def plain_data(value: Any, *, is_whole: bool = False) -> Any:
    """The JSON value of an event, of an item, or of a part of either."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        if isinstance(value, list | tuple):
            return [
                plain_data(part, is_whole=is_whole)
                for part in cast("Sequence[Any]", value)
            ]
        if isinstance(value, dict):
            return {
                k: plain_data(v, is_whole=is_whole)
                for k, v in cast("dict[str, Any]", value).items()
            }
        return value
    data: dict[str, Any] = {}
    if "id" in fields:
        data["id"] = value.id
    tag = getattr(value, "type", None)
    if tag is not None:
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
