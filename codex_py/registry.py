"""Finds what extensions add to this program: entry points, by group and name.

A folder of `codex_py/extensions` and an installed package add to it in the same way. The folder has
the file `entry_points.txt`, in the form in which an installer writes one for a package. The folders
come first, so an installed package replaces nothing of theirs.

Nothing of an extension is imported here. Reading the metadata of all installed packages takes 20 ms
and more, so it is read only where somebody asks for a name that no folder has.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import ConfigError

# Groups are named as modules are, but are none.
_OURS: Final = "codex_py"
COMMANDS: Final = f"{_OURS}.commands"
"""Subcommands, and members of groups of the program's own: `GROUP.MEMBER`; see `api.commands`."""
EXTENSIONS: Final = f"{_OURS}.extensions"
"""Features of sessions; see `api.extensions`."""
OPTIONS: Final = f"{_OURS}.options"
"""Options of sessions, without their dashes; see `api.options`."""
REVIEWERS: Final = f"{_OURS}.reviewers"
"""Values of `approvals_reviewer`, which decide approvals in place of the user."""
TABLES: Final = f"{_OURS}.tables"
"""Tables of the configuration; see `api.tables`."""
WIRES: Final = f"{_OURS}.wires"
"""API formats of models; see `api.wires`."""

_FOLDERS: Final = Path(__file__).with_name("extensions")
_PACKAGE: Final = "codex-py"
"""The package of the folders, in messages."""


class EntryPoint(NamedTuple):
    """A name of an extension, and the place of its value."""

    group: str
    name: str
    value: str
    """The module and the attribute: `package.module:attribute`."""
    package: str
    """The name of the installed package."""

    @property
    def is_ours(self) -> bool:
        """True if a folder of `codex_py/extensions` has it."""
        return self.package == _PACKAGE


def find(group: str, name: str) -> EntryPoint | None:
    """Find the entry point of this name. None if no extension has one.

    Raises:
        ConfigError: more than one package has one.
    """
    for point in own_points(group):
        if point.name == name:
            return point
    found = tuple(_installed(group, name))
    if len(found) > 1:
        packages = ", ".join(sorted(point.package for point in found))
        raise ConfigError(
            f"{name!r} in the group `{group}` is ambiguous: {packages} have it"
        )
    return found[0] if found else None


def has_command(name: str) -> bool:
    """True if an extension has this command. Raises the error of `find`."""
    return find(COMMANDS, name) is not None


def load(point: EntryPoint, what: str, key: Sequence[str] = ()) -> Any:
    """Import the value of an entry point.

    Args:
        what: names the kind of the value in the error, such as `command`.
        key: the key of the configuration that asks for it.

    Raises:
        ConfigError: the import fails.
    """
    try:
        module, _, attributes = point.value.partition(":")
        value: Any = import_module(module)
        for attribute in filter(None, attributes.split(".")):
            value = getattr(value, attribute)
    except Exception as error:
        raise unusable(point, what, repr(error), key) from error
    return value


def unusable(
    point: EntryPoint, what: str, reason: str, key: Sequence[str] = ()
) -> ConfigError:
    """Make the error for an entry point that cannot be used. The arguments are those of `load`."""
    text = f"the {what} {point.name!r} ({point.value}) cannot be used: {reason}"
    return ConfigError(text, key=tuple(key))


def own_points(group: str) -> Sequence[EntryPoint]:
    """List the entry points of the folders in a group, in alphabetical order of the folders."""
    return [point for point in _of_folders() if point.group == group]


def own_texts(name: str) -> Sequence[str]:
    """Read the file of this name in each folder that has one, in alphabetical order."""
    files = sorted(_FOLDERS.glob(f"*/{name}"))
    return [file.read_text(encoding="utf-8") for file in files]


def installed_names(group: str) -> Mapping[str, str]:
    """List the names in a group, in alphabetical order, with the installed package of each.

    The names of the folders are left out.
    """
    own = {point.name for point in own_points(group)}
    points = sorted(_installed(group), key=lambda point: point.name)
    return {point.name: point.package for point in points if point.name not in own}


@cache
def _of_folders() -> Sequence[EntryPoint]:
    points: list[EntryPoint] = []
    for text in own_texts("entry_points.txt"):
        group = ""
        for line in text.splitlines():
            if line.startswith("["):
                group = line.strip("[]")
                continue
            name, is_point, value = line.partition(" = ")
            if is_point:
                points.append(EntryPoint(group, name, value, _PACKAGE))
    return points


def _installed(group: str, name: str | None = None) -> Iterator[EntryPoint]:
    """Yield the entry points of installed packages with this group, and with this name if given."""
    from importlib.metadata import entry_points  # 20 ms

    for point in entry_points(group=group):
        if name in {None, point.name}:
            package = point.module if point.dist is None else point.dist.name
            yield EntryPoint(group, point.name, point.value, package)
