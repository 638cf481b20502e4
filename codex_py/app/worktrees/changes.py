"""Copies uncommitted changes from a work tree into a worktree at the same commit."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from codex_py.patch.git import Git
from codex_py.patch.trees import work_tree


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


@contextmanager
def copied_index(git: Git, top: Path, own: Git) -> Generator[Git]:
    """A git whose index is a copy: git writes to an index when it only reads it. `own`: the git of the worktree."""
    index = Path(own.variables["GIT_DIR"], "codex-py-index")
    # With its time: git compares the contents of files that are not older.
    shutil.copy2(top / git.output(top, "rev-parse", "--git-path", "index"), index)
    git = git.without_filters(top)
    try:
        yield replace(git, variables={**git.variables, "GIT_INDEX_FILE": str(index)})
    finally:
        index.unlink()
