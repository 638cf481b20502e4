"""Reads and writes `[projects."<path>"]`: whether the user trusts a project."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.config.edit import set_in_config

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
    set_in_config(home, ("projects", str(root), "trust_level"), "trusted")


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
