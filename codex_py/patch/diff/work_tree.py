"""Compare a work tree with its last commit, new files included.

Files are compared as the bytes they are: git's own comparison would run the filters that a repository
names. See `codex_py.patch.git`.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.modes import kind_of, written_mode
from codex_py.patch.git import Git
from codex_py.protocol.patched_file import PatchedFile

MAX_FILES = 500
_MAX_BYTES = 1_000_000
"""Of a file; the contents of a larger one are not read."""
_CHANGED = ("diff-index", "-z", "--ignore-submodules=dirty", "HEAD")
"""Changes inside submodules are left out: git would run the filters of the submodule to find them."""


def work_tree_diff(git: Git, root: Path) -> str:
    """The difference in git's format, for people; empty where there is none. Takes and raises what `work_tree_changes`
    does."""
    changes, unread = work_tree_changes(git, root)
    named = (f"Not shown, because it is too large or cannot be read: {name}\n" for name in unread)
    return git_diff(changes, root) + "".join(named)


def work_tree_changes(git: Git, root: Path) -> tuple[list[PatchedFile], list[str]]:
    """The changed files, and the names of those that changed too, but are large or cannot be read.

    Args:
        root: the top of the work tree, absolute.

    Raises:
        CodexError: it is no work tree, or more than `MAX_FILES` files differ.
    """
    git = git.without_filters(root)
    has_commit = git.run(root, "rev-parse", "--verify", "-q", "HEAD").returncode == 0
    new = git.names(root, "ls-files", "-z", "--others", "--exclude-standard")
    modes: dict[str, tuple[int, int]] = {}
    if has_commit:
        fields = iter(git.names(root, *_CHANGED))
        for modes_and_ids, name in zip(fields, fields, strict=True):
            old_mode, new_mode, *_ = modes_and_ids[1:].split()
            modes[name] = int(old_mode, 8), int(new_mode, 8)
    else:
        new += git.names(root, "ls-files", "-z")
    for name in new:
        with suppress(OSError):
            modes[name] = modes.get(name, (0, 0))[0], (root / name).lstat().st_mode
    if len(modes) > MAX_FILES:
        raise CodexError(f"{len(modes)} files differ from the last commit", code="too_many_files")
    changes: list[PatchedFile] = []
    unread: list[str] = []
    for name, (old_mode, new_mode) in sorted(modes.items()):
        try:
            new_bytes = _present(root / name) if kind_of(new_mode) in {"file", "link"} else None
        except OSError:
            unread.append(name)
            continue
        old_bytes = _committed(git, root, name) if kind_of(old_mode) in {"file", "link"} else None
        if (
            old_bytes is None
            or new_bytes is None
            or written_mode(old_mode) != written_mode(new_mode)
        ):
            is_changed = old_bytes is not None or new_bytes is not None
        else:
            # A checkout may have other line endings than what was committed.
            is_changed = old_bytes not in (new_bytes, new_bytes.replace(b"\r\n", b"\n"))
        if is_changed:
            changes.append(
                PatchedFile.of(
                    root / name,
                    old_bytes,
                    new_bytes,
                    old_mode=None if old_bytes is None else old_mode,
                    new_mode=None if new_bytes is None else new_mode,
                )
            )
    return changes, unread


def _committed(git: Git, root: Path, name: str) -> bytes | None:
    done = git.run(root, "cat-file", "blob", f"HEAD:{name}")
    return done.stdout if done.returncode == 0 else None


def _present(path: Path) -> bytes:
    """The contents of a file, or the target of a link. Raises an `OSError` if they cannot be read or are too large."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    if path.stat().st_size > _MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return path.read_bytes()
