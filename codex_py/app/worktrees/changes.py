"""Copies what is not committed from a work tree into a worktree, which is at the same commit."""

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from codex_py.patch.git import Git


def carry_over(source: Git, root: Path, git: Git, path: Path) -> None:
    """Copy changed, new and deleted files, with their modes, and the index.

    The original stays as it is, its index too. Ignored files, changes in submodules and repositories in
    the tree are left out.

    Args:
        source: the git for the original, whose top is `root`.
        git: that of the worktree, whose top is `path`.

    Raises:
        CodexError: git fails, as it does while a merge has conflicts.
        OSError: a file cannot be copied.
    """
    folder = Path(git.variables["GIT_DIR"])
    copied = folder / "codex-py-index"
    shutil.copyfile(root / source.output(root, "rev-parse", "--git-path", "index"), copied)
    try:
        # git writes to an index when it only reads it.
        source = _with_index(source.without_filters(root), copied)
        staged = source.output(root, "write-tree")
        names = {
            *source.names(root, "diff-index", "-z", "--name-only", "--cached", "HEAD"),
            *source.names(root, "diff-files", "-z", "--name-only", "--ignore-submodules=all"),
            *source.names(root, "ls-files", "-z", "--others", "--exclude-standard"),
        }
    finally:
        copied.unlink()
    # A folder comes before what was in it.
    for name in sorted(names):
        _copy(root, path, name)
    git = git.without_filters(path)
    git.output(path, "read-tree", staged)
    # Its exit code says that files differ from the index.
    git.run(path, "update-index", "-q", "--refresh")


def snapshot(git: Git, path: Path) -> str:
    """The id of a tree with all files of a worktree but the ignored ones. Its index stays as it is. Raises as `carry_over`."""
    folder = Path(git.variables["GIT_DIR"])
    copied = folder / "codex-py-index"
    shutil.copyfile(folder / "index", copied)
    try:
        git = _with_index(git.without_filters(path), copied)
        git.output(path, "add", "--all")
        return git.output(path, "write-tree")
    finally:
        copied.unlink()


def _with_index(git: Git, index: Path) -> Git:
    return replace(git, variables={**git.variables, "GIT_INDEX_FILE": str(index)})


def _copy(root: Path, path: Path, name: str) -> None:
    target = path / name
    if _is_behind_link(path, name):
        # The link has just been copied: nothing that is behind it is in the repository any more.
        return
    mode = 0
    if not _is_behind_link(root, name):
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = (root / name).lstat().st_mode
    if target.is_dir() and not target.is_symlink():
        if stat.S_ISDIR(mode):
            # A submodule.
            return
        shutil.rmtree(target)
    with suppress(FileNotFoundError, NotADirectoryError):
        target.unlink()
    if stat.S_ISLNK(mode):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(root / name))  # noqa: PTH115 - a path would lose a slash at its end
    elif stat.S_ISREG(mode):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target, follow_symlinks=False)
        target.chmod(stat.S_IMODE(mode) & 0o777)


def _is_behind_link(top: Path, name: str) -> bool:
    return any((top / folder).is_symlink() for folder in Path(name).parents)
