"""Events as the JSON objects that `exec --json` prints."""

from collections.abc import Sequence
from typing import Any, cast

from codex_py.protocol.events import Event


def event_data(event: Event) -> dict[str, Any] | None:
    """The JSON object that `exec --json` prints for an event; None for a live-only one."""
    if event.type is None or getattr(getattr(event, "item", None), "live_only", False):
        return None
    return _plain(event)


def _plain(value: Any) -> Any:
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        if isinstance(value, list | tuple):
            return [_plain(part) for part in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return {k: _plain(v) for k, v in cast("dict[str, Any]", value).items()}
        return value
    data: dict[str, Any] = {}
    if "id" in fields:
        data["id"] = value.id
    if (tag := getattr(value, "type", None)) is not None:
        data["type"] = tag
    for name, spec in fields.items():
        shown = spec.metadata.get("json", True)
        if not shown or name in data or name == "type":
            continue
        part = getattr(value, name)
        if shown == "inline":
            data.update(_plain(part))
        elif part is not None or shown != "unless none":
            data[name] = _plain(part)
    return data
