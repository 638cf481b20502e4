"""Finds the folders of a git repository from its `.git`, without starting git. LIGHT.

The author of the files may have put anything there, such as a named pipe. Source of the layout:
gitrepository-layout(5), git-worktree(1).
"""

import os
from collections.abc import Mapping
from pathlib import Path

from codex_py.filesystem.reading import read_whole

_MAX_POINTER_BYTES = 8192
_OF_ONE_TREE = (
    "ALTERNATE_OBJECT_DIRECTORIES",
    "COMMON_DIR",
    "CONFIG",
    "CONFIG_PARAMETERS",
    "DIR",
    "GRAFT_FILE",
    "IMPLICIT_WORK_TREE",
    "INDEX_FILE",
    "INTERNAL_SUPER_PREFIX",
    "NAMESPACE",
    "NO_REPLACE_OBJECTS",
    "OBJECT_DIRECTORY",
    "PREFIX",
    "QUARANTINE_PATH",
    "REPLACE_REF_BASE",
    "SHALLOW_FILE",
    "WORK_TREE",
)
"""The variables of `git rev-parse --local-env-vars`, without `GIT_`. CONFIG_COUNT is left out,
because CI sets it for all repositories."""


def for_another_tree(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that lead git to one repository or index. git sets them for its hooks."""
    local = {f"GIT_{name}" for name in _OF_ONE_TREE}
    return {name: value for name, value in environment.items() if name not in local}


def find_dot_git(cwd: Path) -> Path | None:
    """The nearest `.git` of a folder and its parents. Like git, this ignores a `.git` that is
    neither folder nor file."""
    for folder in (cwd, *cwd.parents):
        place = folder / ".git"
        if place.is_dir() or place.is_file():
            return place
    return None


def git_folder(dot_git: Path) -> Path:
    """The folder of a repository: its `.git`, or the folder that this file names, as in a worktree or a submodule.

    Raises:
        OSError, ValueError: the file cannot be read, or names no folder.
    """
    if dot_git.is_file():
        return named_path(dot_git, "gitdir:")
    return dot_git


def common_folder(folder: Path) -> Path:
    """The folder that the worktrees of a repository share, from the folder of one of them; raises as `git_folder`."""
    pointer = folder / "commondir"
    if pointer.exists():
        return named_path(pointer)
    return folder


def named_path(pointer: Path, prefix: str = "") -> Path:
    """The path in a file of git, which may be relative to it; raises as `git_folder`. `pointer`: absolute."""
    text = os.fsdecode(read_whole(pointer, _MAX_POINTER_BYTES)).strip()
    if not text.startswith(prefix):
        raise ValueError(f"{pointer} does not begin with {prefix!r}")
    return pointer.parent / text.removeprefix(prefix).strip()


def main_work_tree(root: Path) -> Path | None:
    """The work tree whose repository the linked worktree `root` shares; None for any other `root`.

    A checkout can claim to be a worktree of any repository, so the repository must name it too.
    """
    pointer = root / ".git"
    try:
        if not pointer.is_file():
            return None
        git_dir = git_folder(pointer)
        if git_dir.parent.name != "worktrees":
            return None
        if os.path.realpath(named_path(git_dir / "gitdir")) != os.path.realpath(
            pointer
        ):
            return None
        common = git_dir.parent.parent
        if common.name == ".git":
            return common.parent
        return _submodule_tree(common)
    except (OSError, ValueError):
        return None


def _submodule_tree(folder: Path) -> Path | None:
    """The work tree of a submodule, from the folder of its repository; raises as `git_folder`."""
    text = os.fsdecode(read_whole(folder / "config", _MAX_POINTER_BYTES))
    named = ""
    for line in text.splitlines():
        name, _, path = line.partition("=")
        if name.strip() == "worktree":
            named = path.strip()
            break
    tree = Path(os.path.normpath(folder / named))
    its_folder = git_folder(tree / ".git")
    is_its = os.path.realpath(its_folder) == os.path.realpath(folder)
    if named and is_its:
        return tree
    return None
