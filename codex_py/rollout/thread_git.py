"""The commit, branch and remote of a thread, which a client may change, as in Codex.

A file in the classic format gets a further line of type `session_meta`, of which the last one
counts. Of threads with numbered lines, Codex keeps a change in its database alone.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from codex_py.errors import SessionError
from codex_py.protocol.json_fields import as_object, object_field
from codex_py.protocol.messages import decode_json
from codex_py.rollout.codex_database import ask_codex, tell_codex
from codex_py.rollout.git_info import without_user
from codex_py.rollout.lines import lines_with
from codex_py.rollout.records import SessionMeta, home_of, line, session_lines
from codex_py.rollout.writer import ThreadLock

_MARK: Final = b'"session_meta"'
_ASKED: Final = "SELECT git_sha, git_branch, git_origin_url FROM threads WHERE id = ?"
_CHANGED: Final = (
    "UPDATE threads SET git_sha = ?, git_branch = ?, git_origin_url = ? WHERE id = ?"
)
_NAMES: Final = ("commit_hash", "branch", "repository_url")
_ADVICE: Final = "; change it there, or wait until that one has ended"


def git_of(
    path: Path,
    meta: SessionMeta,
    max_bytes: int | None = None,
) -> Mapping[str, str]:
    """Read `commit_hash`, `branch` and `repository_url` of a thread, as far as they are known.

    Args:
        meta: the first line of the file.
        max_bytes: a longer file is not searched for changes.

    Raises:
        SessionError: the file cannot be read.
    """
    if meta.native:
        row = ask_codex(home_of(path), _ASKED, meta.id)
        if row is None:
            return meta.git
        return {
            name: str(value) for name, value in zip(_NAMES, row, strict=True) if value
        }
    with session_lines(path) as (_, file):
        if max_bytes is not None and os.fstat(file.fileno()).st_size > max_bytes:
            return meta.git
        for _, raw in lines_with(_MARK, file):
            try:
                found = SessionMeta.from_line(raw)
            except (ValueError, RecursionError):
                continue
            if found.id == meta.id:
                return found.git
    return meta.git


def change_git(
    path: Path,
    changes: Mapping[str, str | None],
    *,
    is_ours: bool,
) -> None:
    """Change the git information of a thread.

    Args:
        changes: new values by the names of `git_of`; None removes a value.
        is_ours: True if this process has the thread open, and so its lock.

    Raises:
        SessionError: the file cannot be read or written, another process has the thread open, or
            Codex's database does not have it.
    """
    home = home_of(path)
    with session_lines(path) as (meta, file):
        file.seek(0)
        first = as_object(decode_json(file.readline()))
    with ExitStack() as stack:
        if not is_ours:
            stack.callback(ThreadLock(home, meta.id, _ADVICE).release)
        git: dict[str, str] = dict(git_of(path, meta))
        for name, value in changes.items():
            git.pop(name, None)
            if value is not None:
                git[name] = without_user(value)
        if not meta.native:
            payload = {**object_field(first, "payload"), "git": git}
            _append(path, line("session_meta", payload))
        row = [git.get(name) for name in _NAMES]
        has_changed = tell_codex(home, _CHANGED, *row, meta.id)
    if meta.native and not has_changed:
        raise SessionError(
            f"session {meta.id} was written by Codex, whose database does not have it"
        )


def _append(path: Path, data: bytes) -> None:
    """Append a line, at once: the session that has the file open may append, too."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data
            os.write(fd, data)
        finally:
            os.close(fd)
    except OSError as error:
        raise SessionError(
            f"the session file {path} cannot be written: {error.strerror}"
        ) from error
