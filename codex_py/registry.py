"""Finds what installed packages add to this program: entry points, by group and name.

Nothing of a package is imported here. Reading the metadata of all packages takes 20 ms and more, so
a group is read only where somebody asks for a name in it.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from codex_py.errors import ConfigError

# Groups are named as modules are, but are none.
_OURS: Final = "codex_py"
COMMANDS: Final = f"{_OURS}.commands"
"""Subcommands; see `api.commands`."""
EXTENSIONS: Final = f"{_OURS}.extensions"
"""Features of sessions; see `protocol.extension`."""
OPTIONS: Final = f"{_OURS}.options"
"""Options of `exec`, without their dashes; see `api.options`."""
WIRES: Final = f"{_OURS}.wires"
"""API formats of models; see `api.wires`."""


def find(group: str, name: str) -> EntryPoint | None:
    """Find the entry point of this name. None if no installed package has one.

    Raises:
        ConfigError: more than one package has one.
    """
    found = tuple(entry_points(group=group, name=name))
    if len(found) > 1:
        packages = ", ".join(sorted(_package(point) for point in found))
        raise ConfigError(
            f"{name!r} in the group `{group}` is ambiguous: {packages} have it"
        )
    return found[0] if found else None


def load(point: EntryPoint, what: str, key: Sequence[str] = ()) -> Any:
    """Import the value of an entry point.

    Args:
        what: names the kind of the value in the error, such as `command`.
        key: the key of the configuration that asks for it.

    Raises:
        ConfigError: the import fails.
    """
    try:
        return point.load()
    except Exception as error:
        raise unusable(point, what, repr(error), key) from error


def unusable(
    point: EntryPoint, what: str, reason: str, key: Sequence[str] = ()
) -> ConfigError:
    """Make the error for an entry point that cannot be used. The arguments are those of `load`."""
    text = f"the {what} {point.name!r} ({point.value}) cannot be used: {reason}"
    return ConfigError(text, key=tuple(key))


def names(group: str) -> Mapping[str, str]:
    """List the names in a group, in alphabetical order, with the package of each."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: _package(point) for point in points}


def _package(point: EntryPoint) -> str:
    """The name of the package that has the entry point."""
    if point.dist is None:
        return point.module
    return point.dist.name
