"""Compare a work tree with its last commit, new files included.

Files are compared as the bytes they are: git's own comparison would run the filters that a repository
names. See `codex_py.patch.git`.
"""

import os
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.git import Git
from codex_py.protocol.patched_file import PatchedFile

MAX_FILES = 500
_MAX_BYTES = 1_000_000
"""Of a file; a larger one is only named."""
_CHANGED = ("diff-index", "-z", "--name-only", "--ignore-submodules=dirty", "HEAD")
"""What changed in a submodule is told by another git, which would run the submodule's filters."""


def work_tree_diff(git: Git, root: Path) -> str:
    """The difference, in git's format; empty where there is none.

    Args:
        root: the top of the work tree, absolute.

    Raises:
        CodexError: it is no work tree, or more than `MAX_FILES` files differ.
    """
    git = git.without_filters(root)
    has_commit = git.run(root, "rev-parse", "--verify", "-q", "HEAD").returncode == 0
    words = _CHANGED if has_commit else ("ls-files", "-z")
    changed = git.names(root, *words)
    new = git.names(root, "ls-files", "-z", "--others", "--exclude-standard")
    names = sorted({*changed, *new})
    if len(names) > MAX_FILES:
        raise CodexError(f"{len(names)} files differ from the last commit", code="too_many_files")
    changes: list[PatchedFile] = []
    for name in names:
        old = _committed(git, root, name) if has_commit else None
        new_bytes = _present(root / name)
        # A checkout may have other line endings than what was committed.
        if old != new_bytes and (old or b"") != (new_bytes or b"").replace(b"\r\n", b"\n"):
            changes.append(PatchedFile.of(root / name, old, new_bytes))
    return git_diff(changes, root)


def _committed(git: Git, root: Path, name: str) -> bytes | None:
    done = git.run(root, "cat-file", "blob", f"HEAD:{name}")
    return done.stdout if done.returncode == 0 else None


def _present(path: Path) -> bytes | None:
    try:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        if not path.is_file():
            return None
        if (size := path.stat().st_size) > _MAX_BYTES:
            return f"({size} bytes)\n".encode()
        return path.read_bytes()
    except OSError:
        return None
