"""Archives, restores and deletes sessions as Codex does, each with its subagents.

The archive is the folder `archived_sessions` of the home. All these threads are locked for the time,
so that none is in use. The session itself comes last: if the work is interrupted, the same command
completes it.

Codex finds sessions by the paths in its SQLite database, and 0.169 would report a moved session as
missing. So the database is changed too.
"""

import os
import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from codex_py.errors import SessionError
from codex_py.filesystem.private import make_private
from codex_py.rollout.codex_database import tell_codex
from codex_py.rollout.index import files_of_thread, forget_name, metas_with
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS
from codex_py.rollout.writer import ThreadLock

_DATE = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")
_MOVED = (
    "UPDATE threads SET rollout_path = ?, archived = ?, archived_at = ? WHERE id = ?"
)


def archive(home: Path, thread_id: str) -> None:
    """Move a session to the archive.

    Raises:
        SessionError: it is in use, or a file cannot be moved.
    """
    with _family(home, thread_id, SESSIONS) as members:
        for member, paths in members.items():
            for path in paths:
                place = home / ARCHIVED_SESSIONS / path.name
                _move(
                    home,
                    member,
                    path,
                    place,
                    archived_at=int(time.time()),
                )


def unarchive(home: Path, thread_id: str) -> None:
    """Move a session back, and make it the most recent one. Raises the same as `archive`."""
    with _family(home, thread_id, ARCHIVED_SESSIONS) as members:
        for member, paths in members.items():
            for path in paths:
                date = _DATE.match(path.name)
                assert date is not None
                place = home / SESSIONS / "/".join(date.groups()) / path.name
                _move(home, member, path, place)
                os.utime(place)


def delete(home: Path, thread_id: str) -> None:
    """Delete a session.

    Raises:
        SessionError: the session is in use, another one begins with a part of it, or a file cannot be removed.
    """
    with _family(home, thread_id, SESSIONS, ARCHIVED_SESSIONS) as members:
        for other in metas_with(home, b'"history_base"'):
            if other.history_base is None or other.id in members:
                continue
            original, _ = other.history_base
            if original in members:
                raise SessionError(
                    f"session {original} cannot be deleted: session {other.id} begins with a part of it;"
                    f" delete that one first, or archive this one"
                )
        for member, paths in members.items():
            for path in paths:
                path.unlink(missing_ok=True)
            forget_name(home, member)
            tell_codex(home, "DELETE FROM threads WHERE id = ?", member)


@contextmanager
def _family(
    home: Path, thread_id: str, *folders: str
) -> Generator[Mapping[str, Sequence[Path]]]:
    """Lock a thread and its subagents at all depths.

    Yields the files that they have in the folders, by thread id; the thread itself comes last.
    """
    children: dict[str | None, list[str]] = {}
    for meta in metas_with(home, b'"parent_thread_id"'):
        children.setdefault(meta.parent_id, []).append(meta.id)
    # Grows while it is gone through.
    members = [thread_id]
    for member in members:
        found = children.get(member, ())
        members += [child for child in found if child not in members]
    try:
        with ExitStack() as locks:
            for member in members:
                locks.callback(ThreadLock(home, member).release)
            yield {
                member: list(files_of_thread(home, member, folders))
                for member in reversed(members)
            }
    except OSError as error:
        raise SessionError(
            f"the files of session {thread_id} cannot be changed: {error.filename}: {error.strerror}"
        ) from error


def _move(
    home: Path,
    member: str,
    path: Path,
    place: Path,
    archived_at: int | None = None,
) -> None:
    """Move a file of a thread.

    Args:
        archived_at: the time, in seconds since the epoch; None if it leaves the archive.
    """
    make_private(place.parent)
    if place.exists():
        raise SessionError(f"{path} cannot be moved: {place} is there already")
    path.rename(place)
    is_archived = archived_at is not None
    tell_codex(home, _MOVED, str(place), int(is_archived), archived_at, member)
