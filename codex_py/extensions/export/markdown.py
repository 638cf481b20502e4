"""A conversation as Markdown, https://spec.commonmark.org."""

import re
from collections.abc import Iterator

from codex_py.api.conversations import (
    Conversation,
    Diff,
    Entry,
    Part,
    closed,
    entries,
    fenced,
)
from codex_py.api.streams import on_one_line

_HEADINGS = {"user": "## User", "agent": "## Agent"}


def markdown(document: Conversation) -> Iterator[str]:
    """Yield the parts of the text, in order."""
    yield f"# {on_one_line(document.title) or 'Conversation'}\n\n"
    for name, value in document.facts:
        yield f"- {name}: {on_one_line(value)}\n"
    yield from conversation(document)


def conversation(document: Conversation) -> Iterator[str]:
    """Yield the conversation without the head of the document.

    Each part is a block of Markdown, and begins with an empty line.
    """
    for entry in entries(document.items):
        for block in _blocks(entry):
            yield f"\n{block}\n"


def _blocks(entry: Entry) -> Iterator[str]:
    if entry.kind == "command":
        output = "".join(f"\n{part.text}" for part in entry.parts)
        yield fenced(f"$ {entry.title}{output}", "console")
        if entry.failed:
            yield f"({entry.note})"
        return
    yield _HEADINGS.get(entry.kind) or _bold_heading(entry)
    for part in entry.parts:
        text = _part_block(part)
        if entry.kind == "thought":
            text = _quoted(text)
        yield text


def _quoted(text: str) -> str:
    quoted = [f"> {line}".rstrip() for line in text.split("\n")]
    return "\n".join(quoted)


def _bold_heading(entry: Entry) -> str:
    note = f" ({entry.note})" if entry.note else ""
    return f"**{_escaped(entry.title)}**{note}"


def _part_block(part: Part) -> str:
    if isinstance(part, Diff):
        return fenced(part.text, "diff")
    if part.form == "code":
        return fenced(part.text, part.language)
    return closed(part.text)


def _escaped(text: str) -> str:
    """Return the text on one line, with a backslash before each character of Markdown."""
    on_line = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", on_line)
