"""Repairs the usual mistakes in the schemas of foreign tools. LIGHT.

Specification: https://json-schema.org/draft/2020-12. A valid schema keeps its meaning: the only
addition is an `items` that allows everything, for arrays without `items`, because most providers
require it.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from codex_py.protocol.json_fields import JsonObject

_MAPS: Final = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
)
"""The keywords whose value maps names to schemas."""
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
"""The keywords whose value is a list of schemas."""
_SINGLE: Final = (
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
"""The keywords whose value is one schema."""
_MAY_BE_NULL: Final = frozenset({"const", "default", "example"})
_TYPES: Final = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "float": "number",
    "double": "number",
    "list": "array",
    "tuple": "array",
    "dict": "object",
}
"""The names of types in programming languages."""
_MAX_DEPTH: Final = 50


def repaired_parameters(schema: Mapping[str, Any]) -> JsonObject:
    """The schema of a tool's arguments, which are always an object."""
    repaired = _repaired(dict(schema), 0)
    # Providers refuse a function whose schema lacks these; servers may leave them out.
    if repaired.get("type") != "object":
        repaired.pop("type", None)
    repaired = {"type": "object", **repaired}
    repaired.setdefault("properties", {})
    return repaired


def _repaired(schema: JsonObject, depth: int) -> JsonObject:
    """A repaired copy of a schema. Schemas deeper than `_MAX_DEPTH` are not repaired."""
    fields = {
        name: value
        for name, value in schema.items()
        if value is not None or name in _MAY_BE_NULL
    }
    _repair_type(fields)
    _repair_lists_of_names(fields)
    if depth == _MAX_DEPTH:
        return fields
    for name in _MAPS:
        if name in fields:
            fields[name] = _map(fields[name], depth)
    for name in _LISTS:
        if name in fields:
            fields[name] = _list(fields[name], depth)
            if not fields[name]:
                del fields[name]
    for name in _SINGLE:
        if name in fields:
            fields[name] = _single(fields[name], depth)
    has_items = "items" in fields or "prefixItems" in fields
    if not has_items and _is_array(fields.get("type")):
        fields["items"] = {}
    if "properties" in schema and schema["properties"] is None:
        fields["properties"] = {}
    return fields


def _repair_type(fields: JsonObject) -> None:
    """Write types under their names in JSON Schema, and leave out unknown ones."""
    wanted = fields.get("type")
    if isinstance(wanted, list):
        names = [_known_type(each) for each in cast("list[object]", wanted)]
        known: Any = [name for name in names if name is not None]
    else:
        known = _known_type(wanted)
    if known:
        fields["type"] = known
    else:
        fields.pop("type", None)


def _known_type(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    if name in _TYPES:
        return name
    name = name.lower()
    name = _OTHER_NAMES.get(name, name)
    if name in _TYPES:
        return name
    return None


def _repair_lists_of_names(fields: JsonObject) -> None:
    """Leave out what is no list of names in `required`, and an `enum` without values."""
    required = fields.get("required")
    if isinstance(required, list):
        names = cast("list[object]", required)
        if not all(isinstance(name, str) for name in names):
            fields["required"] = [name for name in names if isinstance(name, str)]
    else:
        # Drafts before the fourth had a boolean here.
        fields.pop("required", None)
    enum = fields.get("enum")
    if "enum" in fields and not (isinstance(enum, list) and enum):
        del fields["enum"]


def _map(value: object, depth: int) -> JsonObject:
    # PHP encodes an empty object as an empty list.
    if isinstance(value, dict):
        entries = cast("JsonObject", value)
    else:
        entries = JsonObject()
    return {name: _single(each, depth) for name, each in entries.items()}


def _list(value: object, depth: int) -> list[Any]:
    if isinstance(value, list):
        entries = cast("list[object]", value)
    else:
        entries = []
    return [_single(each, depth) for each in entries]


def _single(value: object, depth: int) -> Any:
    """A schema inside another one: an object or a boolean. Up to draft 2019-09, `items` may be a
    list."""
    match value:
        case bool():
            return value
        case dict():
            return _repaired(cast("JsonObject", value), depth + 1)
        case list() if value:
            return _list(cast("object", value), depth)
        case _:
            return {}


def _is_array(kind: object) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)
