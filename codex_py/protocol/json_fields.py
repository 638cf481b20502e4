"""Reads JSON of other programs without trusting its types. LIGHT."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, cast

from codex_py.protocol.messages import decode_json, replace_surrogates

JsonObject: TypeAlias = dict[str, Any]

_MAX_QUOTED_CHARACTERS = 80
_MAX_INTEGER = 2**53
"""The limit beyond which few programs read JSON integers exactly, and arithmetic with prices
fails."""


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """A string field; empty if it is missing or not a string."""
    value = fields.get(key)
    if isinstance(value, str):
        return value
    return ""


def integer_field(fields: JsonObject, key: str) -> int | None:
    """An index or a count; None for any other value."""
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if 0 <= value < _MAX_INTEGER:
        return value
    return None


def lenient_integer(value: object) -> int | None:
    """A count, which may be written as a string; None for any other value."""
    if isinstance(value, str):
        is_number = value.isascii() and value.isdecimal()
        if is_number and len(value) < 16:
            return int(value)
        return None
    return integer_field({"value": value}, "value")


def object_field(fields: Mapping[str, Any], key: str) -> JsonObject:
    """An object field; empty if it is missing or not an object."""
    return as_object(fields.get(key))


def as_object(value: object) -> JsonObject:
    """The value if it is an object; else an empty object."""
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return {}


def json_object(text: str) -> JsonObject:
    """Parse a JSON object; empty if the text is not one."""
    try:
        return as_object(decode_json(text))
    except (ValueError, RecursionError):
        return {}


def strict_json_object(text: str) -> JsonObject | None:
    """Parse a JSON object that every parser reads in the same way; None for any other text.

    Python's parser accepts `NaN` and `Infinity`, which are not JSON, and reads `1e999` as infinity.
    """
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return None


class RepeatedKey(ValueError):
    """Raised for an object that has a key more than once. The message is a clause about the key."""

    def __init__(self, key: str) -> None:
        if len(key) > _MAX_QUOTED_CHARACTERS:
            key = f"{key[:_MAX_QUOTED_CHARACTERS]}…"
        super().__init__(f"the key {key!r} is repeated in one object")


def unique_fields(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    """Make an object whose keys differ, as `object_pairs_hook` of `json.loads`.

    By default, Python's parser keeps the last of several values without a word. Use this for a file
    that a person writes.

    Raises:
        RepeatedKey: two fields have the same key.
    """
    fields: JsonObject = {}
    for key, value in pairs:
        if key in fields:
            raise RepeatedKey(key)
        fields[key] = value
    return fields


def arguments_object(text: str) -> JsonObject:
    """The arguments of a call as an object; text that is none is put into its field `_raw`."""
    if not text.strip():
        return {}
    value = strict_json_object(text)
    if value is None:
        return {"_raw": text}
    return value


def _refused(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def objects(value: object) -> list[JsonObject]:
    """The objects in a JSON list; an empty list if the value is not a list."""
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def well_formed(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates."""
    # Nearly every text is returned as it is, without a copy.
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return replace_surrogates(text)
    return text


def json_or(text: str | bytes, otherwise: Any) -> Any:
    """The value of a JSON text; `otherwise` for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def is_json(text: str) -> bool:
    # No JSON text has the value `...`.
    return json_or(text, ...) is not ...


def parse_event(data: str, name: str = "") -> JsonObject | None:
    """Parse the data of a server-sent event.

    Returns None for `[DONE]`, and for other data that is not a JSON object.

    Lone surrogates are replaced, except in deltas: a pair can span two deltas.

    Args:
        name: the name of the event. `….delta` marks a delta, as the same `type` does.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    fields = cast("JsonObject", event)
    if "\\ud" not in data and "\\uD" not in data:
        return fields
    names = (name, text_field(fields, "type"))
    if any(each.endswith(".delta") for each in names):
        return fields
    return replace_surrogates(fields)
