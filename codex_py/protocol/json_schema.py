"""Writes the JSON Schema of a type from the annotations by which `checked` reads its values."""

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
"""The schemas of Python's own types; any other plain type says its rule in words."""


def schema_of_class(cls: type[Any]) -> JsonObject:
    """The schema of the objects that a `@frozen` class is read from."""
    return SchemaWriter().of_fields(cls)


class SchemaWriter:
    """Writes the schemas of `@frozen` classes and of the types of their fields.

    A subclass may write other classes, or say more about plain types.
    """

    def of_type(self, kind: Kind) -> JsonObject:
        """The schema of the values of a type, or of a union."""
        options = self.members(kind)
        if len(options) > 1:
            return {"anyOf": [self.of_type(each) for each in options]}
        match form(kind):
            case "fields":
                return self.of_fields(kind)
            case "mapping":
                entry = self.of_type(get_args(kind)[1])
                return {"type": "object", "additionalProperties": entry or True}
            case "array":
                return {"type": "array", "items": self.of_type(get_args(kind)[0])}
            case "choice":
                return _choice_schema(get_args(kind))
            case "plain":
                return self.of_plain(kind)

    def members(self, kind: Kind) -> Sequence[Kind]:
        """The types of a union that values can have; any other type alone."""
        return members_of(kind)

    def of_fields(self, cls: type[Any]) -> JsonObject:
        """The schema of the objects that a class is read from."""
        known = shape(cls)
        defaults = {each.name: each.default for each in fields(cls)}
        properties: JsonObject = {}
        for field in known.fields:
            schema = self.of_type(field.kind)
            default = defaults[field.name]
            # Other defaults are made anew for each object.
            if isinstance(default, str | int | float):
                schema["default"] = default
            properties[field.names[0]] = schema
        schema: JsonObject = {"type": "object", "properties": properties}
        required = [each.names[0] for each in known.fields if each.is_required]
        if required:
            schema["required"] = required
        return schema | {"additionalProperties": False}

    def of_plain(self, kind: Kind) -> JsonObject:
        """The schema of a type without members and choices."""
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
