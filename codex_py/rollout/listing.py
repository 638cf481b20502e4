"""Lists the newest sessions of a home, searches their messages, and previews a session.

A list reads a file lazily and only up to its first prompt: with thousands of sessions, it costs a
directory walk and one read for each listed session. A search reads files line by line.
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
"""The size of the beginning of a file that is searched for the first prompt."""
_SHOWN_CHARACTERS: Final = 500
_SHOWN_PLACES: Final = 3
_MAX_MESSAGE_BYTES: Final = 1 << 24
"""Messages in longer lines are not searched."""
_MODEL: Final = re.compile(rb'"model":"([^"\\]*)"')
_NOT_SAID: Final = re.compile(
    r"<(\w+)[^<>]*>.*?</\1>|```.*?```|\[Image #\d+\]|(?<!\S)(?:@|\$[A-Za-z])\S*",
    re.DOTALL,
)
"""The parts of a prompt that are not the user's words: blocks of attached text, pictures, files and
skills."""
_SNIPPET: Final = (60, 200)
"""The numbers of characters to show before and after the start of a found word."""


@frozen
class SessionSummary:
    id: str
    path: Path
    name: str | None
    """The name that the user gave the session."""
    preview: str
    """The beginning of the first prompt, on one line; empty if no prompt was found."""
    title: str
    """The first words in the prompt that are the user's own."""
    created: datetime
    updated: datetime
    """The time of the last write; UTC."""
    cwd: str
    branch: str | None
    model: str | None
    """The model of the first turn."""
    forked_from: str | None
    """The id of the session that the user forked; None for any other session."""

    @property
    def fork_mark(self) -> str:
        """A text such as ` (fork of 01a20664-ee19…)`; empty for a session that is not a fork."""
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
        text = "\n".join(
            filter(None, (each.name, each.preview, each.cwd, each.branch))
        ).casefold()
        # Many ids contain a given short number.
        return all(word in text or each.id.startswith(word) for word in words)

    summaries = _summaries(home, cwd, archived=archived, by_start=by_start)
    return list(islice(filter(fits, summaries), limit))


def search_sessions(
    home: Path, words: Sequence[str], *, archived: bool = False
) -> Iterator[tuple[SessionSummary, list[PreviewMessage]]]:
    """Search for sessions in which one prompt or answer contains all the words.

    Yields the sessions as they are found, newest first, each with its first three such messages.
    The text of a message is a snippet of the line with the first word.

    Args:
        words: the words; case does not matter.
        archived: search archived sessions instead.
    """
    words = [word.casefold() for word in words]
    # JSON can spell words with other characters in several ways.
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
    path: Path, words: Sequence[str], plain: Sequence[bytes]
) -> Iterator[PreviewMessage]:
    with path.open("rb", buffering=1 << 16) as file:
        for line in iter(partial(file.readline, _MAX_MESSAGE_BYTES), b""):
            if b'"message"' not in line or not all(
                map(line.lower().__contains__, plain)
            ):
                continue
            message = _message(line)
            if message is None or not all(
                map(message.text.casefold().__contains__, words)
            ):
                continue
            lines = message.text.splitlines()
            said = next(
                (each for each in lines if words[0] in each.casefold()), message.text
            )
            at = max(0, said.casefold().find(words[0]))
            before, behind = _SNIPPET
            start = max(0, at - before)
            snippet = said[start : at + behind].strip()
            if start:
                snippet = f"…{snippet}"
            yield PreviewMessage(message.role, snippet)


def _summaries(
    home: Path, cwd: Path | None, *, archived: bool, by_start: bool = False
) -> Iterator[SessionSummary]:
    names = thread_names(home)
    folder = ARCHIVED_SESSIONS if archived else SESSIONS
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
    """The first words of a prompt that are the user's own, on one line, without mentions and
    attached texts.

    The title of the prompt of `/init` is `/init`.
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
    """The last messages of a session, up to `limit`, oldest first; empty if the file cannot be
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
    """The first prompt, or an empty text, and the model of its turn."""
    first = next(turn_starts(path, _HEAD_BYTES), ListedTurn(0.0, None, ""))
    return first.prompt, first.model


def turn_starts(path: Path, left: float = inf) -> Iterator[ListedTurn]:
    """The prompts in the first `left` bytes of a session file, taken-back ones included. Raises an
    `OSError`."""
    model = None
    with path.open("rb") as file:
        for line in iter(partial(file.readline, _MAX_MESSAGE_BYTES), b""):
            left -= len(line)
            if b'"turn_context"' in line and (found := _MODEL.search(line)) is not None:
                model = found[1].decode(errors="replace")
            prompt = prompt_of(_item(line))
            if prompt is not None:
                time = _time(text_field(decode_json(line), "timestamp"))
                yield ListedTurn(time.timestamp() if time else 0.0, model, prompt.text)
            if left <= 0:
                break


def _message(line: bytes) -> PreviewMessage | None:
    """The complete prompt or answer in a line; None for other lines."""
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
    """The decoded message in a line of a session file; None for other lines."""
    if b'"response_item"' not in line or b'"message"' not in line:
        return None
    try:
        payload: Any = decode_json(line)["payload"]
        if payload["type"] == "message":
            return payload
        return None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
