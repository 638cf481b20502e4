"""Archives, restores and deletes sessions as Codex does, each with its subagents.

The archive is the folder `archived_sessions` of the home. Every thread is locked meanwhile, so none of them is in use.
The session itself comes last: if the work is interrupted, the same command completes it.

Codex finds sessions by the paths in its SQLite database, and 0.169 would report a moved session as
missing. The database is therefore changed too.
"""

import os
import re
import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from codex_py.errors import SessionError
from codex_py.filesystem.private import make_private
from codex_py.rollout.index import files_of_thread, forget_name, metas_with
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS
from codex_py.rollout.writer import ThreadLock

_DATE = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")
_DATABASE_S = 2
_MOVED = (
    "UPDATE threads SET rollout_path = ?, archived = ?, archived_at = ? WHERE id = ?"
)


def archive(home: Path, thread_id: str) -> None:
    """Move a session to the archive. Raises a `SessionError` if it is in use or a file cannot be
    moved."""
    with _family(home, thread_id, SESSIONS) as members:
        for member, paths in members.items():
            for path in paths:
                place = home / ARCHIVED_SESSIONS / path.name
                _move(home, member, path, place, archived_at=int(time.time()))


def unarchive(home: Path, thread_id: str) -> None:
    """Move a session back, and make it the most recent one. Raises as `archive` does."""
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
            base = other.history_base
            if base is not None and base[0] in members and other.id not in members:
                raise SessionError(
                    f"session {base[0]} cannot be deleted: session {other.id} begins with a part of it;"
                    f" delete that one first, or archive this one"
                )
        for member, paths in members.items():
            for path in paths:
                path.unlink(missing_ok=True)
            forget_name(home, member)
            _tell_codex(home, "DELETE FROM threads WHERE id = ?", member)


@contextmanager
def _family(
    home: Path, thread_id: str, *folders: str
) -> Generator[Mapping[str, Sequence[Path]]]:
    """Lock a thread and its subagents at all depths. Yields their files in the folders, the
    thread's own last."""
    children: dict[str | None, list[str]] = {}
    for meta in metas_with(home, b'"parent_thread_id"'):
        children.setdefault(meta.parent_id, []).append(meta.id)
    members = [thread_id]
    for member in members:
        members += (child for child in children.get(member, ()) if child not in members)
    try:
        with ExitStack() as locks:
            for member in members:
                locks.callback(ThreadLock(home, member).release)
            yield {
                id_: [*files_of_thread(home, id_, folders)] for id_ in reversed(members)
            }
    except OSError as error:
        raise SessionError(
            f"the files of session {thread_id} cannot be changed: {error.filename}: {error.strerror}"
        ) from error


def _move(
    home: Path, member: str, path: Path, place: Path, archived_at: int | None = None
) -> None:
    make_private(place.parent)
    if place.exists():
        raise SessionError(f"{path} cannot be moved: {place} is there already")
    path.rename(place)
    _tell_codex(
        home, _MOVED, str(place), int(archived_at is not None), archived_at, member
    )


def _tell_codex(
    home: Path,
    statement: str,
    *values: str | int | None,
) -> None:
    """Change every database `state_N.sqlite`; N is the number of Codex's schema.

    The session files are authoritative: a database that is not as expected, or is in use for long,
    is left unchanged.
    """
    for path in home.glob("state_*.sqlite"):
        with suppress(sqlite3.Error):
            # `mode=rw` of the URI does not create a database that has just been removed.
            found = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", timeout=_DATABASE_S, uri=True
            )
            with closing(found) as database, database:
                database.execute(statement, values)
