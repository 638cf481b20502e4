"""Declares settings: a table of the configuration is a class, and each of its keys an attribute. LIGHT.

    class History(Section):
        redact: bool = key("Keys of a known form are masked.", default=False)

The annotation says what a value must be (see `kinds`), the call what else there is to say. The check of files, the
JSON Schema, the reference and the typed access of the program all follow from it.

Modules with declarations have `from __future__ import annotations`: to evaluate all annotations takes as long as all
else there, and a run looks at a tenth of them.
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
"""Stands for the names of keys that have none of their own."""


class Key:
    """The declaration of a key, except for the type of its values."""

    is_table = False
    """A section, or a table of names that the user chooses."""

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
        """The text about the key in the reference, which leaves out keys without effect."""
        self.name = name
        self.default = default
        self.in_project = in_project
        """True if a project may set the key."""
        self.harmless = harmless
        """The values that ask for nothing else, of a key without effect; None for another key."""
        self.names = names
        """The names that a `rest` stands for; None if it stands for any name."""

    def __set_name__(self, owner: type["Section"], attribute: str) -> None:
        self.owner = owner
        self.attribute = attribute
        self.name = self.name or attribute

    @cached_property
    def kind(self) -> Kind:
        """The type of its values, without None if there is but one; of a `rest`: of the values of each name."""
        text: str = self.owner.__annotations__[self.attribute]
        annotation = _evaluated(text, self.owner.__module__)
        if self.name == REST:
            annotation = get_args(annotation)[1]
        options = alternatives(annotation)
        if len(options) == 1:
            return options[0]
        return annotation

    def __get__(self, section: "Section | None", owner: type["Section"]) -> Any:
        """Return the value of the key in a section, or the default if asked of the class."""
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
        if value is None and not self.is_table:
            return self.default
        if value is None:
            value = {}
        if isinstance(value, str | list | dict):
            return typed(self.kind, value)
        return value


@cache
def _evaluated(annotation: str, module: str) -> Kind:
    """The type that an annotation in a module of ours means."""
    return eval(annotation, vars(sys.modules[module]))


class _Table(Key):
    is_table = True


class Section(Declares):
    """A table of the configuration. Its values have been checked."""

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

    def __eq__(self, other: object) -> bool:
        """True if all keys have the same values, be they set or defaults."""
        if type(other) is not type(self):
            return False
        if raw(other) == self._values:
            return True
        names = [each.attribute for each in keys_of(type(self))]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash(type(self))


def raw(section: Section) -> Mapping[str, Any]:
    """The values as they are in the file, without defaults."""
    return section._values  # pyright: ignore[reportPrivateUsage]


def changed(section: SectionT, **values: Any) -> SectionT:
    """A copy of a section with other values of these keys."""
    return type(section)({**raw(section), **values})


def is_set(section: Section, name: str) -> bool:
    """True if the file has the key: its value is no default."""
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
        about: what it does; empty only for what the reference does not list.
        name: as it is written in the file, where that cannot be the name of the attribute.
        in_project: a repository may set it. One does not decide where requests and keys go, what is started, or
            whom to trust.
    """
    return Key(about, name, default, in_project)


def table(
    about: str = "",
    *,
    name: str = "",
    default: Any = None,
    in_project: bool = True,
) -> Any:
    """Declare a key whose value is a section, or a `Mapping` with names that the user chooses. Unset, it is empty.

    Args:
        about: what an entry of a `Mapping` does. The keys of a section say it themselves.
    """
    return _Table(about, name, default, in_project)


def no_effect(
    *harmless: Any, name: str = "", default: Any = None, in_project: bool = True
) -> Any:
    """Declare a key of Codex that has no effect in this version, of which the user is told.

    Args:
        harmless: the values that ask for nothing else than what happens anyway.
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
        names: those that it stands for, which are read when the table is used; any other name is then unknown.
        harmless: as of `no_effect`; None: the keys have an effect.
    """
    return Key(about, REST, None, True, harmless, names)


@cache
def keys_of(cls: type[Section]) -> tuple[Key, ...]:
    """The keys of a section in the order of their declaration."""
    return tuple(each for each in vars(cls).values() if isinstance(each, Key))


def names_of(cls: type[Section]) -> Collection[str]:
    """The names of the keys that are declared one by one."""
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
    return None


def defaults(cls: type[Section], path: str = "") -> Iterator[tuple[str, Any]]:
    """The default values by their dotted keys."""
    for each in keys_of(cls):
        if each.default is not None:
            yield path + each.name, each.default
        if each.is_table and form(each.kind) == "fields":
            yield from defaults(each.kind, f"{path}{each.name}.")


def typed(kind: Kind, value: Any) -> Any:
    """A value that has been checked as the type of its annotation."""
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
