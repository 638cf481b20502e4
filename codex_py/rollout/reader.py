"""Reads a session file: the items of the history, ready to be sent again."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from codex_py.errors import SessionError
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.stream import Usage
from codex_py.rollout.entries import Entry, compacted, context_of, paired, without_last_turns
from codex_py.rollout.index import files_of_thread
from codex_py.rollout.records import (
    OTHER_SESSION,
    SessionMeta,
    home_of,
    read_token_count,
    session_lines,
)

_HEAD = re.compile(r'\{"timestamp":"[^"\\]*",(?:"ordinal":(\d+),)?"type":"(\w+)","payload":')
_TAIL = re.compile(r"[ \t\r\n]*\}[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The contents of a session file."""

    path: Path
    meta: SessionMeta
    items: list[EncodedItem]
    """Each call has its output. Without the base prompt, which is `meta.base_instructions`."""
    shown: list[EncodedItem]
    """The items of the whole thread, including those that a compaction has removed from `items`.

    Between them are the diffs of patches and the durations of turns, see `RolloutEvents`.
    """
    usage: Usage
    """Of the whole thread."""
    last_usage: Usage
    """Of the last response: how full the context window was."""
    model: str | None
    """Of the last turn."""
    context: dict[str, str]
    """The last text of each kind of context, by its opening (`CONTEXT_OPENINGS`)."""
    damaged_lines: int
    """The number of lines that were skipped as unreadable, such as one cut off by a kill."""

    @property
    def thread_id(self) -> str:
        return self.meta.id


def read_session(path: Path) -> StoredSession:
    """Read a whole session.

    Items keep their bytes from the file. Lines of unknown type are skipped.

    Raises:
        SessionError: the file cannot be read, does not begin with session metadata, or continues a
            session whose file is missing.
    """
    reading = _Reading()
    meta = reading.read(path)
    return StoredSession(
        path=path,
        meta=meta,
        items=paired(reading.entries),
        shown=[entry.encoded for entry in reading.shown],
        usage=reading.usage,
        last_usage=reading.last_usage,
        model=reading.model,
        context=context_of(reading.entries),
        damaged_lines=reading.damaged_lines,
    )


class _Reading:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.shown: list[Entry] = []
        self.usage = Usage()
        self.last_usage = Usage()
        self.model: str | None = None
        self.damaged_lines = 0
        self._seen: list[Path] = []

    def read(self, path: Path, before: int | None = None) -> SessionMeta:
        """Read a file up to the line with the ordinal `before`, after the session that it continues."""
        self._seen.append(path)
        with session_lines(path) as (meta, lines):
            if meta.history_base is not None:
                thread_id, end = meta.history_base
                files = files_of_thread(home_of(path), thread_id)
                base = next((each for each in files if each not in self._seen), None)
                if base is None:
                    raise SessionError(
                        f"{path} goes on from session {thread_id}, whose file is missing; {OTHER_SESSION}"
                    )
                self.read(base, end if before is None else min(end, before))
            for raw in lines:
                if raw == b"\n":
                    continue
                try:
                    kind, payload, ordinal, encoded = _parse(raw)
                except (ValueError, RecursionError):
                    self.damaged_lines += 1
                    continue
                if before is not None and ordinal is not None and ordinal >= before:
                    break
                self._take(kind, payload, encoded)
        return meta

    def _take(self, kind: str, payload: dict[str, Any], encoded: EncodedItem | None) -> None:
        match kind, payload:
            case "response_item", _:
                entry = Entry.of(payload, encoded)
                self.entries.append(entry)
                self.shown.append(entry)
            case "event_msg", {"type": "token_count"}:
                if (usages := read_token_count(payload)) is not None:
                    self.usage, self.last_usage = usages
            case "event_msg", {"type": "patch_applied" | "turn_completed"}:
                self.shown.append(Entry.of(payload))
            case "event_msg", {"type": "thread_rolled_back"}:
                turns = payload.get("num_turns")
                self.entries = without_last_turns(self.entries, turns)
                self.shown = without_last_turns(self.shown, turns)
                # The fill of the context window is no longer known, unless a `token_count` follows.
                self.last_usage = Usage()
            case "turn_context", {"model": str(model)}:
                self.model = model
            case "compacted", _:
                self.entries = compacted(self.entries, payload)
                self.shown += self.entries[-1:]
                self.last_usage = Usage()
            case _:
                pass


def _parse(raw: bytes) -> tuple[str, dict[str, Any], int | None, EncodedItem | None]:
    """The type, payload, number and payload's bytes of a line; a `ValueError` if it is none of a session. The bytes of a usual payload are kept."""
    text = raw.decode()
    if (head := _HEAD.match(text)) is None:
        match fields := _DECODER.decode(text):
            case {"type": str(kind), "payload": {**payload}}:
                ordinal = fields.get("ordinal")
                return kind, payload, ordinal if isinstance(ordinal, int) else None, None
            case _:
                raise ValueError("no type or no payload")
    payload, end = _DECODER.raw_decode(text, head.end())
    if _TAIL.fullmatch(text, end) is None:
        # Native lines have more fields after the payload.
        rest = text[end:].lstrip()
        if not rest.startswith(","):
            raise ValueError("not one JSON object")
        _DECODER.decode("{" + rest[1:])
    ordinal, kind = head.groups()
    encoded = None
    if kind == "response_item":
        # In an ASCII line, characters are bytes. This saves a copy of large outputs.
        start = head.end()
        encoded = EncodedItem(raw[start:end] if text.isascii() else text[start:end].encode())
    if not isinstance(payload, dict):
        raise ValueError("no payload")
    number = None if ordinal is None else int(ordinal)
    return kind, cast("dict[str, Any]", payload), number, encoded


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
