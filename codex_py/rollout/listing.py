"""The sessions of a home to choose one from: a page of them at a time, newest first, and a look into one.

A file is read as far as its first prompt, and only when its turn comes: of thousands of sessions, a page
costs a directory walk and some tens of reads.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.protocol.messages import decode_json
from codex_py.protocol.prompts import message_texts, prompt_of
from codex_py.rollout.index import newest_first
from codex_py.rollout.names import thread_names
from codex_py.rollout.records import SESSIONS, SessionMeta, thread_id_of

_HEAD_BYTES: Final = 1 << 20
"""How far into a file the first prompt is looked for."""
_TAIL_BYTES: Final = 1 << 18
_MAX_TAIL_BYTES: Final = 1 << 24
_SHOWN_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    id: str
    path: Path
    name: str | None
    """As the user named it."""
    preview: str
    """How the first prompt begins, on one line; empty where none was found."""
    cwd: str
    branch: str | None
    model_provider: str | None
    updated: datetime
    """When it was written to last; UTC."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    sessions: list[SessionSummary]
    next: "Cursor | None"
    """Where the next page begins; None at the end."""


@dataclass(frozen=True, slots=True)
class Cursor:
    modified_ns: int
    path: str


@dataclass(frozen=True, slots=True)
class PreviewMessage:
    role: Literal["user", "assistant"]
    text: str
    """How it begins; lines are kept."""


def list_sessions(
    home: Path,
    *,
    cwd: Path | None = None,
    model_provider: str | None = None,
    search: str = "",
    limit: int = 25,
    after: Cursor | None = None,
) -> SessionPage:
    """The sessions of people that were written to last; those of subagents and archived ones are left out.

    Args:
        home: `$CODEX_HOME`.
        cwd: absolute; None for sessions of any directory.
        model_provider: None for sessions with any provider.
        search: words that all have to be, in any case, in the name, the first prompt, the directory, the
            branch or the id.
        after: `next` of the page before.
    """
    names = thread_names(home)
    here = None if cwd is None else os.path.realpath(cwd)
    words = search.casefold().split()
    page: list[SessionSummary] = []
    last = after
    for place in _files(home):
        if after is not None and (place.modified_ns, place.path) >= (after.modified_ns, after.path):
            continue
        if len(page) == limit:
            return SessionPage(page, last)
        summary = _summary(place, names)
        if summary is None:
            continue
        if here is not None and here not in {summary.cwd, os.path.realpath(summary.cwd)}:
            continue
        if model_provider not in {None, summary.model_provider} or not _has(summary, words):
            continue
        page.append(summary)
        last = place
    return SessionPage(page, None)


def latest_session(home: Path, *, cwd: Path | None, model_provider: str | None) -> Path | None:
    """The file of the first session that `list_sessions` lists; None if there is none."""
    page = list_sessions(home, cwd=cwd, model_provider=model_provider, limit=1)
    return page.sessions[0].path if page.sessions else None


def preview_messages(path: Path, *, limit: int = 6) -> list[PreviewMessage]:
    """The last things that were said in a session, oldest first; as many as are there, if fewer.

    Read from the end of the file. Empty where it cannot be read.
    """
    size = _TAIL_BYTES
    while True:
        try:
            messages, is_all = _tail(path, size)
        except OSError:
            return []
        if len(messages) >= limit or is_all or size >= _MAX_TAIL_BYTES:
            return messages[-limit:]
        size *= 8


def _files(home: Path) -> list[Cursor]:
    """Where each thread lies, the one that was written to last first."""
    newest: dict[str, Cursor] = {}
    for entry in newest_first(home / SESSIONS):
        try:
            place = Cursor(entry.stat().st_mtime_ns, entry.path)
        except OSError:
            continue
        # A thread that Codex took back to an earlier prompt has several: the newest holds.
        newest.setdefault(thread_id_of(entry.name) or "", place)
    return sorted(newest.values(), key=lambda p: (p.modified_ns, p.path), reverse=True)


def _summary(place: Cursor, names: dict[str, str]) -> SessionSummary | None:
    """None for what is no session of a person, or cannot be read."""
    path = Path(place.path)
    try:
        with path.open("rb") as file:
            meta = SessionMeta.from_line(file.readline())
            preview = _first_prompt(file)
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(meta.source, dict):
        return None
    return SessionSummary(
        id=meta.id,
        path=path,
        name=names.get(meta.id),
        preview=" ".join(preview.split())[:_SHOWN_CHARACTERS],
        cwd=meta.cwd,
        branch=meta.git.get("branch"),
        model_provider=meta.model_provider,
        updated=datetime.fromtimestamp(place.modified_ns / 1e9, UTC),
    )


def _first_prompt(lines: Iterator[bytes]) -> str:
    left = _HEAD_BYTES
    for line in lines:
        left -= len(line)
        if (prompt := prompt_of(_item(line))) is not None:
            return prompt.text
        if left <= 0:
            break
    return ""


def _has(summary: SessionSummary, words: Sequence[str]) -> bool:
    if not words:
        return True
    fields = (summary.name, summary.preview, summary.cwd, summary.branch, summary.id)
    text = "\n".join(field for field in fields if field).casefold()
    return all(word in text for word in words)


def _tail(path: Path, size: int) -> tuple[list[PreviewMessage], bool]:
    """The messages in the last `size` bytes, and whether that is the whole file."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(start)
        lines = file.read(size).splitlines()
    messages: list[PreviewMessage] = []
    for line in lines[1:] if start else lines:
        item = _item(line)
        if item is None:
            continue
        if (prompt := prompt_of(item)) is not None:
            messages.append(PreviewMessage("user", prompt.text[:_SHOWN_CHARACTERS]))
        elif text := _answer(item):
            messages.append(PreviewMessage("assistant", text[:_SHOWN_CHARACTERS]))
    return messages, start == 0


def _item(line: bytes) -> Any:
    """The item of a line of a session file, decoded, if it is a message; None for other lines."""
    if b'"response_item"' not in line or b'"message"' not in line:
        return None
    try:
        payload: Any = decode_json(line)["payload"]
        return payload if payload["type"] == "message" else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _answer(item: Any) -> str:
    return "".join(message_texts(item.get("content"))) if item.get("role") == "assistant" else ""
