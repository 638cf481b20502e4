"""Reads JSON into `@frozen` classes, by the annotations of their fields. LIGHT.

It reads the items of the API and the arguments of tools. pydantic would do the same, but would cost
every run of `exec` that calls a tool 50 ms and 10 MB.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from codex_py.errors import nearest
from codex_py.protocol.json_fields import JsonObject

REQUIRED: Final = "Field required"
"""The reason of a `WrongValue` for a missing value."""
OR_DEFAULT: Final = object()
"""A mark for `Annotated`: a value of another type is ignored."""
_MAX_PROBLEMS: Final = 8
"""The number of problems that the text of an error names."""
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
    """A note for `Annotated`: other names of the field."""

    __slots__ = ()


class WrongValue(ValueError):
    """A JSON value of the wrong type, or a missing one. The text is for a model.

    Attributes:
        path: the names and indices that lead to the value.
        reason: the problem, for other texts.
    """

    def __init__(self, path: Sequence[str], reason: str, value: object = None) -> None:
        field = ".".join(path) or "arguments"
        # Encode only the beginning: the value may be megabytes, or nested deeply.
        shown = "".join(islice(json.JSONEncoder(default=str).iterencode(value), 200))[
            :200
        ]
        is_wrong = f"invalid value {shown} for `{field}`: {reason}"
        super().__init__(f"missing field `{field}`" if reason == REQUIRED else is_wrong)
        self.path = path
        self.reason = reason


class WrongValues(WrongValue):
    """One or more wrong values. `path` and `reason` are those of the first."""

    def __init__(self, problems: Sequence[WrongValue]) -> None:
        first = problems[0]
        super().__init__(first.path, first.reason)
        self.problems = [each for problem in problems for each in _problems(problem)]

    def __str__(self) -> str:
        shown = [str(each) for each in self.problems[:_MAX_PROBLEMS]]
        left = len(self.problems) - len(shown)
        if left > 0:
            shown.append(f"and {left} more")
        return "; ".join(shown)


def guess(choices: Iterable[object], value: object) -> str:
    """A question for the choice that a wrong value resembles; empty if it resembles none."""
    known = {str(choice).lower(): choice for choice in choices}
    if isinstance(value, str) and known:
        meant = nearest(value.lower(), known)
    else:
        meant = None
    if meant is None:
        return ""
    return f"; did you mean {known[meant]!r}?"


def _problems(problem: WrongValue) -> Sequence[WrongValue]:
    if isinstance(problem, WrongValues):
        return problem.problems
    return [problem]


def checked_fields(
    cls: type[Any], data: JsonObject, path: tuple[str, ...] = ()
) -> JsonObject:
    """The fields of a class from a JSON object. Null for a field with a default counts as left out.

    Raises:
        WrongValues: fields are missing, or have other types; names all of them.
    """
    values: JsonObject = {}
    problems: list[WrongValue] = []
    for name, aliases, annotation, is_required, is_lenient in _fields(cls):
        given = next(
            (key for key in (name, *aliases) if data.get(key) is not None), name
        )
        try:
            if data.get(given) is not None:
                values[name] = checked(annotation, data[given], (*path, given))
            elif is_required:
                raise WrongValue((*path, name), REQUIRED)
        except WrongValue as problem:
            if not is_lenient:
                problems.append(problem)
    if problems:
        raise WrongValues(problems)
    return values


def checked(annotation: Any, value: Any, path: tuple[str, ...] = ()) -> Any:
    """Convert a JSON value to a type. Raises a `WrongValue` if it has another type."""
    options = _options(annotation)
    for option in options:
        kind = get_origin(option) or option
        inner = get_args(option)
        if kind is Literal:
            if value in inner:
                return value
        elif kind in (list, tuple) and isinstance(value, list | tuple):
            items = enumerate(cast("list[Any]", value))
            members = _members(inner[0], {str(at): item for at, item in items}, path)
            if kind is list:
                return list(members.values())
            return tuple(members.values())
        elif kind is dict and isinstance(value, dict):
            return _members(inner[1], cast("JsonObject", value), path)
        elif is_dataclass(kind) and isinstance(value, dict):
            return option(**checked_fields(option, cast("JsonObject", value), path))
        elif kind is Any or type(value) is kind:
            return value
        elif (number := _number(kind, value)) is not None:
            return number
    raise WrongValue(path, _expectation(options, value), value)


def _options(annotation: Any) -> Sequence[Any]:
    """The members of a union type; for any other type, that type alone."""
    # `X | Literal[…]` is a `typing.Union`, not a `UnionType`.
    is_union = isinstance(annotation, UnionType) or get_origin(annotation) is Union
    if is_union:
        return get_args(annotation)
    return (annotation,)


def _members(annotation: Any, members: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Convert each value. Raises a `WrongValues` with every value of another type."""
    if annotation is Any:
        return members
    values: JsonObject = {}
    problems: list[WrongValue] = []
    for key, member in members.items():
        try:
            values[key] = checked(annotation, member, (*path, key))
        except WrongValue as problem:
            problems.append(problem)
    if problems:
        raise WrongValues(problems)
    return values


def _expectation(options: Sequence[Any], value: object) -> str:
    """Describe the values that these types allow."""
    choices: list[object] = []
    names: list[str] = []
    for option in options:
        kind = get_origin(option) or option
        if kind is Literal:
            choices += get_args(option)
        elif kind is not NoneType:
            names.append(_EXPECTED.get(kind, "dictionary"))
    words = [repr(choice) for choice in choices]
    if names:
        words.append(f"a valid {' or '.join(names)}")
    first = ", ".join(words[:-1])
    listed = f"{first} or {words[-1]}" if first else words[-1]
    return f"Input should be {listed}{guess(choices, value)}"


def _number(kind: Any, value: Any) -> Any:
    """The number or boolean that a value means; None if it means none.

    Models write numbers and booleans as strings, and whole numbers with a decimal point.
    """
    if kind in (bool, int, float) and isinstance(value, str):
        try:
            value = json.loads(value.lower())
        except (ValueError, RecursionError):
            return None
    if type(value) is kind:
        return value
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is float and type(value) is int:
        return float(value)
    return None


@cache
def _fields(cls: type[Any]) -> Sequence[tuple[str, Sequence[str], Any, bool, bool]]:
    """The name, aliases, type, `is_required` and `is_lenient` of each field that JSON can set."""
    found: list[tuple[str, Sequence[str], Any, bool, bool]] = []
    # Fields with `repr=False` are the program's own.
    for each in (field for field in fields(cls) if field.repr):
        is_annotated = hasattr(each.type, "__metadata__")
        annotation, *notes = get_args(each.type) if is_annotated else (each.type,)
        aliases = next((note for note in notes if isinstance(note, Aliases)), ())
        is_required = each.default is MISSING and each.default_factory is MISSING
        found.append((each.name, aliases, annotation, is_required, OR_DEFAULT in notes))
    return found
