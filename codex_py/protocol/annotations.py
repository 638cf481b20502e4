"""Reads the annotations of fields, which describe foreign data. LIGHT.

`checked` reads data as they say. The JSON Schemas and the reference of the settings are made from
them too.
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
"""The annotation of a value: a type, a union, a `Literal`, an `Annotated` with a `Plain`, …"""
Form: TypeAlias = Literal["fields", "mapping", "array", "choice", "plain"]
"""The form of the values of a type that is no union.

`fields` is an object with declared fields, `mapping` an object with free names, `choice` one of
some fixed values, and `plain` any other value.
"""
OR_DEFAULT: Final = object()
"""A note for `Annotated`: ignore a value of another type, and use the default of the field."""


class Aliases(tuple[str, ...]):
    """A note for `Annotated`: other names of the field."""

    __slots__ = ()


class Plain(NamedTuple):
    """The description of the values of a `plain` type. Also a note for `Annotated` that has one."""

    name: str
    """The name of the type in a JSON Schema, or a name of our own: `path`."""
    words: str
    """The kind of value, in words: `a string`."""
    types: tuple[type, ...]
    """The types that a decoded value may have."""
    holds: Callable[[Any], bool] = lambda _: True
    """True if the value is right, given that its type is."""
    make: Callable[[Any], Any] = lambda value: value
    """Makes the typed value of a decoded one."""

    def fits(self, value: Any) -> bool:
        """True if the decoded value is one of these."""
        if isinstance(value, bool) and bool not in self.types:
            # Python takes a boolean for an integer.
            return object in self.types
        return isinstance(value, self.types) and self.holds(value)


def _has_no_nul(text: str) -> bool:
    return "\0" not in text


_PYTHON: Final[Mapping[Any, Plain]] = {
    str: Plain("string", "a string", (str,)),
    bool: Plain("boolean", "a boolean", (bool,)),
    int: Plain("integer", "an integer", (int,)),
    float: Plain("number", "a number", (int, float)),
    Path: Plain("path", "a path", (str,), _has_no_nul, Path),
    Any: Plain("any", "anything", (object,)),
    NoneType: Plain("null", "null", (NoneType,)),
}


class Declares:
    """A base of classes that declare their fields in another way than `@frozen` classes do.

    The constructor gets the values under their names in the data. It must handle other names and
    defaults itself.
    """

    __slots__ = ()

    def __init__(self, values: Mapping[str, Any]) -> None:
        raise NotImplementedError

    @classmethod
    def __kind_at__(cls, name: str) -> "Kind | None":
        """Return the type of the values of a field; None for an unknown field."""
        raise NotImplementedError

    @classmethod
    def __known_names__(cls) -> Collection[str]:
        """Return the names of all fields, except names that users choose."""
        raise NotImplementedError


class Renamed:
    """A base of `@frozen` classes whose fields have other names in JSON than in Python."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        """Return the name in JSON of a field that has this name in Python."""
        raise NotImplementedError


class CamelCase(Renamed):
    """A base of classes whose fields have camel case in JSON: `threadId` for `thread_id`."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        return camel_case(name)


class Hyphenated(Renamed):
    """A base of classes whose fields have hyphens in JSON: `thread-id` for `thread_id`."""

    __slots__ = ()

    @staticmethod
    def __json_name__(name: str) -> str:
        return name.replace("_", "-")


class FieldShape(NamedTuple):
    """A field of a `@frozen` class."""

    name: str
    """The name of the field in Python."""
    names: Sequence[str]
    """The name of the field in JSON and its other names, in the order of precedence."""
    kind: Kind
    is_required: bool
    is_lenient: bool
    """True if the field has `OR_DEFAULT`."""


class Shape(NamedTuple):
    """The fields of a `@frozen` class that JSON can set."""

    fields: Sequence[FieldShape]
    names: Collection[str]
    """All names of all fields, in their order."""


@cache
def shape(cls: type[Any]) -> Shape:
    """Return the fields of a `@frozen` class that JSON can set.

    Fields with `repr=False` are the program's own, and left out.
    """
    found = [_field(cls, each) for each in fields(cls) if each.repr]
    names: dict[str, None] = {}
    for each in found:
        names |= dict.fromkeys(each.names)
    return Shape(found, names)


def _field(cls: type[Any], field: Any) -> FieldShape:
    kind = field.type
    name: str = field.name
    if issubclass(cls, Renamed):
        name = cls.__json_name__(name)
    notes: Sequence[Any] = ()
    if get_origin(kind) is Annotated:
        first_note, *_ = kind.__metadata__
        # A `Plain` belongs to the type; other notes belong to the field.
        if not isinstance(first_note, Plain):
            kind, *notes = get_args(kind)
    aliases: Sequence[str] = ()
    for note in notes:
        if isinstance(note, Aliases):
            aliases = note
    has_default = field.default is not MISSING or field.default_factory is not MISSING
    return FieldShape(
        field.name,
        (name, *aliases),
        kind,
        is_required=not has_default,
        is_lenient=OR_DEFAULT in notes,
    )


def camel_case(name: str) -> str:
    """Return the name in camel case: `threadId` for `thread_id`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def alternatives(kind: Kind) -> tuple[Kind, ...]:
    """Return the types of a union without None; for any other type, itself alone."""
    return tuple(each for each in members_of(kind) if each is not NoneType)


def members_of(kind: Kind) -> tuple[Kind, ...]:
    """Return the types of a union, None included; for any other type, itself alone."""
    # `X | Literal[…]` is a `typing.Union`, not a `UnionType`.
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return get_args(kind)
    return (kind,)


def form(kind: Kind) -> Form:
    """Return the form of the values of a type that is no union."""
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
    """The field by which the classes of a union are told apart."""

    name: str
    """The name of the field in JSON."""
    values: Sequence[str]
    """The values that the field has in objects of this class."""


def tag_of(cls: type[Any]) -> Tag | None:
    """Return the first required field of a class that has fixed values; None if there is none."""
    if issubclass(cls, Declares):
        return None
    for each in shape(cls).fields:
        if each.is_required and form(each.kind) == "choice":
            return Tag(each.names[0], get_args(each.kind))
    return None


def _has_fields(cls: type[Any]) -> bool:
    return issubclass(cls, Declares) or is_dataclass(cls)


def plain(kind: Kind) -> Plain:
    """Return the description of a type whose form is `plain`."""
    found = _PYTHON.get(kind)
    if found is None:
        (found,) = kind.__metadata__
    return found


def kind_at(kind: Kind, name: str) -> "Kind | None":
    """Return the type of the value that objects of a type have under a name.

    Returns None if no type of the union has such a field.
    """
    for each in alternatives(kind):
        match form(each):
            case "fields":
                found = _kind_of_field(each, name)
                if found is not None:
                    return found
            case "mapping":
                return get_args(each)[1]
            case "array" | "plain" if _takes_anything(each):
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


def _takes_anything(kind: Kind) -> bool:
    """True for `Any`, and for a list of `Any`."""
    return kind is Any or get_args(kind)[:1] == (Any,)


def known_names(kind: Kind) -> list[str]:
    """Return the names of the fields of a type, except names that users choose."""
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
    """Yield the values of all `Literal`s in a type."""
    for each in alternatives(kind):
        if form(each) == "choice":
            yield from get_args(each)


def expected(kind: Kind, an_object: str = "an object") -> str:
    """Return the type in words: `a string or an array`.

    Args:
        an_object: the words for an object, such as `a table` in TOML.
    """
    described = [_in_words(each, an_object) for each in alternatives(kind)]
    return " or ".join(described)


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
