"""Finds the folders of a git repository from its `.git`, without starting git. LIGHT.

Whoever made the files may have put anything there, such as a named pipe. Source of the layout:
gitrepository-layout(5), git-worktree(1).
"""

import os
from pathlib import Path

from codex_py.filesystem.ordinary import read_whole

_MAX_POINTER_BYTES = 8192


def find_dot_git(cwd: Path) -> Path | None:
    """The nearest `.git` of a folder and its parents; as git does, this ignores one that is neither folder nor file."""
    places = (folder / ".git" for folder in (cwd, *cwd.parents))
    return next((place for place in places if place.is_dir() or place.is_file()), None)


def git_folder(dot_git: Path) -> Path:
    """The folder of a repository: its `.git`, or the folder that this file names, as in a worktree or a submodule.

    Raises:
        OSError, ValueError: the file cannot be read, or names no folder.
    """
    return named_path(dot_git, "gitdir:") if dot_git.is_file() else dot_git


def common_folder(folder: Path) -> Path:
    """The folder that the worktrees of a repository share, from the folder of one of them; raises as `git_folder`."""
    pointer = folder / "commondir"
    return named_path(pointer) if pointer.exists() else folder


def named_path(pointer: Path, prefix: str = "") -> Path:
    """The path in a file of git, which may be relative to it; raises as `git_folder`. `pointer`: absolute."""
    text = os.fsdecode(read_whole(pointer, _MAX_POINTER_BYTES)).strip()
    if not text.startswith(prefix):
        raise ValueError(f"{pointer} does not begin with {prefix!r}")
    return pointer.parent / text.removeprefix(prefix).strip()
