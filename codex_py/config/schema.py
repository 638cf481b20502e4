"""Every key of the configuration file, from the one table of them, `keys.txt`: its kind, its default, what it does, and
whether it has an effect.

The keys are those that Codex 0.171 accepts with `--strict-config`. Those that this program does not use are there too,
so that a file written for Codex is accepted. A new key is one line there; `Config` has a field for it if the program
reads it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.config.keymap import CONTEXTS, action_names
from codex_py.config.tables import (
    HOOK_EVENTS,
    AnyOf,
    Kind,
    Setting,
    Table,
    feature_names,
)

_NAMES: Final = {
    "features.*": feature_names,
    **{f"tui.keymap.{each}.*": partial(action_names, each) for each in CONTEXTS},
}
"""Of the keys whose `*` does not stand for any name: the names that it stands for."""


def read_tables(
    file: str, names_of: Mapping[str, Callable[[], Collection[str]]]
) -> dict[str, Table]:
    """The tables of keys in a file of this folder, by their dotted keys. `names_of`: see `Setting.names`."""
    tables: dict[str, Table] = {"": {}}
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        names, given, *about = line.split(" | ", 2)
        given, *effect = given.split("; no effect")
        given, *refused = given.split("; not in a project")
        kind, *default = given.split(" = ")
        first, *others = names.split()
        above, _, last = first.rpartition(".")
        table = _table_at(above, tables)
        for name in (last, *others):
            table[name] = Setting(
                _kind(kind),
                json.loads(default[0]) if default else None,
                not refused,
                tuple(json.loads(effect[0].removeprefix(" but ") or "[]"))
                if effect
                else None,
                names_of.get(first),
                *about,
            )
    return tables


def _table_at(path: str, tables: dict[str, Table]) -> Table:
    """The table at a dotted key, which is made if no line has said more about it. `tables`: those that are known."""
    table = tables.get(path)
    if table is None:
        above, _, name = path.rpartition(".")
        entry = _table_at(above, tables).setdefault(name, Setting({}))
        table = tables[path] = next(_tables_in(entry))
    return table


def _tables_in(kind: "Kind | Setting") -> Iterator[Table]:
    """The table that a value of a kind is, may be, or has as its elements."""
    match kind:
        case Setting():
            yield from _tables_in(kind.kind)
        case dict():
            yield kind
        case list() | AnyOf():
            for each in kind:
                yield from _tables_in(each)
        case _:
            pass


def _kind(text: str) -> Kind:
    if text == "{}":
        return {}
    if text.startswith("["):
        return [_kind(text[1:-1])]
    if " or " in text:
        return AnyOf(map(_kind, text.split(" or ")))
    if "/" in text:
        return tuple(filter(None, text.split("/")))
    return text


TABLES: Final = read_tables("keys.txt", _NAMES)
"""By their dotted keys: `model_providers.*`."""
KEYS: Final = TABLES[""]
"""The file itself."""
HOOKS: Final = dict.fromkeys(HOOK_EVENTS, TABLES["hooks"].pop("EVENT"))
"""The hooks of each event."""
TABLES["hooks"] |= HOOKS


def _defaults(table: Table, path: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    for name, entry in table.items():
        if isinstance(entry, Setting):
            known = entry
        else:
            known = Setting(entry)
        if known.default is not None:
            yield ".".join((*path, name)), known.default
        if isinstance(known.kind, dict):
            yield from _defaults(known.kind, (*path, name))


DEFAULTS: Final = dict(_defaults(KEYS))
"""By dotted key. A key that is not here is unset by default."""
PROJECT_REFUSED: Final = frozenset(
    name
    for name, entry in KEYS.items()
    if isinstance(entry, Setting) and not entry.project
)
"""Keys that a repository does not decide: where requests and keys go, what is started, whom to trust."""
