"""The types of the table of known keys."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias


class AnyOf(tuple["Kind", ...]):
    """A value may be of any one of these kinds."""

    __slots__ = ()


Kind: TypeAlias = "str | tuple[str, ...] | list[Kind] | dict[str, Kind] | AnyOf"
"""The kind of a value.

A string names a plain type, see `PLAIN`; a tuple of strings is a choice; a list of one kind is an array;
a dict is a table, and the name `*` in it stands for any other name.
"""

PLAIN: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "string": ("a string", (str,)),
    "secret": ("a string", (str,)),  # not shown when the configuration is explained
    "path": ("a path", (str,)),  # relative to the folder of the file that sets it
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "count": ("an integer of 0 or more", (int,)),
    "limit": ("an integer of more than 0", (int,)),
    "number": ("a number", (int, float)),
    "duration": ("a finite number of more than 0", (int, float)),
    "table": ("a table", (dict,)),  # free in form
    "array": ("an array", (list,)),  # likewise
    "any": ("anything", (object,)),
}


class Setting(NamedTuple):
    """A key about which there is more to say than the kind of its value."""

    kind: "Kind | Table"
    default: Any = None
    project: bool = True
    """A project may set it."""
    harmless: tuple[Any, ...] | None = None
    """For a key without effect in this version: the values that ask for nothing else. None for other keys."""


Table: TypeAlias = "Mapping[str, Kind | Setting | Table]"


def unused(kind: "Kind | Table", *harmless: Any, **more: Any) -> Setting:
    """A key without effect in this version; the user is warned unless the value is `harmless`."""
    return Setting(kind, harmless=harmless, **more)
