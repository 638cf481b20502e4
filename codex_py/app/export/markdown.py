"""A conversation as Markdown, https://spec.commonmark.org."""

import re
from collections.abc import Iterator

from codex_py.app.export.document import Document
from codex_py.app.export.entries import Diff, ExportEntry, Part, entries
from codex_py.streams.terminal import on_one_line

_SAID = {"user": "## User", "agent": "## Agent"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def markdown(document: Document) -> Iterator[str]:
    """Yield the parts of the text, in order."""
    yield f"# {on_one_line(document.title) or 'Conversation'}\n\n"
    for name, value in document.facts:
        yield f"- {name}: {on_one_line(value)}\n"
    yield from conversation(document)


def conversation(document: Document) -> Iterator[str]:
    """Yield the entries without the heading. Each part begins with an empty line."""
    for entry in entries(document.items):
        yield from (f"\n{block}\n" for block in _blocks(entry))


def _blocks(entry: ExportEntry) -> Iterator[str]:
    if entry.kind == "command":
        output = "".join(f"\n{part.text}" for part in entry.parts)
        yield fenced(f"$ {entry.title}{output}", "console")
        if entry.failed:
            yield f"({entry.note})"
        return
    note = f" ({entry.note})" if entry.note else ""
    yield _SAID.get(entry.kind) or f"**{_escaped(entry.title)}**{note}"
    for part in entry.parts:
        text = _block(part)
        if entry.kind == "thought":
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        yield text


def _block(part: Part) -> str:
    if isinstance(part, Diff):
        return fenced(part.text, "diff")
    if part.form == "code":
        return fenced(part.text, part.language)
    return closed(part.text)


def fenced(text: str, language: str = "") -> str:
    """Return a block of code with a fence that the text does not contain."""
    inner_fences = re.findall("`{3,}", text)
    longest = max(map(len, inner_fences), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def closed(text: str) -> str:
    """Close a block of code that the text leaves open, so that the text after it stays outside."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    if fence:
        return f"{text}\n{fence}"
    return text


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", " ".join(text.split()))
