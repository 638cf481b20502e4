"""Copies uncommitted changes from a work tree into a worktree at the same commit."""

from contextlib import AbstractContextManager
from pathlib import Path

from codex_py.patch.git import Git
from codex_py.patch.trees import aside, work_tree


def carry_over(source: Git, root: Path, git: Git, path: Path) -> tuple[str, str]:
    """Copy changed, new and deleted files, and the index. Returns the ids of two trees: the index, and all files.

    The original stays as it is, its index too. Ignored files, changes in submodules and repositories in
    the tree are left out. Files go through git, as those of a commit do.

    Args:
        source: the git for the original, whose top is `root`.
        git: that of the worktree, whose top is `path`.

    Raises:
        CodexError: git fails, as it does while a merge has conflicts.
        OSError: the index cannot be copied.
    """
    with copied_index(source, root, git) as copied:
        staged = copied.output(root, "write-tree")
        files = work_tree(copied, root)
    git = git.without_filters(path)
    git.output(path, "read-tree", "--reset", "-u", files)
    git.output(path, "read-tree", staged)
    # Its exit code says that files differ from the index.
    git.run(path, "update-index", "-q", "--refresh")
    return staged, files


def copied_index(git: Git, top: Path, own: Git) -> AbstractContextManager[Git]:
    """A git whose index is a copy, in the folder of the worktree's git, `own`: git writes to an index when it only
    reads it."""
    within = Path(own.variables["GIT_DIR"])
    return aside(git.without_filters(top), top, keeps_objects=True, within=within)
