"""Reads JSON into `@frozen` classes, after the annotations of their fields. LIGHT.

It reads the items of the API and the arguments of tools. pydantic would do the same, but with 50 ms and 10 MB more for
every run of `exec` that calls a tool.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import islice
from types import UnionType
from typing import Any, Final, Literal, cast, get_args, get_origin

from codex_py.protocol.json_fields import JsonObject

REQUIRED: Final = "Field required"
"""The reason of a `WrongValue` if there is none."""
OR_DEFAULT: Final = object()
"""In `Annotated`: a value that does not fit is ignored."""
_EXPECTED: Final[Mapping[Any, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "list",
    tuple: "list",
    dict: "dictionary",
}


class Aliases(tuple[str, ...]):
    """In `Annotated`: other names of the field."""

    __slots__ = ()


class WrongValue(ValueError):
    """The text is for a model. `path`: names and indices that lead to the value; `reason`: for other texts."""

    def __init__(self, path: Sequence[str], reason: str, value: object = None) -> None:
        field = ".".join(path) or "arguments"
        # In pieces: it may be megabytes, or nested deeply.
        shown = "".join(islice(json.JSONEncoder(default=str).iterencode(value), 200))[:200]
        is_wrong = f"invalid value {shown} for `{field}`: {reason}"
        super().__init__(f"missing field `{field}`" if reason == REQUIRED else is_wrong)
        self.path = path
        self.reason = reason


def checked_fields(cls: type[Any], data: JsonObject, path: tuple[str, ...] = ()) -> JsonObject:
    """The fields of a class that are in a JSON object. Null for a field with a default counts as left out.

    Raises:
        WrongValue: a field is missing, or has another type.
    """
    values: JsonObject = {}
    for name, aliases, annotation, is_required, is_lenient in _fields(cls):
        given = next((key for key in (name, *aliases) if data.get(key) is not None), name)
        try:
            if data.get(given) is not None:
                values[name] = checked(annotation, data[given], (*path, given))
            elif is_required:
                raise WrongValue((*path, name), REQUIRED)
        except WrongValue:
            if not is_lenient:
                raise
    return values


def checked(annotation: Any, value: Any, path: tuple[str, ...] = ()) -> Any:
    """Convert a JSON value to a type. Raises a `WrongValue` if it is of another one."""
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for option in options:
        kind, inner = get_origin(option) or option, get_args(option)
        if kind is Literal:
            if value in inner:
                return value
        elif kind in (list, tuple) and isinstance(value, list | tuple):
            items = enumerate(cast("list[Any]", value))
            values = [checked(inner[0], item, (*path, str(at))) for at, item in items]
            return values if kind is list else tuple(values)
        elif kind is dict and isinstance(value, dict):
            members = cast("JsonObject", value).items()
            return {key: checked(inner[1], item, (*path, key)) for key, item in members}
        elif is_dataclass(kind) and isinstance(value, dict):
            return option(**checked_fields(option, cast("JsonObject", value), path))
        elif kind is Any or type(value) is kind:
            return value
        elif (number := _number(kind, value)) is not None:
            return number
    names = [_EXPECTED.get(get_origin(option) or option, "dictionary") for option in options]
    raise WrongValue(path, f"Input should be a valid {names[0]}", value)


def _number(kind: Any, value: Any) -> Any:
    """Models write numbers and booleans as strings, and whole numbers with a point. None if it is none."""
    if kind in (bool, int, float) and isinstance(value, str):
        try:
            value = json.loads(value.lower())
        except (ValueError, RecursionError):
            return None
    if type(value) is kind:
        return value
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return float(value) if kind is float and type(value) is int else None


@cache
def _fields(cls: type[Any]) -> Sequence[tuple[str, Sequence[str], Any, bool, bool]]:
    """Name, aliases, type, whether it is required, and whether another value is ignored, of what JSON can give."""
    found: list[tuple[str, Sequence[str], Any, bool, bool]] = []
    # What is not shown is the program's own.
    for each in (field for field in fields(cls) if field.repr):
        is_annotated = hasattr(each.type, "__metadata__")
        annotation, *notes = get_args(each.type) if is_annotated else (each.type,)
        aliases = next((note for note in notes if isinstance(note, Aliases)), ())
        is_required = each.default is MISSING and each.default_factory is MISSING
        found.append((each.name, aliases, annotation, is_required, OR_DEFAULT in notes))
    return found
