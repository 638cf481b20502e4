"""Lists the newest sessions of a home, and previews one of them.

A file is read as far as its first prompt, and only when its turn comes: of thousands of sessions, a list
costs a directory walk and a read for each one in it.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import decode_json
from codex_py.protocol.prompts import message_texts, prompt_of
from codex_py.rollout.index import recent_sessions, thread_names

_HEAD_BYTES: Final = 1 << 20
"""How far into a file the first prompt is looked for."""
_TAIL_BYTES: Final = 1 << 18
_MAX_TAIL_BYTES: Final = 1 << 24
_SHOWN_CHARACTERS: Final = 500


@frozen
class SessionSummary:
    id: str
    path: Path
    name: str | None
    """As the user named it."""
    preview: str
    """How the first prompt begins, on one line; empty where none was found."""
    updated: datetime
    """When it was written to last; UTC."""


@frozen
class PreviewMessage:
    role: Literal["user", "assistant"]
    text: str
    """How it begins; lines are kept."""


def list_sessions(
    home: Path, *, cwd: Path | None = None, search: str = "", limit: int = 25
) -> list[SessionSummary]:
    """Up to `limit` of the `recent_sessions`.

    Args:
        home: `$CODEX_HOME`.
        cwd: absolute; None for sessions of any directory.
        search: words that must all occur, in upper or lower case, in the name, the first prompt, the
            directory, the branch or the id.
    """
    names = thread_names(home)
    words = search.casefold().split()
    found: list[SessionSummary] = []
    for path, meta, modified in recent_sessions(home, cwd=cwd, model_provider=None):
        if len(found) == limit:
            break
        try:
            preview = " ".join(_first_prompt(path).split())[:_SHOWN_CHARACTERS]
        except OSError:
            continue
        name = names.get(meta.id)
        fields = (name, preview, meta.cwd, meta.git.get("branch"), meta.id)
        text = "\n".join(filter(None, fields)).casefold()
        if all(word in text for word in words):
            updated = datetime.fromtimestamp(modified / 1e9, UTC)
            found.append(SessionSummary(meta.id, path, name, preview, updated))
    return found


def preview_messages(path: Path, *, limit: int = 6) -> list[PreviewMessage]:
    """The last messages of a session, up to `limit`, oldest first; none if the file cannot be read."""
    size = _TAIL_BYTES
    while True:
        try:
            messages, is_all = _tail(path, size)
        except OSError:
            return []
        if len(messages) >= limit or is_all or size >= _MAX_TAIL_BYTES:
            return messages[-limit:]
        size *= 8


def _first_prompt(path: Path) -> str:
    left = _HEAD_BYTES
    with path.open("rb") as lines:
        for line in lines:
            left -= len(line)
            if (prompt := prompt_of(_item(line))) is not None:
                return prompt.text
            if left <= 0:
                break
    return ""


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
        elif item.get("role") == "assistant" and (
            text := "".join(message_texts(item.get("content")))
        ):
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
