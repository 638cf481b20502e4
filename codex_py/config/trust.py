"""Reads and writes `[projects."<path>"]`: whether the user trusts a project."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from codex_py.config.check import dotted
from codex_py.config.edit import Edit, appended, edit_config, edited_values, first_that_fits
from codex_py.config.files import parse_toml
from codex_py.errors import ConfigError

Trust: TypeAlias = Literal["trusted", "untrusted"]

_MAX_GIT_FILE = 4096
"""Bytes; a `.git` file holds one path."""


def trust_level(projects: Mapping[str, Any], cwd: Path, root: Path | None) -> Trust | None:
    """The trust level of a folder in the `projects` table; None if it has no entry.

    An entry for `cwd` itself counts first, then one for the root of its project, then, in a linked git
    worktree, one for the main work tree. Entries may name a folder by any path to it.
    """
    if not projects:
        return None
    levels: dict[str, Trust] = {}
    for name, entry in projects.items():
        if level := entry.get("trust_level"):
            levels[str(Path(name))] = level
            levels.setdefault(_real(name), level)
    folders = [cwd]
    if root is not None:
        folders.append(root)
        if (main := _main_work_tree(root)) is not None:
            folders.append(main)
    for folder in folders:
        for name in (str(folder), _real(folder)):
            if name in levels:
                return levels[name]
    return None


def write_trust(home: Path, root: Path) -> None:
    """Mark a project as trusted in the user's `config.toml`; everything else in it stays.

    Raises:
        ConfigError: the file does not parse, cannot be written, or spells the entry in a way that
            cannot be changed safely; it is then unchanged.
    """
    edit_config(home, lambda text, path: _with_trust(text, path, root))


def _with_trust(text: str, path: Path, root: Path) -> str:
    before = parse_toml(text, path)
    aim: dict[str, Any] | None = None
    match before.get("projects", {}):
        case {**projects} if isinstance(old := projects.get(str(root), {}), dict):
            trusted = {**cast("dict[str, Any]", old), "trust_level": "trusted"}
            aim = {**before, "projects": {**projects, str(root): trusted}}
        case _:
            pass
    if aim == before:
        return text
    entry = dotted(("projects", str(root)))

    def add(document: Any) -> None:
        document["projects"].setdefault(str(root), {})["trust_level"] = "trusted"

    # A person would add a table at the end, and that works for nearly every file.
    edits: list[Edit] = [
        lambda text: appended(text, f'[{entry}]\ntrust_level = "trusted"\n'),
        lambda text: edited_values(text, add),
    ]
    changed = first_that_fits(text, path, aim, edits) if aim else None
    if changed is None:
        raise ConfigError(
            f"{path} cannot be changed automatically; set `{entry}.trust_level` in it by hand"
        )
    return changed


def _main_work_tree(root: Path) -> Path | None:
    """The work tree whose repository a linked worktree shares; None if `root` is no such worktree.

    A checkout can claim to be a worktree of any repository, so the repository must name it too.
    """
    pointer = root / ".git"
    try:
        if not pointer.is_file():
            return None
        git_dir = root / _first_line(pointer).removeprefix("gitdir:").strip()
        if git_dir.parent.name != "worktrees" or git_dir.parent.parent.name != ".git":
            return None
        if _real(_first_line(git_dir / "gitdir").strip()) != _real(pointer):
            return None
    except (OSError, ValueError):
        return None
    return git_dir.parent.parent.parent


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        return file.readline(_MAX_GIT_FILE)


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)
