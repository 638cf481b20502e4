"""Extensions of installed packages: entry points of the group `codex_py.extensions`. Loaded if the configuration names
one."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from codex_py.errors import ConfigError
from codex_py.protocol.extension import Feature

_GROUP: Final = ".".join(("codex_py", "extensions"))  # No module of ours.


def installed_features(tables: Mapping[str, Mapping[str, Any]]) -> Sequence[Feature]:
    """The features of the tables `[extensions.NAME]`, each made by the entry point NAME from its table.

    Raises:
        ConfigError: one is not installed, or fails.
    """
    return [_made(_found(name), table) for name, table in tables.items()]


def _found(name: str) -> EntryPoint:
    found = tuple(entry_points(group=_GROUP, name=name))
    if len(found) != 1:
        if found:
            what = "more than one installed package has"
        else:
            what = "no installed package has"
        raise ConfigError(f"{what} an extension {name!r}", key=("extensions", name))
    return found[0]


def _made(point: EntryPoint, table: Mapping[str, Any]) -> Feature:
    try:
        return point.load()(table)
    except Exception as error:
        text = f"the extension {point.name!r} ({point.value}) cannot be used: {error!r}"
        raise ConfigError(text, key=("extensions", point.name)) from error
