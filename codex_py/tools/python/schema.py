"""JSON Schema of plain types, as pydantic writes it. Pydantic must not be loaded before the first request."""

import types
from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import Parameter
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

_NAMES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}


class _NotPlain(Exception):
    pass


def plain_schema(
    parameters: Iterable[Parameter], about: Mapping[str, str]
) -> dict[str, Any] | None:
    """The schema of an object with these members; None if one of their types is not plain.

    Plain are str, int, float, bool, None, Any, lists, dictionaries with keys of str, literals, enumerations of plain
    values, and unions of these; `Annotated` with a text describes a parameter.

    Args:
        about: what the docstring says of each.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    try:
        for parameter in parameters:
            schema = _type_schema(parameter.annotation)
            if parameter.default is Parameter.empty:
                required.append(parameter.name)
            else:
                schema["default"] = _plain_value(parameter.default)
            if text := about.get(parameter.name):
                schema.setdefault("description", text)
            properties[parameter.name] = schema
    except (_NotPlain, TypeError):
        # A TypeError: metadata that cannot be hashed.
        return None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _type_schema(annotation: Any) -> dict[str, Any]:
    if annotation in {Any, Parameter.empty}:
        return {}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice([member.value for member in annotation])
    if (name := _NAMES.get(annotation)) is not None:
        return {"type": name}
    arguments = get_args(annotation)
    origin = cast("Any", get_origin(annotation) or annotation)
    if origin is Annotated and all(isinstance(text, str) for text in arguments[1:]):
        return {**_type_schema(arguments[0]), "description": arguments[1]}
    if origin is Literal:
        return _choice(list(arguments))
    if origin in {Union, types.UnionType}:
        return {"anyOf": [_type_schema(each) for each in arguments]}
    if origin is list:
        return {"type": "array", "items": _type_schema(arguments[0] if arguments else Any)}
    if origin is dict and arguments[:1] in {(), (str,)}:
        values = _type_schema(arguments[1]) if arguments else {}
        return {"type": "object", "additionalProperties": values or True}
    raise _NotPlain


def _choice(values: list[Any]) -> dict[str, Any]:
    kinds = {_NAMES.get(type(_plain_value(value))) for value in values}
    schema: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {**schema, "type": kinds.pop()} if len(kinds) == 1 else schema


def _plain_value(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if type(value) in _NAMES or (type(value) in {list, dict} and not value):
        return value
    raise _NotPlain
