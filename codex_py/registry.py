"""Finds what installed packages add to this program: entry points, by group and name.

Nothing of a package is imported here. Reading the metadata of all packages takes 20 ms and more, so
a group is read only where somebody asks for a name in it.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from codex_py.errors import ConfigError

# Groups are named as modules are, but are none.
_OURS: Final = "codex_py"
COMMANDS: Final = f"{_OURS}.commands"
"""Subcommands; see `api.commands`."""
EXTENSIONS: Final = f"{_OURS}.extensions"
"""Features of sessions; see `protocol.extension`."""


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


def names(group: str) -> Mapping[str, str]:
    """List the names in a group, in alphabetical order, with the package of each."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: _package(point) for point in points}


def _package(point: EntryPoint) -> str:
    """The name of the package that has the entry point."""
    if point.dist is None:
        return point.module
    return point.dist.name
