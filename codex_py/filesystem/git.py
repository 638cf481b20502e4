"""Finds the folders of a git repository from its `.git`, without starting git. LIGHT.

The author of a repository may have put anything there, such as a named pipe. Source of the layout:
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
"""The variables of `git rev-parse --local-env-vars`, without their prefix `GIT_`. `CONFIG_COUNT` is
left out, because CI sets it for all repositories."""


def for_another_tree(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that lead git to a certain repository or index.

    Git sets such variables for its hooks.
    """
    local = {f"GIT_{name}" for name in _OF_ONE_TREE}
    return {name: value for name, value in environment.items() if name not in local}


def find_dot_git(cwd: Path) -> Path | None:
    """The nearest `.git` of a folder and its parents; None if there is none.

    Like git, this ignores a `.git` that is neither a folder nor a file.
    """
    for folder in (cwd, *cwd.parents):
        place = folder / ".git"
        if place.is_dir() or place.is_file():
            return place
    return None


def git_folder(dot_git: Path) -> Path:
    """The folder of a repository, from its `.git`.

    In a worktree or a submodule, `.git` is a file that names the folder.

    Raises:
        OSError, ValueError: the file cannot be read, or names no folder.
    """
    if dot_git.is_file():
        return named_path(dot_git, "gitdir:")
    return dot_git


def common_folder(folder: Path) -> Path:
    """The folder that the worktrees of a repository share. Raises as `git_folder`.

    Args:
        folder: the `git_folder` of one of the worktrees.
    """
    pointer = folder / "commondir"
    if pointer.exists():
        return named_path(pointer)
    return folder


def named_path(pointer: Path, prefix: str = "") -> Path:
    """The path that a file of git names, made absolute. Raises as `git_folder`.

    Args:
        pointer: the absolute path of the file.
        prefix: the text that stands before the path.
    """
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
        claimed = named_path(git_dir / "gitdir")
        if not _is_same(claimed, pointer):
            return None
        common = git_dir.parent.parent
        if common.name == ".git":
            return common.parent
        return _submodule_tree(common)
    except (OSError, ValueError):
        return None


def _submodule_tree(folder: Path) -> Path | None:
    """The work tree of a submodule, if it names this repository too; raises as `git_folder`.

    Args:
        folder: the folder of the repository.
    """
    text = os.fsdecode(read_whole(folder / "config", _MAX_POINTER_BYTES))
    named = ""
    for line in text.splitlines():
        name, _, path = line.partition("=")
        if name.strip() == "worktree":
            named = path.strip()
            break
    if not named:
        return None
    tree = Path(os.path.normpath(folder / named))
    if _is_same(git_folder(tree / ".git"), folder):
        return tree
    return None


def _is_same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)
