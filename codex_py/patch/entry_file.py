"""How an entry of the journal is written down: one file, so that keeping it costs a single write.

    codex-py-journal 1 HEADER_BYTES HEADER_CRC CONTENTS_BYTES CONTENTS_CRC
    the header: one JSON object, without line breaks
    the contents of all changes, old before new, one after the other

Sizes are decimal, checksums CRC-32 in hexadecimal. Names that are not UTF-8 are in the header with lone
surrogates, as `os.fsdecode` makes them.
"""

import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

from codex_py.patch.change import Change, Entry, Status, digest

_MAGIC = b"codex-py-journal"
_VERSION = 1
_MAX_FIRST_LINE = 200
_KEPT_BY_NAME = [
    field.name for field in fields(Change) if field.name not in {"before", "old", "new", "digest"}
]


class DamagedEntry(Exception):
    """A file of the journal is cut short, or is not what was written."""


def encoded(entry: Entry) -> list[bytes]:
    """The file, in pieces to be written one after the other."""
    contents: list[bytes] = []
    changes: list[dict[str, Any]] = []
    for change in entry.changes:
        changes.append(_header_of(change))
        if change.kept:
            contents += [data for data in (change.old, change.new) if data is not None]
    header = json.dumps(
        {
            "cwd": entry.cwd,
            "time": entry.time,
            "undoes": entry.undoes,
            "made": entry.made,
            "modes": entry.modes,
            "obsolete": entry.obsolete,
            "changes": changes,
        },
        separators=(",", ":"),
    ).encode()
    crc, size = 0, 0
    for data in contents:
        crc, size = zlib.crc32(data, crc), size + len(data)
    first = f"{_MAGIC.decode()} {_VERSION} {len(header)} {zlib.crc32(header):x} {size} {crc:x}\n".encode()
    return [first, header, *contents]


def read_entry(path: Path, *, with_contents: bool) -> Entry:
    """The entry in a file, `number` and `state` aside.

    Args:
        with_contents: or else `old` and `new` of its changes are None.

    Raises:
        DamagedEntry: the file is not whole, or there is none.
    """
    try:
        with path.open("rb") as stream:
            return _decoded(stream, with_contents=with_contents)
    # The checksum says that we wrote it; what is missing all the same is another version's.
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedEntry(str(error)) from error


def _decoded(stream: BinaryIO, *, with_contents: bool) -> Entry:
    magic, version, *numbers = stream.readline(_MAX_FIRST_LINE).split()
    if magic != _MAGIC or int(version) != _VERSION:
        raise ValueError("not an entry of this version")
    header_size, header_crc, contents_size, contents_crc = (
        int(number, 16 if is_crc else 10)
        for number, is_crc in zip(numbers, (False, True, False, True), strict=True)
    )
    header = stream.read(header_size)
    if len(header) != header_size or zlib.crc32(header) != header_crc:
        raise ValueError("its header is damaged")
    contents = memoryview(b"")
    if with_contents:
        contents = memoryview(stream.read(contents_size))
        if len(contents) != contents_size or zlib.crc32(contents) != contents_crc:
            raise ValueError("its contents are damaged")
    values = json.loads(header)
    changes: list[Change] = []
    for found in values.pop("changes"):
        sizes = found.pop("old_size"), found.pop("new_size")
        before, owner = found.pop("before"), found.pop("owner")
        change = Change(
            **found,
            before=before and Status(*before),
            owner=owner and (owner[0], owner[1]),
            old=None,
            new=None,
        )
        if with_contents:
            change.old, contents = _taken(contents, sizes[0])
            change.new, contents = _taken(contents, sizes[1])
        changes.append(change)
    return Entry(changes=changes, **values)


def _header_of(change: Change) -> dict[str, Any]:
    header: dict[str, Any] = {name: getattr(change, name) for name in _KEPT_BY_NAME}
    header["before"] = change.before
    header["old_size"] = header["new_size"] = None
    if change.kept:
        header["old_size"] = None if change.old is None else len(change.old)
        header["new_size"] = None if change.new is None else len(change.new)
    elif change.new is not None:
        header["digest"] = digest(change.new)
    return header


def _taken(contents: memoryview, size: int | None) -> tuple[bytes | None, memoryview]:
    if size is None:
        return None, contents
    return bytes(contents[:size]), contents[size:]
