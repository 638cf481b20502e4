"""The types of the tables of known keys."""

from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias


class AnyOf(tuple["Kind", ...]):
    """A value may be of any one of these kinds."""

    __slots__ = ()


Kind: TypeAlias = "str | tuple[str, ...] | list[Kind] | Table | AnyOf"
"""The kind of a value.

A string names a plain type, see `PLAIN`; a tuple of strings is a choice; a list of one kind is an array;
a dict is a table, and the name `*` in it stands for any other name.
"""

PLAIN: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "string": ("a string", (str,)),
    "secret": ("a string", (str,)),  # not shown when the configuration is explained
    "variable": ("the NAME of an environment variable, not what it holds", (str,)),
    "path": ("a path", (str,)),  # relative to the folder of the file that sets it
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "count": ("an integer of 0 or more", (int,)),
    "limit": ("an integer of more than 0", (int,)),
    "number": ("a number", (int, float)),
    "price": ("a finite number of 0 or more", (int, float)),
    "positive": ("a finite number of more than 0", (int, float)),
    "key": ("a key such as `ctrl-t` or `page-down`", (str,)),
    "table": ("a table", (dict,)),  # free in form
    "array": ("an array", (list,)),  # likewise
    "any": ("anything", (object,)),
}


class Setting(NamedTuple):
    """A key about which there is more to say than the kind of its value."""

    kind: Kind
    default: Any = None
    project: bool = True
    """A project may set it."""
    harmless: tuple[Any, ...] | None = None
    """For a key without effect in this version: the values that ask for nothing else. None for other keys."""
    names: Callable[[], Collection[str]] | None = None
    """For `*` in a table: the names that it stands for, which are read when the table is used. None: any other name."""
    about: str = ""
    """What it does; empty for keys that the reference does not list."""


Table: TypeAlias = "dict[str, Kind | Setting]"


def setting(table: Table, name: str) -> Setting | None:
    """What a table of kinds says about a key; None for an unknown one."""
    entry = table.get(name, table.get("*"))
    if not isinstance(entry, Setting):
        if entry is None:
            return None
        return Setting(entry)
    if entry.names is None or name in entry.names():
        return entry
    return None


def alike(kind: "Kind | Setting", names: str) -> Table:
    """A table of several keys, separated by blanks, that are all of one kind."""
    return dict.fromkeys(names.split(), kind)


HOOK_EVENTS: Final = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
)
"""In the order in which Codex counts the hooks of a file."""


@cache
def feature_names() -> frozenset[str]:
    """The names that `[features]` of Codex 0.171 knows, old spellings included."""
    return frozenset(line.split()[0] for line in feature_lines())


def feature_lines() -> list[str]:
    """The rows that `codex features list` of Codex 0.171 prints: name, stage and default, at least two blanks apart.

    An old spelling is a line without more. `undo`, which Codex has removed, is as it is here.
    """
    listed = Path(__file__).with_name("codex_features.txt")
    return listed.read_text(encoding="utf-8").splitlines()
