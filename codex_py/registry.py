"""Finds what extensions add to this program: entry points, by group and name.

A folder of `codex_py/extensions` and an installed package add to it in the same way. The folder has
the file `entry_points.txt`, in the form in which an installer writes one for a package. The folders
come first, so an installed package replaces nothing of theirs.

Nothing of an extension is imported here. Reading the metadata of all installed packages takes 20 ms
and more, so it is read only where somebody asks for a name that no folder has. The form of a value is
in https://packaging.python.org/specifications/entry-points/.
"""

import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from codex_py.errors import CodexError, ConfigError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# Groups are named as modules are, but are none.
_OURS: Final = "codex_py"
COMMANDS: Final = f"{_OURS}.commands"
"""Subcommands, and members of groups of the program's own: `GROUP.MEMBER`; see `api.commands`."""
EXTENSIONS: Final = f"{_OURS}.extensions"
"""Features of sessions; see `api.extensions`."""
FAILURES: Final = f"{_OURS}.failures"
"""Values of `--fail-on`; see `api.options`."""
OPTIONS: Final = f"{_OURS}.options"
"""Options of sessions, without their dashes; see `api.options`."""
OPTION_VALUES: Final = f"{_OURS}.option_values"
"""Functions that take values of the program's own options, by the option; see `api.options`."""
REPORTS: Final = f"{_OURS}.reports"
"""Reports of `exec` for a CI service, named as the variable that asks for it; see `api.reports`."""
REVIEWERS: Final = f"{_OURS}.reviewers"
"""Values of `approvals_reviewer`, which decide approvals in place of the user; see `api.approvals`."""
REVIEW_FORMATS: Final = f"{_OURS}.review_formats"
"""Values of `review --format`; see `api.reviews`."""
SLASH_COMMANDS: Final = f"{_OURS}.slash_commands"
"""Commands of the terminal, without their slashes; see `api.slash_commands`."""
TABLES: Final = f"{_OURS}.tables"
"""Tables of the configuration; see `api.tables`."""
WIRES: Final = f"{_OURS}.wires"
"""API formats of models; see `api.wires`."""

_FOLDERS: Final = Path(__file__).with_name("extensions")
_PACKAGE: Final = "codex-py"
"""The package of the folders, in messages."""
_VALUE: Final = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[.*\]\s*)?")
"""A module, perhaps an attribute, and perhaps the extras that it needs."""


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


def load(point: EntryPoint, what: str, key: Sequence[str] = ()) -> Any:
    """Import the value of an entry point.

    Args:
        what: names the kind of the value in the error, such as `command`.
        key: the key of the configuration that asks for it.

    Raises:
        ConfigError: the value has another form, or the import fails.
    """
    parts = _VALUE.fullmatch(point.value)
    if parts is None:
        raise unusable(point, what, "it is not of the form `module:attribute`", key)
    attributes = (parts[2] or "").split(".")
    with failures_named(point, what, key):
        value: Any = import_module(parts[1])
        for attribute in filter(None, attributes):
            value = getattr(value, attribute)
    return value


@contextmanager
def failures_named(
    point: EntryPoint, what: str, key: Sequence[str] = (), hint: str = ""
) -> Generator[None]:
    """Turn a failure of an entry point into a `ConfigError` that names it.

    So a package that calls `sys.exit` does not end the run, and its code does not count for it.

    Args:
        what: see `load`, and `key` as well.
        hint: follows the text of a bug.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except CodexError as error:
        raise unusable(point, what, str(error), key) from error
    except BaseException as error:
        raise unusable(point, what, description(error) + hint, key) from error


def description(error: BaseException) -> str:
    """The `repr` of an exception of a package; its class alone if it has a broken `__repr__`."""
    try:
        return repr(error)
    except Exception:  # noqa: BLE001 - of foreign code
        return type(error).__name__


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
        points += _read(text, _PACKAGE)
    return points


def _installed(group: str, name: str | None = None) -> Iterator[EntryPoint]:
    """Yield the entry points of installed packages with this group, and with this name if given."""
    for point in _of_packages(tuple(sys.path)):
        if point.group == group and name in {None, point.name}:
            yield point


@cache
def _of_packages(_path: Sequence[str]) -> Sequence[EntryPoint]:
    """Read the entry points of all packages, once for all questions. `_path`: `sys.path`, where they are."""
    points: list[EntryPoint] = []
    for package, text in _installed_texts():
        points += _read(text, package)
    return points


def _installed_texts() -> Iterator[tuple[str, str]]:
    """Yield the name of each installed package that extends this program, and its entry points.

    If a package is there twice, the first one on `sys.path` counts, as in an import. Packages without
    a name are skipped: an interrupted installation leaves their folders behind. So are those whose
    name cannot be shown.
    """
    from importlib.metadata import distribution, distributions  # 20 ms

    names: set[str] = set()
    for found in distributions():
        try:
            if _OURS not in _text(found):
                continue
            name = _name(found)
            same = re.sub(r"[-_.]+", "-", name).lower()
            if not name or not name.isprintable() or same in names:
                continue
            names.add(same)
            first = distribution(name)
            text = _text(first if _name(first) else found)
        except Exception:  # noqa: BLE001 - its files are foreign, and each version of Python fails in another way
            continue
        yield name, text


def _text(package: "Distribution") -> str:
    """Read the entry points of a package. They are empty if it has none."""
    return package.read_text("entry_points.txt") or ""


def _name(package: "Distribution") -> str:
    """Read the name of a package. It is empty if the package says none."""
    return package.metadata["Name"] or ""


def _read(text: str, package: str) -> Iterator[EntryPoint]:
    """Yield the entry points in a file. Lines of another form are skipped.

    So are those that move the cursor of a terminal, which shows the names.
    """
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[] ")
        elif line.isprintable() and not line.startswith(("#", ";", "=")):
            name, equals, value = line.partition("=")
            if equals:
                yield EntryPoint(group, name.strip(), value.strip(), package)
