"""Reads the lines of a thread: those of the native files that it continues, then those of its own file.

Only one line is in memory at a time, or one block while searching from the end.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

from codex_py.errors import SessionError
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.response_order import HistoryPlace
from codex_py.rollout.index import files_of_thread
from codex_py.rollout.records import (
    MAX_LINE_BYTES,
    OTHER_SESSION,
    SessionMeta,
    home_of,
    read_meta,
    session_lines,
)

_BLOCK_BYTES: Final = 1 << 20
_HEAD: Final = re.compile(
    rb'\{"timestamp":"([\w.:+-]*)",(?:"ordinal":(\d+),)?'
    rb'(?:"place":\[(\d+),([01]),(\d+),(\d+)\],)?"type":"(\w+)","payload":'
    rb'(?=\{(?:"type":"(\w+)")?)'
)
"""The beginning of a line as Codex and this program write it, up to the payload."""
_BEGINNING: Final = b'{"timestamp":"'
_TAIL: Final = re.compile(r"[ \t\r\n]*\}[ \t\r\n]*")
_KINDS: Final = {b"response_item", b"event_msg", b"turn_context", b"compacted"}
"""The kinds of lines that readers use."""

T = TypeVar("T")
Start: TypeAlias = tuple[int, int]
"""The beginning of a line: the number of the file in the thread, and the offset in it."""


class Line(NamedTuple):
    """A line of a session file."""

    kind: str
    payload: dict[str, Any]
    ordinal: int | None
    encoded: EncodedItem | None
    """The bytes of the payload, if it is an item and is known to be well-formed."""
    place: HistoryPlace | None = None
    timestamp: str = ""
    """The timestamp in the file; empty for a line that readers do not use."""


class _ThreadFile(NamedTuple):
    path: Path
    end: int | None
    """The number of the first line that does not belong to the thread; None if all lines do."""


class ThreadLines:
    """The lines of a thread, without metadata. `since` and `last` raise a `SessionError` if a file cannot be read."""

    def __init__(
        self,
        path: Path,
        events: Collection[str] | None = None,
    ) -> None:
        """Find the files of the thread.

        Args:
            events: the types of the `event_msg` lines to read; None for all. The payload of any other
                event may be left out, and need not be valid.

        Raises:
            SessionError: a file cannot be read, does not begin with session metadata, or continues a
                session whose file is missing.
        """
        self.meta = read_meta(path)
        self._files = _files(path, self.meta)
        self._events: Collection[bytes] | None = None
        if events is not None:
            self._events = {event.encode() for event in events}

    def since(self, start: Start | None = None) -> Iterator[Line | None]:
        """The lines from `start` on, in order; if None, all lines. A damaged line is yielded as None."""
        first, offset = start or (0, 0)
        for number, (path, end) in enumerate(self._files):
            if number < first:
                continue
            with session_lines(path) as (_, file):
                if number == first and offset:
                    file.seek(offset)
                for line in self._readable(_raw_lines(file)):
                    if _is_from(line, end):
                        break
                    yield line

    def near_end(self, size_bytes: int) -> Start | None:
        """Find the start of the line about `size_bytes` before the end of the last file.

        Returns None if the file is shorter.
        """
        number = len(self._files) - 1
        with session_lines(self._files[number].path) as (_, file):
            before = file.seek(0, 2) - size_bytes
            if before > 0:
                return (number, _line_start(file, before))
            return None

    def last(
        self,
        name: str,
        value: Callable[[Line], T | None],
    ) -> tuple[Start, T] | None:
        """Search from the end for a line or an event of this type for which `value` returns a
        value.

        Returns the start of the line and the value; None if no such line exists.
        """
        mark = f'"{name}"'.encode()
        numbered = list(enumerate(self._files))
        for number, (path, end) in reversed(numbered):
            with session_lines(path) as (_, file):
                for offset, raw in lines_with(mark, file):
                    for line in reversed(list(self._readable([raw]))):
                        if line is None or _is_from(line, end):
                            continue
                        found = value(line)
                        if found is not None:
                            return (number, offset), found
        return None

    def _readable(self, lines: Iterable[bytes | None]) -> Iterator[Line | None]:
        """Parse lines; a damaged line becomes None."""
        before = None
        for raw in lines:
            if raw is None:
                yield None
                continue
            # Two lines with the same timestamp too are not two items: one of them is damage.
            if raw == before:
                continue
            before = raw
            try:
                yield _parse(raw, self._events)
            except (ValueError, RecursionError):
                parts = _parts(raw)
                if len(parts) > 1:
                    yield from self._readable(parts)
                else:
                    yield from [None]


def _parts(raw: bytes) -> list[bytes]:
    """Split a damaged line before each beginning of a line in it.

    A program that is killed leaves half a line, and the next program may append to it.
    """
    first, *rest = raw.split(_BEGINNING)
    parts = [_BEGINNING + each for each in rest]
    if first:
        parts.insert(0, first)
    return parts


def _is_from(line: Line | None, end: int | None) -> bool:
    """True if a line has the number `end` or a higher one."""
    if end is None or line is None or line.ordinal is None:
        return False
    return line.ordinal >= end


def _files(path: Path, meta: SessionMeta) -> list[_ThreadFile]:
    """Find the files of a thread, oldest first."""
    files = [_ThreadFile(path, None)]
    while meta.history_base is not None:
        thread_id, end = meta.history_base
        later = files[0]
        seen = [file.path for file in files]
        found = files_of_thread(home_of(later.path), thread_id)
        original = next((each for each in found if each not in seen), None)
        if original is None:
            raise SessionError(
                f"{later.path} goes on from session {thread_id}, whose file is missing; {OTHER_SESSION}"
            )
        if later.end is not None:
            end = min(end, later.end)
        files.insert(0, _ThreadFile(original, end))
        meta = read_meta(original)
    return files


def _raw_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines from the file's position on, without empty ones. A line over the limit is None."""
    while raw := file.readline(MAX_LINE_BYTES):
        if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
            _skip_line(file)
            yield None
        elif raw != b"\n":
            yield raw


def _skip_line(file: BinaryIO) -> None:
    """Move to the end of the line."""
    while True:
        more = file.readline(_BLOCK_BYTES)
        if not more or more.endswith(b"\n"):
            return


def lines_with(mark: bytes, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that contain `mark`, last first, each after its offset. Lines over the limit are left
    out."""
    end = file.seek(0, 2)
    size = _BLOCK_BYTES
    while end:
        # The block ends with a whole line. Its extra byte may be the newline before its first whole
        # line.
        start = max(0, end - size - 1)
        file.seek(start)
        block = file.read(end - start)
        first = 0
        if start:
            first = block.find(b"\n", 0, -1) + 1
            if not first and size < MAX_LINE_BYTES:
                # There is no whole line in the block.
                size *= 8
                continue
        if start and not first:
            # The line is over the limit.
            end = _line_start(file, start)
        else:
            for offset, line in _in_block(mark, block, first):
                yield start + offset, line
            end = start + first
        size = _BLOCK_BYTES


def _in_block(mark: bytes, block: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a block that contain `mark`, last first, each after its offset.

    Args:
        first: the offset of the first whole line.
    """
    below = len(block)
    while (found := block.rfind(mark, first, below)) >= 0:
        below = max(first, block.rfind(b"\n", first, found) + 1)
        newline = block.find(b"\n", found)
        if newline < 0:
            yield below, block[below:]
        else:
            yield below, block[below : newline + 1]


def _line_start(file: BinaryIO, place: int) -> int:
    """Find the offset of the line that contains the offset `place`."""
    while place:
        start = max(0, place - _BLOCK_BYTES)
        file.seek(start)
        newline = file.read(place - start).rfind(b"\n") + 1
        if newline:
            return start + newline
        place = start
    return 0


def _parse(raw: bytes, events: Collection[bytes] | None) -> Line:
    """Parse a line. Raises a `ValueError` if it is not a line of a session.

    The payload of a line that readers do not use may be left out.
    """
    head = _HEAD.match(raw)
    if head is None:
        return _parse_any(raw)
    time, number, *place, kind, event = head.groups()
    ordinal = None
    if number is not None:
        ordinal = int(number)
    if kind == b"event_msg" and event is not None:
        is_read = events is None or event in events
    else:
        is_read = kind in _KINDS
    # A line that was cut off may go on with the line after it, which must not be left out.
    if not is_read and raw.endswith(b"}\n") and raw.rfind(_BEGINNING) == 0:
        return Line(kind.decode(), {}, ordinal, None)
    start = head.end()
    text = str(memoryview(raw)[start:], "utf-8")
    payload, end = _DECODER.raw_decode(text)
    if _TAIL.fullmatch(text, end) is None:
        # Native lines have more fields after the payload.
        rest = text[end:].lstrip()
        if not rest.startswith(","):
            raise ValueError("not one JSON object")
        _DECODER.decode("{" + rest[1:])
    encoded = None
    if kind == b"response_item":
        if text.isascii():
            # In an ASCII line, characters are bytes. This saves a copy of large outputs.
            written = raw[start : start + end]
        else:
            written = text[:end].encode()
        encoded = EncodedItem(written)
    where = None
    if place[0] is not None:
        response, is_output, position, arrival = map(int, place)
        where = HistoryPlace(response, bool(is_output), position, arrival)
    fields = cast("dict[str, Any]", payload)
    return Line(
        kind.decode(),
        fields,
        ordinal,
        encoded,
        where,
        time.decode(),
    )


def _parse_any(raw: bytes) -> Line:
    """Parse a line whose fields are in another order than usual; raises as `_parse` does."""
    fields = _DECODER.decode(raw.decode())
    match fields:
        case {"type": str(kind), "payload": {**payload}}:
            ordinal = fields.get("ordinal")
            if not isinstance(ordinal, int):
                ordinal = None
            timestamp = str(fields.get("timestamp"))
            return Line(kind, payload, ordinal, encoded=None, timestamp=timestamp)
        case _:
            raise ValueError("no type or no payload")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
