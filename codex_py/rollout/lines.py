"""The lines of a thread: those of its file, after those of the native file that it goes on from."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from codex_py.errors import SessionError
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.response_order import Place
from codex_py.rollout.index import files_of_thread
from codex_py.rollout.records import OTHER_SESSION, home_of, read_meta, session_lines

_HEAD = re.compile(
    r'\{"timestamp":"[^"\\]*",(?:"ordinal":(\d+),)?'
    r'(?:"place":\[(\d+),([01]),(\d+),(\d+)\],)?"type":"(\w+)","payload":'
)
_START = re.compile(rb'(?<=.)(?=\{"timestamp":")', re.DOTALL)
_TAIL = re.compile(r"[ \t\r\n]*\}[ \t\r\n]*")


class Line(NamedTuple):
    """A line of a session file, without its timestamp."""

    kind: str
    payload: dict[str, Any]
    ordinal: int | None
    encoded: EncodedItem | None
    """The bytes of the payload, if it is an item and they can be kept."""
    place: Place | None = None


def thread_lines(path: Path) -> Iterator[Line | None]:
    """The lines of a whole thread, in order, without metadata; None for a line that cannot be read.

    Raises:
        SessionError: a file cannot be read, does not begin with session metadata, or continues a
            session whose file is missing.
    """
    for file, end in _files(path):
        with session_lines(file) as (_, lines):
            for line in _readable(lines):
                ordinal = None if line is None else line.ordinal
                if end is not None and ordinal is not None and ordinal >= end:
                    break
                yield line


def _readable(lines: Iterable[bytes]) -> Iterator[Line | None]:
    before = b""
    for raw in lines:
        # A repeated line, with its timestamp, is damage: it is no second item.
        if raw in {b"\n", before}:
            continue
        before = raw
        try:
            yield _parse(raw)
        except (ValueError, RecursionError):
            # A program that dies leaves half a line, which the next one may write on.
            parts = _START.split(raw)
            yield from _readable(parts) if len(parts) > 1 else [None]


def _files(path: Path) -> list[tuple[Path, int | None]]:
    """The files of a thread, oldest first; each with the ordinal of its first line that is not part of the thread."""
    files: list[tuple[Path, int | None]] = [(path, None)]
    while (base := read_meta(files[0][0]).history_base) is not None:
        thread_id, end = base
        later, before = files[0]
        seen = [file for file, _ in files]
        found = files_of_thread(home_of(path), thread_id)
        file = next((each for each in found if each not in seen), None)
        if file is None:
            raise SessionError(
                f"{later} goes on from session {thread_id}, whose file is missing; {OTHER_SESSION}"
            )
        files.insert(0, (file, end if before is None else min(end, before)))
    return files


def _parse(raw: bytes) -> Line:
    """Raises a `ValueError` if it is no line of a session."""
    text = raw.decode()
    if (head := _HEAD.match(text)) is None:
        match fields := _DECODER.decode(text):
            case {"type": str(kind), "payload": {**payload}}:
                ordinal = fields.get("ordinal")
                return Line(kind, payload, ordinal if isinstance(ordinal, int) else None, None)
            case _:
                raise ValueError("no type or no payload")
    payload, end = _DECODER.raw_decode(text, head.end())
    if _TAIL.fullmatch(text, end) is None:
        # Native lines have more fields after the payload.
        rest = text[end:].lstrip()
        if not rest.startswith(","):
            raise ValueError("not one JSON object")
        _DECODER.decode("{" + rest[1:])
    ordinal, *place, kind = head.groups()
    encoded = None
    if kind == "response_item":
        # In an ASCII line, characters are bytes. This saves a copy of large outputs.
        start = head.end()
        encoded = EncodedItem(raw[start:end] if text.isascii() else text[start:end].encode())
    if not isinstance(payload, dict):
        raise ValueError("no payload")
    number = None if ordinal is None else int(ordinal)
    where = None if place[0] is None else _place(*map(int, place))
    return Line(kind, cast("dict[str, Any]", payload), number, encoded, where)


def _place(response: int, is_output: int, position: int, arrival: int) -> Place:
    return Place(response, bool(is_output), position, arrival)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
