"""Writes the JSON Schema of a type from its annotations, by which `checked` reads its values."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, Final, get_args

from codex_py.protocol.annotations import (
    Kind,
    form,
    members_of,
    plain,
    shape,
)
from codex_py.protocol.json_fields import JsonObject

_TYPES: Final[Mapping[str, JsonObject]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "null": {"type": "null"},
}
"""The schemas of Python's own types. That of any other plain type describes its rule in words."""


def schema_of_class(cls: type[Any]) -> JsonObject:
    """Return the schema of the JSON objects from which a `@frozen` class is read."""
    return SchemaWriter().of_fields(cls)


class SchemaWriter:
    """Writes the schemas of `@frozen` classes and of the types of their fields.

    A subclass may override methods, to write other classes or to say more about plain types.
    """

    def of_type(self, kind: Kind) -> JsonObject:
        """Return the schema of the values of a type, which may be a union."""
        options = self.members(kind)
        if len(options) > 1:
            return {"anyOf": [self.of_type(each) for each in options]}
        match form(kind):
            case "fields":
                return self.of_fields(kind)
            case "mapping":
                _, entry_kind = get_args(kind)
                entry = self.of_type(entry_kind)
                return {"type": "object", "additionalProperties": entry or True}
            case "array":
                entry_kind, *_ = get_args(kind)
                return {"type": "array", "items": self.of_type(entry_kind)}
            case "choice":
                return _choice_schema(get_args(kind))
            case "plain":
                return self.of_plain(kind)

    def members(self, kind: Kind) -> Sequence[Kind]:
        """Return the types of a union that values can have; for any other type, itself alone."""
        return members_of(kind)

    def of_fields(self, cls: type[Any]) -> JsonObject:
        """Return the schema of the JSON objects from which a class is read."""
        known = shape(cls)
        defaults = {each.name: each.default for each in fields(cls)}
        properties: JsonObject = {}
        for field in known.fields:
            schema = self.of_type(field.kind)
            default = defaults[field.name]
            # Leave out defaults of other types, which are made anew for each object.
            if isinstance(default, str | int | float):
                schema["default"] = default
            properties[field.names[0]] = schema
        schema: JsonObject = {"type": "object", "properties": properties}
        required = [each.names[0] for each in known.fields if each.is_required]
        if required:
            schema["required"] = required
        return schema | {"additionalProperties": False}

    def of_plain(self, kind: Kind) -> JsonObject:
        """Return the schema of a type without members and choices."""
        described = plain(kind)
        if object in described.types:
            return {}
        schema = _TYPES.get(described.name)
        if schema is not None:
            return dict(schema)
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        types = [names[each] for each in described.types if each is not NoneType]
        return {"type": types[-1], "description": described.words}


def _choice_schema(values: Sequence[object]) -> JsonObject:
    schema: JsonObject = {"enum": list(values)}
    if all(isinstance(value, str) for value in values):
        schema["type"] = "string"
    return schema
