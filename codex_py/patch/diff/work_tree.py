"""Compares a work tree with its last commit, new files included."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.git import Git
from codex_py.patch.trees import aside, empty_tree, files_between, work_tree
from codex_py.protocol.patched_file import PatchedFile

MAX_FILES = 500
_MAX_BYTES = 1_000_000
"""The size limit of a file; the contents of a larger one are not read."""


def work_tree_diff(
    git: Git, root: Path, refuses: Callable[[str], bool] = lambda _: False
) -> str:
    """Return the difference in git's format, for people; empty if nothing differs.

    Arguments and errors are those of `work_tree_changes`.
    """
    changes, unread = work_tree_changes(git, root, refuses)
    text = git_diff(changes, root)
    for name in unread:
        text += f"Not shown, because it is too large or cannot be read: {name}\n"
    return text


def work_tree_changes(
    git: Git, root: Path, refuses: Callable[[str], bool] = lambda _: False
) -> tuple[list[PatchedFile], list[str]]:
    """Return the changed files, and the names of those that changed too, but were not read.

    A file is not read if it is large, if that is refused, or if it cannot be read.

    Args:
        root: the top of the work tree, absolute.
        refuses: tells whether an absolute path must not be read.

    Raises:
        CodexError: `root` is not a work tree, or more than `MAX_FILES` files differ.
    """
    unread: dict[str, bool] = {}
    """True for each changed file that is not read."""

    def is_unread(name: str) -> bool:
        """Called for every file that differs, so it counts them as well."""
        if name not in unread:
            unread[name] = refuses(f"{root}/{name}") or _is_unreadable(root / name)
        if len(unread) > MAX_FILES:
            reason = f"more than {MAX_FILES} files differ from the last commit"
            raise CodexError(reason, code="too_many_files")
        return unread[name]

    # A copy of the index: comparing must not change the repository.
    with aside(git.without_filters(root)) as apart:
        head = apart.run(root, "rev-parse", "--verify", "-q", "HEAD")
        if head.returncode == 0:
            old = "HEAD"
        else:
            old = empty_tree(apart, root)
        new = work_tree(apart, root, is_unread)
        files = files_between(apart, root, old, new, is_unread)
    return files, sorted(name for name, value in unread.items() if value)


def _is_unreadable(path: Path) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError):
        is_large = path.lstat().st_size > _MAX_BYTES
        is_readable = path.is_symlink() or os.access(path, os.R_OK)
        return is_large or not is_readable
    return False
