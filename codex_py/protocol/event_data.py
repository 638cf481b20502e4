"""Events as the JSON objects that `exec --json` prints."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, get_args

from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.events import AgentEvent, Event, FilesPatched, UsageReported

_EVENTS: Final[tuple[type[Any], ...]] = get_args(Event)


def event_data(event: Event) -> dict[str, Any] | None:
    """The JSON object that `exec --json` prints for an event; None for a live-only one."""
    item = getattr(event, "item", None)
    if event.type is None or getattr(item, "live_only", False):
        return None
    return plain_data(event)


def event_json(event: Event) -> dict[str, Any]:
    """The JSON object of any event, including events that `exec --json` does not print.

    `type` is its name in `exec --json`, or else the name of its class: `message_delta`. The event
    of a subagent has the `thread_id` of the subagent beside its own fields.

    >>> from codex_py import MessageDelta, event_json
    >>> event_json(MessageDelta("Hel"))
    {'type': 'message_delta', 'delta': 'Hel'}

    Raises a `TypeError` for a value that is not an event.
    """
    if not isinstance(event, _EVENTS):
        kind = type(event).__name__
        raise TypeError(f"`event_json` takes an event, not a value of the type {kind}")
    match event:
        case AgentEvent(thread_id=thread_id, event=inner):
            return {**event_json(inner), "thread_id": thread_id}
        case UsageReported(total=total):
            # The same object as in `exec --json` with `--usage-events`.
            return {**plain_data(event), "type": "usage", "usage": plain_data(total)}
        case FilesPatched(files=files, entry=entry):
            return {
                "type": "files_patched",
                "files": [
                    {"path": str(file.path), "kind": file.kind} for file in files
                ],
                "entry": entry,
            }
        case _:
            known = event_data(event)
            if known:
                return known
            words = re.findall(r"[A-Z][^A-Z]*", type(event).__name__)
            name = "_".join(words).lower()
            return {"type": name, **plain_data(event, is_whole=True)}


def item_data(item: ThreadItem) -> dict[str, Any]:
    """The JSON object of an item, including the fields that `exec --json` leaves out."""
    return plain_data(item, is_whole=True)


def plain_data(value: Any, *, is_whole: bool = False) -> Any:
    """The JSON value of an event, of an item, or of a part of either.

    The metadata `json` of a field says how it is written: `False` leaves it out unless `is_whole`,
    `"unless none"` leaves out None, and `"inline"` puts the members of a mapping in its place.
    """
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return _fields_data(value, fields, is_whole=is_whole)
    if isinstance(value, list | tuple):
        parts = cast("Sequence[Any]", value)
        return [plain_data(part, is_whole=is_whole) for part in parts]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: plain_data(member, is_whole=is_whole)
            for name, member in members.items()
        }
    return value


def _fields_data(
    value: Any, fields: Mapping[str, Any], *, is_whole: bool
) -> dict[str, Any]:
    """The JSON object of a dataclass, which begins with `id` and `type` if it has them."""
    data: dict[str, Any] = {}
    if "id" in fields:
        data["id"] = value.id
    tag = getattr(value, "type", None)
    if tag is not None:
        data["type"] = tag
    for name, field in fields.items():
        if name in data or name in {"type", "live_only"}:
            continue
        form = field.metadata.get("json", True)
        if not form and not is_whole:
            continue
        part = getattr(value, name)
        if form == "inline":
            data.update(plain_data(part, is_whole=is_whole))
        elif part is not None or form != "unless none":
            data[name] = plain_data(part, is_whole=is_whole)
    return data
