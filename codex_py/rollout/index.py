"""Finds the files of a session by its id or name."""

import os
from collections.abc import Iterator
from pathlib import Path

from codex_py.protocol.ids import is_thread_id
from codex_py.rollout.names import thread_named
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, SessionMeta, thread_id_of


def find_session(home: Path, id_or_name: str) -> Path | None:
    """The file of a thread, archived ones included; None if there is none.

    A thread that was taken back to an earlier prompt has several: the newest holds.
    """
    if is_thread_id(id_or_name):
        thread_id = id_or_name.lower()
    elif (thread_id := thread_named(home, id_or_name)) is None:
        return None
    return next(files_of_thread(home, thread_id), None)


def files_of_thread(home: Path, thread_id: str) -> Iterator[Path]:
    """Its files, newest first, archived ones after the others."""
    for folder in (SESSIONS, ARCHIVED_SESSIONS):
        for entry in newest_first(home / folder):
            if thread_id_of(entry.name) == thread_id:
                yield Path(entry.path)


def newest_continuation(home: Path, path: Path) -> Path:
    """Where the thread of a file went on last: in a file that continues it, or in itself.

    We continue native files elsewhere, and Codex may have written to the native one since.
    """
    own = _meta(path)
    if own is None or not own.native:
        return path
    newest, modified = path, path.stat().st_mtime_ns
    for entry in newest_first(home / SESSIONS):
        if entry.path == str(path):
            # What is older than the thread does not continue it.
            break
        meta = _meta(Path(entry.path))
        if meta is not None and meta.continues_id == own.id and _modified(entry) > modified:
            newest, modified = Path(entry.path), _modified(entry)
    return newest


def newest_first(folder: Path | str) -> Iterator["os.DirEntry[str]"]:
    """Session files anywhere below a folder; their paths sort by the time of their beginning."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    except OSError:
        # Not there, or closed to us: then it has no session that could be resumed.
        return
    for entry in entries:
        if entry.is_dir():
            yield from newest_first(entry.path)
        elif thread_id_of(entry.name) is not None and entry.is_file():
            # Opening a pipe would wait for a writer.
            yield entry


def _modified(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat().st_mtime_ns
    except OSError:
        return 0


def _meta(path: Path) -> SessionMeta | None:
    try:
        with path.open("rb") as file:
            return SessionMeta.from_line(file.readline())
    except (OSError, ValueError, RecursionError):
        # A file that cannot be resumed is none of those to choose from.
        return None
