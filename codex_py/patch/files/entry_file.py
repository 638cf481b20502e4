"""The file of a journal's entry: one file, so that keeping an entry costs a single write. It has

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

from codex_py.filesystem.reading import ordinary_file
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
"""The attributes of an entry that are fields of the header."""
_OF_CHANGE = ("path", "location", "before", "mode", "owner", "temporary", "aside")
"""The attributes of a change that are fields of its part of the header."""


class DamagedEntry(Exception):
    """A file of the journal is cut short, or differs from what was written."""


def encoded(entry: JournalEntry) -> list[bytes]:
    """Encode an entry as the pieces of its file, to be written one after the other."""
    contents: list[bytes] = []
    changes: list[dict[str, Any]] = []
    for change in entry.changes:
        changes.append(_header_of(change))
        contents += [data for data in _contents(change) if data is not None]
    fields = {name: getattr(entry, name) for name in _OF_ENTRY}
    fields["turn"] = entry.turn and entry.turn._asdict()
    fields["changes"] = changes
    header = json.dumps(fields, separators=(",", ":")).encode()
    header_crc = zlib.crc32(header)
    contents_crc = 0
    for data in contents:
        contents_crc = zlib.crc32(data, contents_crc)
    contents_size = sum(map(len, contents))
    stored = _stored_bytes(entry.changes)
    numbers = f"{len(header)} {header_crc:x} {contents_size} {contents_crc:x} {stored}"
    first_line = f"{_MAGIC.decode()} {_VERSION} {numbers}\n"
    return [first_line.encode(), header, *contents]


def stored_bytes(path: Path) -> int:
    """Read the total size of the old contents in an entry's store; 0 if its file does not say.

    Raises an `OSError` if the file cannot be read.
    """
    with ordinary_file(path) as stream:
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
        DamagedEntry: the file is incomplete, missing, not a regular file, or of another version.
    """
    try:
        with ordinary_file(path) as stream:
            return _decoded(stream, store, with_contents=with_contents)
    # A field can be missing although the checksum is right, if another version wrote the file.
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedEntry(str(error)) from error


def read_stored(entry: JournalEntry) -> None:
    """Read the old contents of an entry's changes from its store.

    Raises:
        DamagedEntry: they cannot be read, or have changed.
    """
    for change in entry.changes:
        before = change.before
        place = change.aside
        if change.backup is not Backup.STORE or place is None or before is None:
            continue
        try:
            if entry.state == State.INTERRUPTED and not Path(place).exists():
                # It was put back.
                place = change.location
            found = EntryStatus.of(os.lstat(place))
            # A program that had the file open can still write to it.
            if found.size != before.size or found.mtime_ns != before.mtime_ns:
                raise DamagedEntry(
                    f"what was in {change.path} has been changed since by who had it open"
                )
            change.old = read_file(place, found)
        except OSError as error:
            raise DamagedEntry(f"what was in {change.path} cannot be read") from error


class _FirstLine(NamedTuple):
    """The numbers in the first line of the file; sizes in bytes."""

    header_size: int
    header_crc: int
    contents_size: int
    contents_crc: int
    stored: int
    """The total size of the files in the store."""


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


def _is_whole(data: bytes, size: int, crc: int) -> bool:
    return len(data) == size and zlib.crc32(data) == crc


def _decoded(
    stream: BinaryIO,
    store: str,
    *,
    with_contents: bool,
) -> JournalEntry:
    first = _first_line(stream.readline(_MAX_FIRST_LINE))
    header = stream.read(first.header_size)
    if not _is_whole(header, first.header_size, first.header_crc):
        raise ValueError("its header is damaged")
    contents: BytesIO | None = None
    if with_contents:
        data = stream.read(first.contents_size)
        if not _is_whole(data, first.contents_size, first.contents_crc):
            raise ValueError("its contents are damaged")
        contents = BytesIO(data)
    values = json.loads(header)
    changes = _read_changes(values.pop("changes"), store, contents)
    if _stored_bytes(changes) != first.stored:
        raise ValueError("its first line is damaged")
    if values["turn"] is not None:
        values["turn"] = _read_turn(values["turn"])
    return JournalEntry(changes=changes, **values)


def _read_changes(
    headers: Sequence[dict[str, Any]],
    store: str,
    contents: BinaryIO | None,
) -> list[EntryChange]:
    """Read the changes of an entry; without `contents` their old and new contents are None."""
    changes: list[EntryChange] = []
    for header in headers:
        change = _read_change(header, store)
        if contents is not None:
            change.old = _read_if_any(contents, header["old_size"])
            change.new = _read_if_any(contents, header["new_size"])
        changes.append(change)
    by_path = {change.path: change for change in changes}
    for change, header in zip(changes, headers, strict=True):
        # Older files have no origins.
        change.origin = by_path.get(header.get("origin", ""))
    return changes


def _read_if_any(stream: BinaryIO, size: int | None) -> bytes | None:
    if size is None:
        return None
    return stream.read(size)


def _read_turn(fields: dict[str, Any]) -> TurnOfEntry:
    # JSON has no tuples.
    for name, value in fields.items():
        if type(value) is list:
            fields[name] = tuple(fields[name])
    return TurnOfEntry(**fields)


def _contents(change: EntryChange) -> tuple[bytes | None, bytes | None]:
    """The old and the new contents that the file itself keeps; None for each that it does not."""
    if not change.kept:
        return None, None
    if change.before is None or change.backup is Backup.STORE:
        return None, change.written
    return change.old, change.written


def _size_if_any(contents: bytes | None) -> int | None:
    if contents is None:
        return None
    return len(contents)


def _header_of(change: EntryChange) -> dict[str, Any]:
    """Encode a change, without its contents, as JSON."""
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
    # A path in the store is relative to it, so that the journal can be moved.
    if change.backup is Backup.STORE and change.aside is not None:
        _, header["aside"] = split(change.aside)
    return header


def _read_change(header: dict[str, Any], store: str) -> EntryChange:
    """Decode a change; the opposite of `_header_of`."""
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
    # `join` returns an absolute path unchanged.
    change.aside = aside and os.path.join(store, aside)
    return change


def digest(contents: bytes) -> str:
    """Compute a mark that tells what a patch wrote from what others wrote.

    It does not protect against forgery.
    """
    return f"{len(contents)} {zlib.crc32(contents):x}"


def _stored_bytes(changes: Sequence[EntryChange]) -> int:
    return sum(
        change.before.size
        for change in changes
        if change.backup is Backup.STORE and change.before
    )
