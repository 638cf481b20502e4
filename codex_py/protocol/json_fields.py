"""Reads JSON that others wrote, whatever its types are. LIGHT."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias, cast

from codex_py.protocol.messages import decode_json, replace_surrogates

JsonObject: TypeAlias = dict[str, Any]

_MAX_INTEGER = 2**53
"""Beyond it, JSON is exact in few programs, and arithmetic with prices fails."""


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """A string, or an empty one where there is none."""
    value = fields.get(key)
    if isinstance(value, str):
        return value
    return ""


def integer_field(fields: JsonObject, key: str) -> int | None:
    """An index or a count; None for a number that can be neither."""
    value = fields.get(key)
    is_count = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value < _MAX_INTEGER
    )
    if is_count:
        return value
    return None


def lenient_integer(value: object) -> int | None:
    """A count, also one that a program wrote as a string; None for anything else."""
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdecimal()
        and len(value) < 16
    ):
        return int(value)
    return integer_field({"value": value}, "value")


def object_field(fields: Mapping[str, Any], key: str) -> JsonObject:
    """An object, or an empty one where there is none."""
    value = fields.get(key)
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return {}


def as_object(value: object) -> JsonObject:
    """The value, or an empty object where it is none."""
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
    """The JSON object that a text is for every parser; None for any other text.

    Python's parser takes `NaN` and `Infinity`, which are no JSON, and makes an infinite number of `1e999`.
    """
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return None


def _refused(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def objects(value: object) -> list[JsonObject]:
    """The objects of a JSON list; none where it is no list."""
    if isinstance(value, list):
        return [
            cast("JsonObject", v)
            for v in cast("list[object]", value)
            if isinstance(v, dict)
        ]
    return []


def well_formed(text: str) -> str:
    """The text with lone surrogates as U+FFFD; nearly always the very same."""
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
    return json_or(text, ...) is not ...


def parse_event(data: str, name: str = "") -> JsonObject | None:
    """None for `[DONE]`, and for what cannot be understood.

    Lone surrogates are replaced, except in deltas: a pair can span two of them.

    Args:
        name: of the server-sent event; one of a delta counts as its `type` does.
    """
    event = json_or(data, None)
    if not isinstance(event, dict):
        return None
    fields = cast("JsonObject", event)
    if "\\ud" in data or "\\uD" in data:
        is_delta = text_field(fields, "type").endswith(".delta") or name.endswith(
            ".delta"
        )
        if is_delta:
            return fields
        return replace_surrogates(fields)
    return fields
