"""Reads what the annotations of fields say about foreign data. LIGHT.

`checked` reads data by them; the JSON Schema and the reference of the settings are made of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

Kind: TypeAlias = Any
"""The annotation of a value."""
Form: TypeAlias = Literal["fields", "mapping", "array", "choice", "plain"]
"""The form of values of a type that is no union: an object with declared fields, one with free names, …"""
OR_DEFAULT: Final = object()
"""A mark for `Annotated`: a value of another type is ignored."""


class Aliases(tuple[str, ...]):
    """A note for `Annotated`: other names of the field."""

    __slots__ = ()


class Plain(NamedTuple):
    """A note for `Annotated`: describes the values of a type that has no members and no choices."""

    name: str
    words: str
    """The kind of value, in words: `a string`."""
    types: tuple[type, ...]
    """The types of the decoded data."""
    holds: Callable[[Any], bool] = lambda _: True
    make: Callable[[Any], Any] = lambda value: value
    """Makes the typed value."""

    def fits(self, value: Any) -> bool:
        if isinstance(value, bool) and bool not in self.types:
            # Python takes a boolean for an integer.
            return object in self.types
        return isinstance(value, self.types) and self.holds(value)


_PYTHON: Final[Mapping[Any, Plain]] = {
    str: Plain("string", "a string", (str,)),
    bool: Plain("boolean", "a boolean", (bool,)),
    int: Plain("integer", "an integer", (int,)),
    float: Plain("number", "a number", (int, float)),
    Path: Plain("path", "a path", (str,), make=Path),
    Any: Plain("any", "anything", (object,)),
    NoneType: Plain("null", "null", (NoneType,)),
}


class Declares:
    """A base of classes that declare their fields in another way than `@frozen` classes do.

    An instance is made of the values as they are in the data, without aliases and defaults.
    """

    __slots__ = ()

    def __init__(self, values: Mapping[str, Any]) -> None:
        raise NotImplementedError

    @classmethod
    def __kind_at__(cls, name: str) -> "Kind | None":
        """The type of the values of a field; None for an unknown one."""
        raise NotImplementedError

    @classmethod
    def __known_names__(cls) -> Collection[str]:
        """The names of all fields, without those that users choose."""
        raise NotImplementedError


class Renamed:
    """A base of `@frozen` classes whose fields have other names in JSON than in Python."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        raise NotImplementedError


class CamelCase(Renamed):
    """The fields have camel case in JSON: `threadId` for `thread_id`."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        return camel_case(name)


class Hyphenated(Renamed):
    """The fields have hyphens in JSON: `thread-id` for `thread_id`."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        return name.replace("_", "-")


class FieldShape(NamedTuple):
    name: str
    names: Sequence[str]
    """The name of the field in JSON and its other names, in the order of precedence."""
    kind: Kind
    is_required: bool
    is_lenient: bool
    """A value of another type is ignored."""


class Shape(NamedTuple):
    """The fields of a `@frozen` class that JSON can set."""

    fields: Sequence[FieldShape]
    names: Collection[str]
    """The names of all fields."""


@cache
def shape(cls: type[Any]) -> Shape:
    """The fields of a `@frozen` class. Those with `repr=False` are the program's own."""
    found = [_field(cls, each) for each in fields(cls) if each.repr]
    return Shape(found, dict.fromkeys(name for each in found for name in each.names))


def _field(cls: type[Any], field: Any) -> FieldShape:
    kind = field.type
    name: str = field.name
    if issubclass(cls, Renamed):
        name = cls.__json_name__(name)
    notes: Sequence[Any] = ()
    if get_origin(kind) is Annotated and not isinstance(kind.__metadata__[0], Plain):
        kind, *notes = get_args(kind)
    aliases = next((note for note in notes if isinstance(note, Aliases)), ())
    return FieldShape(
        field.name,
        (name, *aliases),
        kind,
        is_required=field.default is MISSING and field.default_factory is MISSING,
        is_lenient=OR_DEFAULT in notes,
    )


def camel_case(name: str) -> str:
    """The name in camel case: `threadId` for `thread_id`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def alternatives(kind: Kind) -> tuple[Kind, ...]:
    """The types of a union except for None; any other type alone."""
    return tuple(each for each in members_of(kind) if each is not NoneType)


def members_of(kind: Kind) -> tuple[Kind, ...]:
    """The types of a union, None included; any other type alone."""
    # `X | Literal[…]` is a `typing.Union`, not a `UnionType`.
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return get_args(kind)
    return (kind,)


def form(kind: Kind) -> Form:
    """The form of the values of a type that is no union."""
    origin = get_origin(kind)
    if origin is None:
        if isinstance(kind, type) and _has_fields(kind):
            return "fields"
        return "plain"
    if origin is Literal:
        return "choice"
    if origin in (list, tuple):
        return "array"
    if origin in (dict, Mapping):
        return "mapping"
    return "plain"


class Tag(NamedTuple):
    """The field that tells a class from the others of a union."""

    name: str
    """The name in JSON."""
    values: Sequence[str]
    """Its values in this class."""


def tag_of(cls: type[Any]) -> Tag | None:
    """The first required field of a `@frozen` class that has fixed values; None if there is none."""
    if issubclass(cls, Declares):
        return None
    for each in shape(cls).fields:
        if each.is_required and form(each.kind) == "choice":
            return Tag(each.names[0], get_args(each.kind))
    return None


def _has_fields(cls: type[Any]) -> bool:
    return issubclass(cls, Declares) or is_dataclass(cls)


def plain(kind: Kind) -> Plain:
    """The description of a type without members and choices."""
    found = _PYTHON.get(kind)
    if found is None:
        (found,) = kind.__metadata__
    return found


def kind_at(kind: Kind, name: str) -> "Kind | None":
    """The type that values of a type have under a name; None for an unknown field."""
    for each in alternatives(kind):
        match form(each):
            case "fields":
                found = _kind_of_field(each, name)
                if found is not None:
                    return found
            case "mapping":
                return get_args(each)[1]
            case "array" | "plain" if _takes_all(each):
                return Any
            case _:
                pass
    return None


def _kind_of_field(cls: type[Any], name: str) -> "Kind | None":
    if issubclass(cls, Declares):
        return cls.__kind_at__(name)
    for each in shape(cls).fields:
        if name in each.names:
            return each.kind
    return None


def _takes_all(kind: Kind) -> bool:
    return kind is Any or get_args(kind)[:1] == (Any,)


def known_names(kind: Kind) -> list[str]:
    """The names of the fields of a type, without those that users choose."""
    names: list[str] = []
    for each in alternatives(kind):
        if form(each) == "fields":
            names += _names(each)
    return names


def _names(cls: type[Any]) -> Collection[str]:
    if issubclass(cls, Declares):
        return cls.__known_names__()
    return shape(cls).names


def choices(kind: Kind) -> Iterator[object]:
    """The values that the `Literal`s of a type name."""
    for each in alternatives(kind):
        if form(each) == "choice":
            yield from get_args(each)


def expected(kind: Kind, an_object: str = "an object") -> str:
    """The type in words: `a string`. `an_object`: the words for an object."""
    return " or ".join(_in_words(each, an_object) for each in alternatives(kind))


def _in_words(kind: Kind, an_object: str) -> str:
    match form(kind):
        case "fields" | "mapping":
            return an_object
        case "array":
            return "an array"
        case "choice":
            named = ", ".join(f"`{choice}`" for choice in get_args(kind))
            return f"one of {named}"
        case "plain":
            return plain(kind).words
