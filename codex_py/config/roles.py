"""Finds the agent roles that a session can give its children. LIGHT.

They are files of the user and of a trusted project, tables of the configuration, and the built-in
roles. Source of the tables: Codex 0.171.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.config.definition_folders import Folder, role_folders
from codex_py.config.definitions import definitions, read_definition
from codex_py.config.layers import Layer
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import Trusted
from codex_py.config.role_files import Role, markdown_role, toml_role
from codex_py.errors import ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.protocol.frozen import frozen

_MAX_BYTES: Final = 64 * 1024
_STRONG: Final = frozenset(("managed", "command line", "-c"))
"""Layers that are stronger than those of a project."""
_Definition: TypeAlias = tuple[Path, Folder, Mapping[str, Any] | None]
"""The place where a role is defined, and its table `[agents.NAME]`, if it has one."""

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
    """Roles by name, in the order in which the model is told of them; built-in ones last."""
    warnings: tuple[str, ...] = ()
    """Warnings of one sentence each."""


def find_roles(config: Config, environment: Mapping[str, str]) -> Roles:
    """Find all roles of a session; a project's only if it is trusted. No file makes it raise."""
    found: dict[str, Role] = {}
    warnings: list[str] = []
    seen: set[str] = set()
    denials = denials_of(config.files)
    for path, folder, table in _definitions(config, environment, warnings):
        try:
            real = os.path.realpath(path)
            # A table may name a file that is also found in a folder, and the project may lie in the
            # home folder.
            if real in seen or denials.refuses(path):
                continue
            role, lacks = _read(path, folder, table)
        except ConfigError as error:
            reason = str(error).removeprefix("Error loading config.toml: ")
            warnings.append(f"Ignoring malformed agent role definition: {reason}.")
            continue
        if path.is_file():
            # Otherwise the path names a layer, which may define several roles.
            seen.add(real)
        other = found.setdefault(role.name, role)
        if other is not role:
            warnings.append(
                f"The role {role.name!r} is that of {other.source}; that of {path} is not used."
            )
        elif lacks:
            warnings.append(f"The role {role.name!r} of {path} has {lacks}.")
    rest = {role.name: role for role in BUILT_IN if role.name not in found}
    return Roles({**found, **rest}, tuple(warnings))


def _definitions(
    config: Config,
    environment: Mapping[str, str],
    warnings: list[str],
) -> Iterator[_Definition]:
    """Yield all definitions of roles; for each name, the first one wins."""
    tables = list(_tables(config))
    folders = role_folders(config, environment)
    of_project = [folder for folder in folders if folder.origin == "project"]
    others = [folder for folder in folders if folder.origin != "project"]
    yield from (found for layer, found in tables if layer.name in _STRONG)
    if isinstance(config.project_trust, Trusted):
        for folder in of_project:
            settings = folder.path.with_name("config.toml")
            yield from (found for layer, found in tables if layer.path == settings)
            yield from _in_folder(folder, warnings)
    earlier = {*_STRONG, "project"}
    yield from (found for layer, found in tables if layer.name not in earlier)
    for folder in others:
        yield from _in_folder(folder, warnings)


def _tables(config: Config) -> Iterator[tuple[Layer, _Definition]]:
    """Yield the roles of `[agents.NAME]`, each with the strongest layer that defines it."""
    for name, role in config.settings.agents.roles.items():
        table = raw(role)
        if "config_file" in table:
            key = ("agents", name, "config_file")
        else:
            key = ("agents", name)
        layer = next(layer for layer in config.layers.layers if layer.sets(key))
        # A role without a file has the place of its table.
        place = table.get("config_file", layer.where(key))
        path = Path(os.path.normpath(place))
        if layer.name == "project":
            root = folders_between(config.project_root, config.cwd)[0]
            folder = Folder(path.parent, "project", root)
        else:
            folder = Folder(path.parent, "user")
        yield layer, (path, folder, {**table, "name": name})


def _in_folder(folder: Folder, warnings: list[str]) -> Iterator[_Definition]:
    """Yield the files of roles in a folder."""
    if folder.path.parent.name == ".claude":
        names = r"[^.].*\.md"
    else:
        names = r"[^.].*\.(?:md|toml)"
    for path, _ in definitions([folder], names, "roles", warnings):
        yield path, folder, None


def _read(
    path: Path,
    folder: Folder,
    table: Mapping[str, Any] | None,
) -> tuple[Role, str]:
    """Read a role; the result and the errors are those of `toml_role`."""
    if table is not None and "config_file" not in table:
        return toml_role("", path, table)
    if folder.root is not None and not path.is_relative_to(folder.root):
        raise ConfigError(f"{path}: it is outside of the project")
    text = read_definition(path, folder, _MAX_BYTES)
    if table is not None or path.suffix != ".md":
        role, lacks = toml_role(text, path, table)
    else:
        role, lacks = markdown_role(text, path)
    return replace(role, name=f"{folder.prefix}{role.name}"), lacks
