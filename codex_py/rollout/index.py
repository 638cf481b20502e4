"""Finds the files of sessions by id, by name, or by time. Reads and writes the names of threads."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.errors import ExitCode, SessionError
from codex_py.filesystem.private import locked, written_whole
from codex_py.filesystem.reading import ordinary_file, refuse_extraordinary
from codex_py.protocol.ids import is_thread_id, utc_timestamp
from codex_py.protocol.json_fields import well_formed
from codex_py.protocol.messages import encode_json
from codex_py.rollout.records import (
    ARCHIVED_SESSIONS,
    MAX_LINE_BYTES,
    SESSIONS,
    SessionMeta,
    read_meta,
    thread_id_of,
)

_LOCK_TIMEOUT_S = 5
_MAX_LOOKED_AT = 100
"""The number of files that are read to explain why no session was found."""
_NAMES = "session_index.jsonl"
_NAMES_LOCK = f"{_NAMES}.lock"
"""The lock for the file with the names of threads, in the home. Codex uses both files too."""


def find_session(
    home: Path,
    id_or_name: str,
    folders: Sequence[str] = (SESSIONS, ARCHIVED_SESSIONS),
) -> Path | None:
    """Find the file of a thread; None if there is none.

    If a thread was taken back to an earlier prompt, it has several files: the newest counts.

    Args:
        folders: the folders of the home to search, in this order.
    """
    if is_thread_id(id_or_name):
        return next(files_of_thread(home, id_or_name.lower(), folders), None)
    # Of several threads with one name, the one that was named last counts.
    for thread_id, name in reversed(thread_names(home).items()):
        if name == id_or_name:
            path = next(files_of_thread(home, thread_id, folders), None)
            if path is not None:
                return path
    return None


def require_session(home: Path, id_or_name: str) -> Path:
    """Find the file of a thread as `find_session` does. Raises a `SessionError` if there is none."""
    path = find_session(home, id_or_name)
    if path is None:
        raise SessionError(
            f"no session found with the id or name {id_or_name!r};"
            " `codex-py sessions list --all` shows them",
            exit_code=ExitCode.USAGE,
        )
    return path


def files_of_thread(
    home: Path,
    thread_id: str,
    folders: Sequence[str] = (SESSIONS, ARCHIVED_SESSIONS),
) -> Iterator[Path]:
    """The files of a thread, newest first, archived ones after the others."""
    for folder in folders:
        for found, entry in _newest_first(home / folder, thread_id):
            if found == thread_id:
                yield Path(entry.path)


def require_active(home: Path, path: Path) -> None:
    """Raise a `SessionError` if a session file is archived. As in Codex, it names the command that
    helps."""
    if path.is_relative_to(home / ARCHIVED_SESSIONS):
        thread_id = thread_id_of(path.name)
        raise SessionError(
            f"session {thread_id} is archived. Run `codex-py unarchive {thread_id}` to unarchive it first."
        )


def newest_continuation(home: Path, path: Path) -> Path:
    """Find the newest file of a thread: the given one, or a file that continues it.

    This program continues a native file in a new file. Codex may have written to the native file
    since, so that either may be the newest.
    """
    own = _meta(path)
    if own is None or not own.native:
        return path
    newest = path
    modified = path.stat().st_mtime_ns
    for _, entry in _newest_first(home / SESSIONS):
        if entry.path == str(path):
            # Older files cannot continue the thread.
            break
        # Hundreds of sessions may be younger, so the cheap tests come first.
        if _modified(entry) <= modified:
            continue
        if not _begins_with(entry, own.id.encode()):
            continue
        meta = _meta(Path(entry.path))
        if meta is not None and meta.continues_id == own.id:
            newest = Path(entry.path)
            modified = _modified(entry)
    return newest


def latest_session(home: Path, *, cwd: Path | None) -> Path | None:
    """Return the file of the first of the `recent_sessions`; None if there are none."""
    for path, _, _ in recent_sessions(home, cwd=cwd):
        return path
    return None


def recent_sessions(
    home: Path,
    *,
    cwd: Path | None,
    folder: str = SESSIONS,
    by_start: bool = False,
) -> Iterator[tuple[Path, SessionMeta, int]]:
    """The sessions in a folder of the home, except subagents. The most recently written comes first.

    Yields the file, the metadata and the time of the last write, in ns since the epoch.

    Args:
        cwd: absolute; None for sessions of any directory.
        by_start: the most recently started session comes first instead.
    """
    newest: dict[str, tuple[int, str]] = {}
    for thread_id, entry in _newest_first(home / folder):
        # If Codex took a thread back to an earlier prompt, it has several files: the newest counts.
        if thread_id not in newest:
            newest[thread_id] = (_modified(entry), entry.path)
    real = ""
    if cwd is not None:
        real = os.path.realpath(cwd)
    # A session file cannot store a folder name that is not UTF-8 exactly.
    here = {real, well_formed(real)}
    if by_start:
        found = newest.values()
    else:
        found = sorted(newest.values(), reverse=True)
    for modified, name in found:
        path = Path(name)
        meta = _meta(path)
        if meta is None or meta.is_of_subagent:
            continue
        is_wanted = cwd is None or meta.cwd in here
        if is_wanted or os.path.realpath(meta.cwd) in here:
            yield path, meta, modified


def why_none(home: Path) -> str:
    """Explain why no session was found, in clauses that each begin with a semicolon; may be empty.

    They are about the newest session whose folder is gone, and the newest damaged file.
    """
    reasons: list[str] = []
    entries = [entry for _, entry in _newest_first(home / SESSIONS)]
    for entry in sorted(entries, key=_modified, reverse=True)[:_MAX_LOOKED_AT]:
        try:
            meta = read_meta(Path(entry.path))
        except SessionError as error:
            reasons.append(str(error))
            break
        if reasons or meta.is_of_subagent:
            continue
        if not os.path.lexists(meta.cwd):
            reasons.append(
                f"the folder {meta.cwd} of session {meta.id} does not exist any more"
                f" (go on with `codex-py resume {meta.id}`, or look with --all)"
            )
    return "".join(f"; {reason}" for reason in reasons)


def metas_with(home: Path, word: bytes) -> Iterator[SessionMeta]:
    """The metadata of all sessions whose first line contains `word`, newest first, archived ones
    after the others."""
    for folder in (SESSIONS, ARCHIVED_SESSIONS):
        for _, entry in _newest_first(home / folder):
            # A file that cannot be read cannot be resumed either.
            with suppress(SessionError):
                if _begins_with(entry, word):
                    yield read_meta(Path(entry.path))


def _begins_with(entry: "os.DirEntry[str]", word: bytes) -> bool:
    """True if the first line contains `word`. This test is cheaper than parsing the metadata."""
    try:
        with Path(entry.path).open("rb") as file:
            return word in file.readline(MAX_LINE_BYTES)
    except OSError:
        return False


def _newest_first(
    folder: Path | str,
    part: str = "",
    around: Sequence[str] = (),
) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """The session files anywhere below a folder, the most recently started first: paths sort by time.

    Yields the thread id and the entry of each. Links to other folders are followed.

    Args:
        part: a text that the names of the files must contain.
        around: the folder where the search began, and the targets of the links on the way here.
    """
    around = around or [str(folder)]
    try:
        with os.scandir(folder) as found:
            # Filtered at once, one of 10,000 files is found three times as fast.
            entries = [
                each for each in found if part in each.name or ".jsonl" not in each.name
            ]
    except OSError:
        # A folder that is missing or cannot be read has no session to resume.
        return
    entries.sort(key=lambda entry: entry.name, reverse=True)
    for entry in entries:
        if entry.is_symlink():
            target = os.path.realpath(entry.path)
            if os.path.isdir(target):
                # Files in the searched folder are found at their own place, and links could form a
                # circle.
                if not any(_overlap(target, os.path.realpath(each)) for each in around):
                    yield from _newest_first(entry.path, part, [*around, target])
                continue
        if entry.is_dir(follow_symlinks=False):
            yield from _newest_first(entry.path, part, around)
            continue
        thread_id = thread_id_of(entry.name)
        if thread_id is not None and _is_file(entry):
            yield thread_id, entry


def _overlap(one: str, other: str) -> bool:
    """True if one of two folders is in the other."""
    return os.path.commonpath([one, other]) in {one, other}


def _is_file(entry: "os.DirEntry[str]") -> bool:
    """True for a regular file. Opening a pipe would wait for a writer."""
    try:
        return entry.is_file()
    except OSError:
        # The entry is a link to itself.
        return False


def _modified(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat().st_mtime_ns
    except OSError:
        return 0


def _meta(path: Path) -> SessionMeta | None:
    """Read the metadata of a file; None for a file that cannot be resumed, and is not offered."""
    with suppress(SessionError):
        return read_meta(path)


def thread_names(home: Path) -> dict[str, str]:
    """Read the names of threads, by id; the most recently named thread comes last."""
    names: dict[str, str] = {}
    try:
        with ordinary_file(home / _NAMES) as file:
            lines = file.read().splitlines()
    except OSError:
        return names
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match entry:
            case {"id": str(thread_id), "thread_name": str(name)}:
                # Each renaming is a new line: the last one counts.
                names.pop(thread_id, None)
                names[thread_id] = name
            case _:
                pass
    return names


def forget_name(home: Path, thread_id: str) -> None:
    """Remove a thread's lines from the index of names. Raises an `OSError` if that fails."""
    path = home / _NAMES
    with locked(home / _NAMES_LOCK, _LOCK_TIMEOUT_S, is_file=True):
        if not path.exists():
            return
        with ordinary_file(path) as file:
            lines = file.read().splitlines(keepends=True)
        kept = [line for line in lines if thread_id.encode() not in line]
        if len(kept) == len(lines):
            return
        with written_whole(path) as file:
            file.writelines(kept)


def rename_thread(
    home: Path,
    thread_id: str,
    name: str,
) -> None:
    """Write the name of a thread. Raises a `SessionError` if it cannot be written."""
    entry = {"id": thread_id, "thread_name": name, "updated_at": utc_timestamp()}
    path = home / _NAMES
    try:
        with locked(home / _NAMES_LOCK, _LOCK_TIMEOUT_S, is_file=True):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            fd = os.open(path, flags, 0o600)
            try:
                status = os.fstat(fd)
                refuse_extraordinary(status)
                size = status.st_size
                line = encode_json(entry) + b"\n"
                # If the last line was cut off, the new line must not be appended to it.
                if size > 0 and os.pread(fd, 1, size - 1) != b"\n":
                    line = b"\n" + line
                os.write(fd, line)
            finally:
                os.close(fd)
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}") from error
