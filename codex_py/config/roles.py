"""Finds the agent roles that a session can give its children: files of the user and of a trusted project, tables of the
configuration, and the built-in ones. LIGHT.

Source of the folders and tables: Codex 0.169, and Claude Code for Markdown files.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from codex_py.config.config import Config
from codex_py.config.layers import Layer
from codex_py.config.paths import folders_between, user_home
from codex_py.config.project_trust import Trusted
from codex_py.config.role_files import BadRole, Role, markdown_role, toml_role
from codex_py.filesystem.ordinary import read_whole
from codex_py.protocol.frozen import frozen

_MAX_BYTES: Final = 64 * 1024
_MAX_ENTRIES: Final = 500
"""Of one folder."""
_STRONG: Final = frozenset(("managed", "command line", "-c"))
"""Layers above those of a project."""
_Read: TypeAlias = tuple[Path, Callable[[], tuple[Role, str]]]
"""Where a role is defined, and what reads it, see `toml_role`."""

BUILT_IN: Final = (
    Role("default", "The agent as you are, for work of any kind."),
    Role(
        "explorer",
        "Answers a specific question about the code. Ask several in parallel, and trust their answers.",
    ),
    Role(
        "worker",
        "Carries out a part of the work, such as a fix or a feature. Tell it which files are its own, and that others"
        " are working in the same folder.",
    ),
)


@frozen
class Roles:
    found: Mapping[str, Role]
    """By name, in the order in which the model is told of them; built-in ones last."""
    warnings: tuple[str, ...] = ()
    """One sentence each."""


def find_roles(config: Config, environment: Mapping[str, str]) -> Roles:
    """All roles of a session; those of a project only if it is trusted. Never raises because of a file."""
    found: dict[str, Role] = {}
    warnings: list[str] = []
    seen: set[str] = set()
    for path, read in _definitions(config, environment):
        # A table may name a file that is found too, and the project may lie in the home folder.
        if (real := os.path.realpath(path)) in seen:
            continue
        try:
            role, lacks = read()
        except (BadRole, OSError, UnicodeError) as error:
            reason = f"{path}: {error.strerror}" if isinstance(error, OSError) else error
            if isinstance(error, UnicodeError):
                reason = f"{path} is not UTF-8 text"
            warnings.append(f"Ignoring malformed agent role definition: {reason}.")
            continue
        seen.add(real)
        if (other := found.setdefault(role.name, role)) is not role:
            warnings.append(
                f"The role {role.name!r} is that of {other.source}; that of {path} is not used."
            )
        elif lacks:
            warnings.append(f"The role {role.name!r} of {path} has {lacks}.")
    rest = {role.name: role for role in BUILT_IN if role.name not in found}
    return Roles({**found, **rest}, tuple(warnings))


def _definitions(config: Config, environment: Mapping[str, str]) -> Iterator[_Read]:
    """All definitions of roles. The first of a name wins."""
    root, *_ = folders = folders_between(config.project_root, config.cwd)
    tables = list(_tables(config, root))
    yield from (read for layer, read in tables if layer.name in _STRONG)
    if isinstance(config.project_trust, Trusted):
        for folder in reversed(folders):
            settings = folder / ".codex" / "config.toml"
            yield from (read for layer, read in tables if layer.path == settings)
            yield from _in_folder(folder / ".codex" / "agents", root)
            yield from _in_folder(folder / ".claude" / "agents", root, toml=False)
    yield from (read for layer, read in tables if layer.name not in {*_STRONG, "project"})
    yield from _in_folder(config.home / "agents")
    yield from _in_folder(user_home(environment) / ".claude" / "agents", toml=False)
    for plugin in config.plugins:
        for path, text in plugin.agents.items():
            yield path, partial(_of_plugin, plugin.name, text, path)


def _of_plugin(plugin: str, text: str, path: Path) -> tuple[Role, str]:
    role, note = (markdown_role if path.suffix == ".md" else toml_role)(text, path)
    return replace(role, name=f"{plugin}:{role.name}"), note


def _tables(config: Config, root: Path) -> Iterator[tuple[Layer, _Read]]:
    """The roles of `[agents.NAME]`, each with the layer that counts. `root`: of the project."""
    agents: Mapping[str, Any] = config.values.get("agents", {})
    tables = {name: cast("dict[str, Any]", t) for name, t in agents.items() if isinstance(t, dict)}
    for name, table in tables.items():
        key = ("agents", name, "config_file") if "config_file" in table else ("agents", name)
        layer = next(layer for layer in config.layers.layers if layer.sets(key))
        path = Path(os.path.normpath(table.get("config_file", layer.where(key))))
        within = root if layer.name == "project" else None
        yield layer, (path, partial(_declared, path, within, {**table, "name": name}))


def _declared(path: Path, root: Path | None, table: Mapping[str, Any]) -> tuple[Role, str]:
    if "config_file" not in table:
        return toml_role("", path, table)
    if root is not None and not path.is_relative_to(root):
        raise BadRole(f"{path}: it is outside of the project")
    return toml_role(_file_text(path, root), path, table)


def _in_folder(folder: Path, root: Path | None = None, *, toml: bool = True) -> Iterator[_Read]:
    """The files of a folder, by name. `root`: that of the project, out of which no link may lead."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MAX_ENTRIES))
    except OSError:
        return
    for path in (folder / name for name in names if not name.startswith(".")):
        if path.suffix == ".md":
            yield path, partial(_read, markdown_role, path, root)
        elif toml and path.suffix == ".toml":
            yield path, partial(_read, toml_role, path, root)


def _read(
    parse: Callable[[str, Path], tuple[Role, str]], path: Path, root: Path | None
) -> tuple[Role, str]:
    return parse(_file_text(path, root), path)


def _file_text(path: Path, root: Path | None) -> str:
    return read_whole(path, _MAX_BYTES, root=root).decode("utf-8-sig")
