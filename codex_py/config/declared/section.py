"""Declares settings: a table of the configuration is a class, and each of its keys an attribute. LIGHT.

    class History(Section):
        redact: bool = key("Mask keys of a known form.", default=False)

The annotation is the type of the value (see `kinds`); the call has the description, the default and
other properties. The check of files, the JSON Schema, the reference and the typed access of the
program all use these declarations.

Our modules with declarations have `from __future__ import annotations`, because evaluating all
annotations would take half of their loading time, and a run needs a tenth of them.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final, TypeVar, cast, get_args

from codex_py.protocol.annotations import (
    Declares,
    Kind,
    alternatives,
    form,
    plain,
)

SectionT = TypeVar("SectionT", bound="Section")
REST: Final = "*"
"""The name of a declaration that stands for all keys without one of their own."""


class Key:
    """The declaration of a key. The type of its values is the annotation of the attribute."""

    is_table = False
    """True for a section, and for a table of names that the user chooses. If such a key is not set,
    its value is an empty table."""

    def __init__(
        self,
        about: str,
        name: str,
        default: Any = None,
        in_project: bool = True,
        harmless: tuple[Any, ...] | None = None,
        names: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self.about = about
        """The description in the reference, which leaves out keys without effect."""
        self.name = name
        self.default = default
        self.in_project = in_project
        """True if a project may set the key."""
        self.harmless = harmless
        """For a key without effect, the values that need no warning. None for any other key."""
        self.names = names
        """The names that a `rest` stands for; None if it stands for any name."""

    def __set_name__(
        self,
        owner: type["Section"],
        attribute: str,
    ) -> None:
        self.owner = owner
        self.attribute = attribute
        self.name = self.name or attribute

    @cached_property
    def kind(self) -> Kind:
        """The type of the values; for a `rest`, of the value of each name.

        For `str | None` it is `str`, because None only means that the key is not set.
        """
        annotation: Any = self.owner.__annotations__[self.attribute]
        if isinstance(annotation, str):
            annotation = _evaluated(annotation, self.owner.__module__)
        if self.name == REST:
            annotation = get_args(annotation)[1]
        options = alternatives(annotation)
        if len(options) == 1:
            return options[0]
        return annotation

    def __get__(
        self,
        section: "Section | None",
        owner: type["Section"],
    ) -> Any:
        """Return the typed value of the key in a section; asked of the class, the default."""
        if section is None:
            return self.default
        values = raw(section)
        if self.name == REST:
            return {
                name: typed(self.kind, value)
                for name, value in values.items()
                if key_of(owner, name) is self
            }
        value = values.get(self.name)
        if value is None:
            if not self.is_table:
                return self.default
            value = {}
        # Other values have their type already.
        if isinstance(value, str | list | dict):
            return typed(self.kind, value)
        return value


@cache
def _evaluated(annotation: str, module: str) -> Kind:
    """Evaluate the text of an annotation in its module."""
    return eval(annotation, vars(sys.modules[module]))


class _Table(Key):
    is_table = True


class Section(Declares):
    """A table of the configuration, with checked values. Attributes give them their types."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    @classmethod
    def __kind_at__(cls, name: str) -> "Kind | None":
        known = key_of(cls, name)
        if known is None:
            return None
        return known.kind

    @classmethod
    def __known_names__(cls) -> Collection[str]:
        names = list(names_of(cls))
        for each in keys_of(cls):
            if each.names is not None:
                names += each.names()
        return names

    @classmethod
    def further_key(cls, name: str) -> Key | None:  # noqa: ARG003 - for subclasses
        """Find a declaration outside of the class. None: there is no such key."""
        return None

    def __eq__(self, other: object) -> bool:
        """True if all keys have the same values; an unset key has its default."""
        if type(other) is not type(self):
            return False
        if raw(other) == self._values:
            return True
        names = [each.attribute for each in keys_of(type(self))]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash(type(self))


def raw(section: Section) -> Mapping[str, Any]:
    """Return the values as they are in the file, without defaults."""
    return section._values  # pyright: ignore[reportPrivateUsage]


def changed(section: SectionT, **values: Any) -> SectionT:
    """Return a copy of a section with other values of these keys."""
    return type(section)({**raw(section), **values})


def is_set(section: Section, name: str) -> bool:
    """True if the file sets the key of this name."""
    return name in raw(section)


def key(
    about: str = "",
    *,
    name: str = "",
    default: Any = None,
    in_project: bool = True,
) -> Any:
    """Declare a key.

    Args:
        about: the description; empty only for keys that the reference does not list.
        name: the name in the file; by default, that of the attribute.
        default: the value if the key is not set. None: the attribute is None then, so its annotation
            should allow that.
        in_project: True if a repository may set the key. A repository must not decide where
            requests and keys go, which programs are started, or whom to trust.
    """
    return Key(about, name, default, in_project)


def table(
    about: str = "",
    *,
    name: str = "",
    default: Any = None,
    in_project: bool = True,
) -> Any:
    """Declare a key whose value is a section, or a `Mapping` with names that the user chooses.

    If the key is not set, the value is empty.

    Args:
        about: the description of an entry of a `Mapping`. The keys of a section have their own.
    """
    return _Table(about, name, default, in_project)


def no_effect(
    *harmless: Any,
    name: str = "",
    default: Any = None,
    in_project: bool = True,
) -> Any:
    """Declare a key of Codex that has no effect in this version. Users of the key are warned.

    Args:
        harmless: the values without a warning: they ask for what this version does anyway.
    """
    return Key("", name, default, in_project, harmless)


def rest(
    about: str = "",
    *,
    names: Callable[[], Collection[str]] | None = None,
    harmless: tuple[Any, ...] | None = None,
) -> Any:
    """Declare all keys that have no attribute of their own. The annotation is a `Mapping`.

    Args:
        names: returns the names of the keys; any other name is unknown. Called when the table is
            first used. None: any name is known.
        harmless: see `no_effect`. None: the keys have an effect.
    """
    return Key(
        about,
        REST,
        None,
        True,
        harmless,
        names,
    )


@cache
def keys_of(cls: type[Section]) -> tuple[Key, ...]:
    """Return the keys of a section in the order of their declaration."""
    return tuple(each for each in vars(cls).values() if isinstance(each, Key))


def names_of(cls: type[Section]) -> Collection[str]:
    """Return the names of the keys with an attribute of their own."""
    return _by_name(cls).keys()


@cache
def _by_name(cls: type[Section]) -> Mapping[str, Key]:
    return {each.name: each for each in keys_of(cls) if each.name != REST}


def key_of(cls: type[Section], name: str) -> Key | None:
    """Return the declaration of a key of a section; None for an unknown one."""
    own = _by_name(cls).get(name)
    if own is not None:
        return own
    for each in keys_of(cls):
        if each.name == REST and (each.names is None or name in each.names()):
            return each
    return cls.further_key(name)


def defaults(cls: type[Section], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of each default.

    Args:
        path: the prefix of all keys, with its last dot.
    """
    for each in keys_of(cls):
        if each.default is not None:
            yield path + each.name, each.default
        if each.is_table and form(each.kind) == "fields":
            yield from defaults(each.kind, f"{path}{each.name}.")


def typed(kind: Kind, value: Any) -> Any:
    """Convert a checked value to the type of its annotation."""
    for each in alternatives(kind):
        match form(each):
            case "fields" if isinstance(value, Mapping):
                return each(value)
            case "mapping" if isinstance(value, Mapping):
                table = cast("Mapping[str, Any]", value)
                inner = get_args(each)[1]
                return {name: typed(inner, part) for name, part in table.items()}
            case "array" if isinstance(value, list):
                inner = get_args(each)[0]
                return tuple(typed(inner, part) for part in cast("list[Any]", value))
            case "plain" if isinstance(value, str) and plain(each).fits(value):
                return plain(each).make(value)
            case _:
                pass
    return value
