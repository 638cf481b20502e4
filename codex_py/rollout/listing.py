"""Lists the newest sessions of a home, searches their messages, and previews a session.

A list reads each file only up to its first prompt, and only when the session is asked for: of
thousands of sessions, it costs a directory walk and one read for each that is listed. A search reads
files line by line.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from codex_py.instructions import instruction_text
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import text_field
from codex_py.protocol.messages import decode_json
from codex_py.protocol.prompts import message_texts, prompt_of
from codex_py.rollout.index import recent_sessions, thread_names
from codex_py.rollout.lines import lines_with
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS

_HEAD_BYTES: Final = 1 << 20
"""The bytes at the beginning of a file that are searched for the first prompt."""
_SHOWN_CHARACTERS: Final = 500
_SHOWN_PLACES: Final = 3
"""The number of found messages that are shown of each session."""
_MAX_MESSAGE_BYTES: Final = 1 << 24
"""The limit for a line; messages in longer ones are not searched."""
_MODEL: Final = re.compile(rb'"model":"([^"\\]*)"')
_NOT_SAID: Final = re.compile(
    r"<(\w+)[^<>]*>.*?</\1>|```.*?```|\[Image #\d+\]|(?<!\S)(?:@|\$[A-Za-z])\S*",
    re.DOTALL,
)
"""The parts of a prompt that are not the user's words: blocks of attached text, pictures, files and
skills."""
_SNIPPET_BEFORE: Final = 60
_SNIPPET_AFTER: Final = 200
"""The characters to show before and after the start of a found word."""


@frozen
class SessionSummary:
    id: str
    path: Path
    name: str | None
    """The name that the user gave the session."""
    preview: str
    """The beginning of the first prompt, on one line; empty if no prompt was found."""
    title: str
    """The first words of that prompt that are the user's own; see `title_of`."""
    created: datetime
    updated: datetime
    """The time of the last write, in UTC."""
    cwd: str
    branch: str | None
    model: str | None
    """The model of the first turn."""
    forked_from: str | None
    """The id of the session that the user forked; None for any other session."""

    @property
    def fork_mark(self) -> str:
        """A text such as ` (fork of 01a20664-ee19…)`; empty if the session is no fork."""
        if self.forked_from:
            return f" (fork of {self.forked_from[:13]}…)"
        return ""


@frozen
class PreviewMessage:
    role: Literal["user", "assistant"]
    text: str
    """The beginning of the message, with its line breaks."""


def list_sessions(
    home: Path,
    *,
    cwd: Path | None = None,
    search: str = "",
    limit: int = 25,
    archived: bool = False,
    by_start: bool = False,
) -> list[SessionSummary]:
    """Return up to `limit` of the `recent_sessions`.

    Args:
        home: `$CODEX_HOME`.
        cwd: absolute; None for sessions of any directory.
        search: words that must all occur, in upper or lower case, in the name, the first prompt, the
            directory or the branch, or begin the id.
        archived: list archived sessions instead.
        by_start: the most recently started session comes first.
    """
    words = search.casefold().split()

    def fits(each: SessionSummary) -> bool:
        texts = (each.name or "", each.preview, each.cwd, each.branch or "")
        text = "\n".join(texts).casefold()
        # An id has to begin with the word: many ids contain a short number somewhere.
        return all(word in text or each.id.startswith(word) for word in words)

    summaries = _summaries(home, cwd, archived=archived, by_start=by_start)
    return list(islice(filter(fits, summaries), limit))


def search_sessions(
    home: Path,
    words: Sequence[str],
    *,
    archived: bool = False,
) -> Iterator[tuple[SessionSummary, list[PreviewMessage]]]:
    """Search for sessions in which one prompt or answer contains all the words.

    Yields the sessions as they are found, newest first, each with its first three such messages.
    The text of a message is a snippet of the line with the first word.

    Args:
        words: the words; case does not matter.
        archived: search archived sessions instead.
    """
    words = [word.casefold() for word in words]
    # JSON can spell other characters in several ways, so only these words can be found in the bytes.
    plain_words = [word for word in words if word.isascii() and word.isalnum()]
    plain = [word.encode() for word in plain_words]
    for summary in _summaries(home, None, archived=archived):
        try:
            found = list(islice(_places(summary.path, words, plain), _SHOWN_PLACES))
            if found:
                yield summary, found
        except OSError:
            continue


def _places(
    path: Path,
    words: Sequence[str],
    plain: Sequence[bytes],
) -> Iterator[PreviewMessage]:
    """The messages of a file that contain all words, each cut to the place of the first word.

    Args:
        words: in the form that `casefold` makes.
        plain: those of the words that can be found in the bytes of a line.
    """
    with path.open("rb", buffering=1 << 16) as file:
        for line in iter(partial(file.readline, _MAX_MESSAGE_BYTES), b""):
            if b'"message"' not in line:
                continue
            data = line.lower()
            if not all(word in data for word in plain):
                continue
            message = _message(line)
            if message is None:
                continue
            text = message.text.casefold()
            if all(word in text for word in words):
                yield PreviewMessage(message.role, _snippet(message.text, words[0]))


def _snippet(text: str, word: str) -> str:
    """Cut the line of a text that contains a word to the place of the word."""
    lines = text.splitlines()
    shown = next((line for line in lines if word in line.casefold()), text)
    at = max(0, shown.casefold().find(word))
    start = max(0, at - _SNIPPET_BEFORE)
    snippet = shown[start : at + _SNIPPET_AFTER].strip()
    if start:
        return f"…{snippet}"
    return snippet


def _summaries(
    home: Path,
    cwd: Path | None,
    *,
    archived: bool,
    by_start: bool = False,
) -> Iterator[SessionSummary]:
    """Read the sessions one after the other; a file that cannot be read is left out."""
    names = thread_names(home)
    folder = SESSIONS
    if archived:
        folder = ARCHIVED_SESSIONS
    found = recent_sessions(home, cwd=cwd, folder=folder, by_start=by_start)
    for path, meta, modified in found:
        updated = datetime.fromtimestamp(modified / 1e9, UTC)
        try:
            prompt, model = beginning(path)
        except OSError:
            continue
        yield SessionSummary(
            id=meta.id,
            path=path,
            name=names.get(meta.id),
            preview=" ".join(prompt.split())[:_SHOWN_CHARACTERS],
            title=title_of(prompt),
            created=_time(meta.timestamp) or updated,
            updated=updated,
            cwd=meta.cwd,
            branch=meta.git.get("branch"),
            model=model,
            forked_from=None if meta.continues_id else meta.forked_from_id,
        )


def title_of(prompt: str) -> str:
    """Return the first words of a prompt, on one line, without mentions and attached texts.

    A prompt that has nothing else is its own title. That of `/init` has the title `/init`.
    """
    if prompt.strip() == instruction_text("commands/init.md").strip():
        return "/init"
    said = _NOT_SAID.sub(" ", prompt).split() or prompt.split()
    return " ".join(said)[:_SHOWN_CHARACTERS]


def _time(timestamp: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(timestamp)
    return None


def preview_messages(path: Path, *, limit: int = 6) -> list[PreviewMessage]:
    """Read the last messages of a session, up to `limit`, oldest first; none if the file cannot be
    read."""
    try:
        with path.open("rb") as file:
            lines = (line for _, line in lines_with(b'"message"', file))
            found = list(islice(filter(None, map(_message, lines)), limit))
    except OSError:
        return []
    return [
        PreviewMessage(each.role, each.text[:_SHOWN_CHARACTERS])
        for each in reversed(found)
    ]


class ListedTurn(NamedTuple):
    time: float
    """The time of the prompt, in seconds since the epoch."""
    model: str | None
    prompt: str


def beginning(path: Path) -> tuple[str, str | None]:
    """Read the first prompt of a session, and the model of its turn. The prompt is empty if there is
    none near the beginning."""
    first = next(turn_starts(path, _HEAD_BYTES), ListedTurn(0.0, None, ""))
    return first.prompt, first.model


def turn_starts(path: Path, left: float = inf) -> Iterator[ListedTurn]:
    """The prompts in the first `left` bytes of a session file, even if they were taken back.

    Raises an `OSError` if the file cannot be read.
    """
    model = None
    with path.open("rb") as file:
        for line in iter(partial(file.readline, _MAX_MESSAGE_BYTES), b""):
            left -= len(line)
            if b'"turn_context"' in line:
                found = _MODEL.search(line)
                if found is not None:
                    model = found[1].decode(errors="replace")
            prompt = prompt_of(_item(line))
            if prompt is not None:
                time = _time(text_field(decode_json(line), "timestamp"))
                seconds = time.timestamp() if time else 0.0
                yield ListedTurn(seconds, model, prompt.text)
            if left <= 0:
                break


def _message(line: bytes) -> PreviewMessage | None:
    """Read the prompt or the answer in a line, in full; None for other lines."""
    item = _item(line)
    if item is None:
        return None
    prompt = prompt_of(item)
    if prompt is not None:
        return PreviewMessage("user", prompt.text)
    text = "".join(message_texts(item.get("content")))
    if item.get("role") == "assistant" and text:
        return PreviewMessage("assistant", text)
    return None


def _item(line: bytes) -> Any:
    """Decode the message in a line of a session file; None for other lines."""
    if b'"response_item"' not in line or b'"message"' not in line:
        return None
    try:
        payload: Any = decode_json(line)["payload"]
        if payload["type"] == "message":
            return payload
        return None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
