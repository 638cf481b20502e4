"""Reads events whose data lacks the event's type, as some gateways and guides have them.

The API repeats the name of the server-sent event as the `type` in its data, and puts an item, a
part, a response or an error into a separate field. Others send the item itself as the data, so that
`type` is the item's type.
"""

from codex_py.protocol.json_fields import JsonObject

_FIELDS = {
    "response.output_item.added": "item",
    "response.output_item.done": "item",
    "response.content_part.added": "part",
    "response.content_part.done": "part",
    "response.reasoning_summary_part.added": "part",
    "response.reasoning_summary_part.done": "part",
    "response.created": "response",
    "response.in_progress": "response",
    "response.completed": "response",
    "response.incomplete": "response",
    "response.failed": "response",
    "response.cancelled": "response",
    "error": "error",
}
"""The field of each event that has its item, part, response or error."""

_PLACE_FIELDS = (
    "output_index",
    "item_id",
    "content_index",
    "summary_index",
    "sequence_number",
)
"""The fields that place an event. Items, parts, responses and errors have none of them."""


def typed_event(data: JsonObject, name: str) -> JsonObject:
    """The event in `data`, with the type and the fields that it has in the API.

    Args:
        name: the name of the server-sent event. It counts if the `type` in the data is not an
            event's.
    """
    if _is_event_type(data.get("type")) or not _is_event_type(name):
        return data
    field = _FIELDS.get(name)
    if field is None or field in data:
        return {**data, "type": name}
    place = {key: value for key, value in data.items() if key in _PLACE_FIELDS}
    content = {key: value for key, value in data.items() if key not in _PLACE_FIELDS}
    return {**place, "type": name, field: content}


def _is_event_type(kind: object) -> bool:
    if not isinstance(kind, str):
        return False
    return kind == "error" or kind.startswith("response.")
