"""Turns thread items into the entries of a conversation, for Markdown and the HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from codex_py.app.views.command_script import script_of
from codex_py.app.views.diffs import ShownFile, read_diff
from codex_py.app.views.item_words import ItemWords, item_words
from codex_py.app.views.item_words import Kind as WordsKind
from codex_py.app.views.passages import MAX_CHARS, left_out_remark, safe_passages
from codex_py.protocol import event_items
from codex_py.protocol.frozen import frozen
from codex_py.streams.plain_text import plain
from codex_py.streams.times import took

_SHORT_TURN_MS = 2_000
"""A turn shorter than this gets no line about its time, as in the terminal."""

Kind: TypeAlias = Literal[
    "user", "agent", "thought", "command", "change", "plan", "call", "note", "error"
]
_KINDS: Mapping[WordsKind, Kind] = {
    "user": "user",
    "agent": "agent",
    "thought": "thought",
    "command": "command",
    "change": "change",
    "plan": "plan",
    "compaction": "note",
    "time": "note",
    "note": "note",
    "error": "error",
}
"""All other kinds are calls."""
_SAID_FAILURES = {"change", "question", "compaction", "error"}
"""The kinds whose verb or message tells the failure. That of others is a note."""


@frozen
class Text:
    text: str
    form: Literal["markdown", "plain", "code"] = "code"
    language: str = ""
    """The language of code, as Markdown names it; empty for output."""


@frozen
class Diff:
    text: str
    files: Sequence[ShownFile]
    """The same diff, parsed."""


Part: TypeAlias = Text | Diff


@frozen
class Entry:
    """One thread item, as both formats show it: a heading, and parts below it."""

    kind: Kind
    title: str = ""
    """The script of a command; empty for messages."""
    note: str = ""
    """A remark such as the exit code."""
    failed: bool = False
    parts: Sequence[Part] = ()


def entries(items: Sequence[event_items.ThreadItem]) -> Iterator[Entry]:
    """Yield the entries of a conversation. Their texts cannot control a terminal or hide text."""
    for item in items:
        if isinstance(item, event_items.TurnTime) and item.duration_ms < _SHORT_TURN_MS:
            continue
        yield _entry(item)


def _entry(item: event_items.ThreadItem) -> Entry:
    words = item_words(item)
    match item:
        case event_items.CommandExecution():
            return _command_entry(item, words)
        case event_items.FileChange(diff=diff) if words.failed is None:
            return _change_entry(diff, words)
        case event_items.ContextCompaction() if words.failed is None:
            title = "Compacted: for the model, a summary takes the place of the above"
            return Entry("note", title)
        case _:
            return _line_entry(words)


def _line_entry(words: ItemWords) -> Entry:
    """Return the entry of an item that needs no form of its own."""
    note = ""
    if words.failed is not None and words.kind not in _SAID_FAILURES:
        note = words.failed
    return Entry(
        kind=_KINDS.get(words.kind, "call"),
        title=plain(words.line),
        note=note,
        failed=words.failed is not None,
        parts=_parts(words),
    )


def _parts(words: ItemWords) -> list[Part]:
    parts: list[Part] = []
    for passage in safe_passages(words):
        match passage.form:
            case "markdown" | "plain":
                parts.append(Text(passage.text, passage.form))
            case "json":
                parts.append(Text(passage.text, language="json"))
            case _:
                parts.append(Text(passage.text))
    return parts


def _command_entry(item: event_items.CommandExecution, words: ItemWords) -> Entry:
    notes: list[str] = []
    if words.failed is not None:
        notes.append(words.failed)
    elif item.exit_code is not None:
        notes.append(f"exit {item.exit_code}")
    if item.duration_ms is not None:
        notes.append(took(item.duration_ms))
    return Entry(
        "command",
        title=plain(script_of(item.command).strip()),
        note=", ".join(notes),
        failed=words.failed is not None,
        parts=_parts(words),
    )


def _change_entry(diff: str, words: ItemWords) -> Entry:
    shown = diff[:MAX_CHARS]
    files = read_diff(shown)
    if not files:
        return _line_entry(words)
    verb = files[0].verb if len(files) == 1 else words.verb
    names = ", ".join(map(_shown_name, files))
    note = ""
    if len(shown) < len(diff):
        note = left_out_remark(diff)
    parts = [Diff(plain(shown).rstrip("\n"), files)]
    return Entry("change", plain(f"{verb} {names}"), note, parts=parts)


def _shown_name(file: ShownFile) -> str:
    if file.moved_to:
        return f"{file.path} → {file.moved_to}"
    return file.path
