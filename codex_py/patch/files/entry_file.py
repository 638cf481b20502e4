"""Write an entry of the journal to one file, so that keeping it costs a single write, and read it.

    codex-py-journal 3 HEADER_BYTES HEADER_CRC CONTENTS_BYTES CONTENTS_CRC STORED_BYTES
    the header: one JSON object, without line breaks
    the contents of all changes, old before new, one after the other

Sizes are decimal, checksums CRC-32 in hexadecimal. Names that are not UTF-8 are in the header with
lone surrogates, as `os.fsdecode` makes them. Old contents that are files in the store of the entry
are not in this file; STORED_BYTES is their total size.
"""

import json
import os
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from codex_py.patch.files.change import (
    Backup,
    EntryChange,
    JournalEntry,
    State,
    TurnOfEntry,
)
from codex_py.patch.files.handles import EntryStatus, read_file, split

_MAGIC = b"codex-py-journal"
_VERSION = 3
_MAX_FIRST_LINE = 200
_OF_ENTRY = ("cwd", "time", "undoes", "also_undoes", "made", "modes", "obsolete")
_OF_CHANGE = ("path", "location", "before", "mode", "owner", "temporary", "aside")
"""The attributes that a header has under their own names."""


class DamagedEntry(Exception):
    """A file of the journal is cut short, or differs from what was written."""


def encoded(entry: JournalEntry) -> list[bytes]:
    """The pieces of the file, to be written one after the other."""
    contents: list[bytes] = []
    changes: list[dict[str, Any]] = []
    for change in entry.changes:
        changes.append(_header_of(change))
        contents += [data for data in _contents(change) if data is not None]
    fields = {name: getattr(entry, name) for name in _OF_ENTRY}
    fields |= {"turn": entry.turn and entry.turn._asdict(), "changes": changes}
    header = json.dumps(fields, separators=(",", ":")).encode()
    crc = 0
    size = sum(map(len, contents))
    for data in contents:
        crc = zlib.crc32(data, crc)
    numbers = f"{len(header)} {zlib.crc32(header):x} {size} {crc:x} {_stored_bytes(entry.changes)}"
    return [f"{_MAGIC.decode()} {_VERSION} {numbers}\n".encode(), header, *contents]


def stored_bytes(path: Path) -> int:
    """Bytes of the old contents that an entry has in its store; 0 if the file does not say."""
    with path.open("rb") as stream:
        last = stream.readline(_MAX_FIRST_LINE).split()[-1:]
    if last and last[0].isdigit():
        return int(last[0])
    return 0


def read_entry(
    path: Path,
    store: str,
    *,
    with_contents: bool,
) -> JournalEntry:
    """Read the entry in a file, without `number` and `state`.

    Args:
        store: directory with the old contents that are not in the file; they are not read.
        with_contents: if False, `old` and `new` of its changes are None.

    Raises:
        DamagedEntry: the file is incomplete or missing.
    """
    try:
        with path.open("rb") as stream:
            return _decoded(stream, store, with_contents=with_contents)
    # The checksum says that we wrote it; if a field is missing all the same, another version did.
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedEntry(str(error)) from error


def read_stored(entry: JournalEntry) -> None:
    """Read the old contents of an entry's changes from its store. Raises a `DamagedEntry` if they
    have changed."""
    for change in entry.changes:
        if (
            change.backup is Backup.STORE
            and change.aside is not None
            and change.before is not None
        ):
            try:
                # A file that was put back after an interruption is at its old place.
                is_back = (
                    entry.state == State.INTERRUPTED and not Path(change.aside).exists()
                )
                if is_back:
                    place = change.location
                else:
                    place = change.aside
                found = EntryStatus.of(os.lstat(place))
                # A program that had the file open can still write to it.
                if (found.size, found.mtime_ns) != (
                    change.before.size,
                    change.before.mtime_ns,
                ):
                    raise DamagedEntry(
                        f"what was in {change.path} has been changed since by who had it open"
                    )
                change.old = read_file(place, found)
            except OSError as error:
                raise DamagedEntry(
                    f"what was in {change.path} cannot be read"
                ) from error


class _FirstLine(NamedTuple):
    header_size: int
    header_crc: int
    contents_size: int
    contents_crc: int
    stored: int
    """Bytes of the files that are kept beside the entry."""


def _first_line(line: bytes) -> _FirstLine:
    magic, version, *numbers = line.split()
    if magic != _MAGIC or int(version) != _VERSION:
        raise ValueError("not an entry of this version")
    if len(numbers) != len(_FirstLine._fields):
        raise ValueError("its first line is damaged")
    return _FirstLine(
        header_size=int(numbers[0]),
        header_crc=int(numbers[1], 16),
        contents_size=int(numbers[2]),
        contents_crc=int(numbers[3], 16),
        stored=int(numbers[4]),
    )


def _read_if_any(stream: BinaryIO, size: int | None) -> bytes | None:
    if size is None:
        return None
    return stream.read(size)


def _decoded(
    stream: BinaryIO,
    store: str,
    *,
    with_contents: bool,
) -> JournalEntry:
    first = _first_line(stream.readline(_MAX_FIRST_LINE))
    header = stream.read(first.header_size)
    if len(header) != first.header_size or zlib.crc32(header) != first.header_crc:
        raise ValueError("its header is damaged")
    contents = b""
    if with_contents:
        contents = stream.read(first.contents_size)
        is_whole = len(contents) == first.contents_size
        if not is_whole or zlib.crc32(contents) != first.contents_crc:
            raise ValueError("its contents are damaged")
    rest = BytesIO(contents)
    values = json.loads(header)
    changes: list[EntryChange] = []
    headers = values.pop("changes")
    for found in headers:
        change = _read_change(found, store)
        if with_contents:
            change.old = _read_if_any(rest, found["old_size"])
            change.new = _read_if_any(rest, found["new_size"])
        changes.append(change)
    by_path = {change.path: change for change in changes}
    for change, found in zip(changes, headers, strict=True):
        # Older files have no origins.
        change.origin = by_path.get(found.get("origin"))
    if _stored_bytes(changes) != first.stored:
        raise ValueError("its first line is damaged")
    turn = values["turn"]
    if turn is not None:
        # JSON has no tuples.
        lists = [name for name, value in turn.items() if type(value) is list]
        values["turn"] = TurnOfEntry(
            **turn | {name: tuple(turn[name]) for name in lists}
        )
    return JournalEntry(changes=changes, **values)


def _contents(change: EntryChange) -> tuple[bytes | None, bytes | None]:
    """The old and new contents that the file itself keeps."""
    if not change.kept:
        return None, None
    is_elsewhere = change.before is None or change.backup is Backup.STORE
    return None if is_elsewhere else change.old, change.written


def _size_if_any(contents: bytes | None) -> int | None:
    if contents is None:
        return None
    return len(contents)


def _header_of(change: EntryChange) -> dict[str, Any]:
    header: dict[str, Any] = {name: getattr(change, name) for name in _OF_CHANGE}
    old, new = _contents(change)
    fate = "removed"
    if change.exists:
        fate = change.fate
    digest_of_new = None
    if not change.kept and change.written is not None:
        digest_of_new = digest(change.written)
    header |= {
        "origin": change.origin and change.origin.path,
        "fate": fate,
        "backup": change.backup.name,
        "old_size": _size_if_any(old),
        "new_size": _size_if_any(new),
        "digest": digest_of_new,
    }
    # The journal may be moved.
    if change.backup is Backup.STORE and change.aside is not None:
        header["aside"] = split(change.aside)[1]
    return header


def _read_change(header: dict[str, Any], store: str) -> EntryChange:
    before = header["before"]
    owner = header["owner"]
    aside = header["aside"]
    change = EntryChange(
        header["path"], header["location"], before and EntryStatus(*before)
    )
    change.mode = header["mode"]
    change.temporary = header["temporary"]
    change.fate = header["fate"]
    change.digest = header["digest"]
    change.owner = owner and (owner[0], owner[1])
    change.backup = Backup[header["backup"]]
    # `join` keeps an absolute path as it is.
    change.aside = aside and os.path.join(store, aside)  # noqa: PTH118
    return change


def digest(contents: bytes) -> str:
    """A mark that tells what a patch wrote from what others wrote. It does not protect against
    intent."""
    return f"{len(contents)} {zlib.crc32(contents):x}"


def _stored_bytes(changes: Sequence[EntryChange]) -> int:
    return sum(
        change.before.size
        for change in changes
        if change.backup is Backup.STORE and change.before
    )
