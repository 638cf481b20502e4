"""Turns thread items into the entries of a conversation, for Markdown and the HTML page."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from codex_py.app.views.diffs import ShownFile, read_diff
from codex_py.app.views.item_text import (
    agent_verb,
    result_text,
    script_of,
    search_words,
)
from codex_py.protocol import event_items
from codex_py.protocol.frozen import frozen
from codex_py.protocol.plans import without_tags
from codex_py.streams.plain_text import command_output, plain
from codex_py.streams.times import took

_MAX_CHARS = 20_000
"""The limit for one output, one diff or one prompt of an agent."""
_SHORT_TURN_MS = 2_000
"""A turn shorter than this gets no line about its time, as in the terminal."""
_STEP_MARKS = {"completed": "✔", "in_progress": "▸", "pending": "□"}

Kind: TypeAlias = Literal[
    "user", "agent", "thought", "command", "change", "plan", "call", "note", "error"
]


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
class ExportEntry:
    """One thread item, as both formats show it: a heading, and parts below it."""

    kind: Kind
    title: str = ""
    """The script of a command; empty for messages."""
    note: str = ""
    """A remark such as the exit code."""
    failed: bool = False
    parts: Sequence[Part] = ()


def entries(items: Sequence[event_items.ThreadItem]) -> Iterator[ExportEntry]:
    """Yield the entries of a conversation. Their texts cannot control a terminal or hide text."""
    for item in items:
        if isinstance(item, event_items.TurnTime) and item.duration_ms < _SHORT_TURN_MS:
            continue
        yield _entry(item)


def _entry(item: event_items.ThreadItem) -> ExportEntry:
    match item:
        case event_items.CommandExecution():
            return _command_entry(item)
        case event_items.FileChange(status="failed"):
            return _failed_change_entry(item)
        case event_items.FileChange():
            return _change_entry(item)
        case event_items.TodoList():
            return _plan_entry(item)
        case event_items.McpToolCall():
            return _call_entry(item)
        case event_items.CollabToolCall():
            return _agents_entry(item)
        case event_items.WebSearch():
            return ExportEntry("call", plain(" ".join(search_words(item))))
        case event_items.ErrorItem(message=message, code="aborted"):
            return ExportEntry("note", message)
        case event_items.ErrorItem(message=message):
            return ExportEntry("error", "Error", failed=True, parts=_texts(message))
        case event_items.ContextCompaction():
            return ExportEntry(
                "note",
                "Compacted: for the model, a summary takes the place of the above",
            )
        case event_items.TurnTime(duration_ms=duration_ms):
            return ExportEntry("note", f"Worked for {took(duration_ms)}")
        case _:
            return _message_entry(item)


def _message_entry(
    item: event_items.UserMessage
    | event_items.AgentMessage
    | event_items.ReasoningSummary,
) -> ExportEntry:
    match item:
        case event_items.UserMessage():
            images = "".join(f"\n[image: {path}]" for path in item.images)
            text = f"{item.text}{images}".strip("\n")
            return ExportEntry("user", parts=_texts(text, "plain"))
        case event_items.AgentMessage(text=text):
            return ExportEntry("agent", parts=_texts(without_tags(text), "markdown"))
        case event_items.ReasoningSummary(text=text):
            return ExportEntry("thought", "Reasoning", parts=_texts(text, "markdown"))


def _texts(
    text: str,
    form: Literal["markdown", "plain", "code"] = "code",
    language: str = "",
) -> list[Part]:
    """Return the part with this text, or none if the text is blank."""
    if text.strip():
        return [Text(plain(text, tab=4), form, language)]
    return []


def _shortened(text: str) -> str:
    """Return the text; if it is long, its first and last characters with a remark between them."""
    if len(text) <= _MAX_CHARS:
        return text
    half = _MAX_CHARS // 2
    return f"{text[:half]}\n{_left_out_remark(text)}\n{text[-half:]}"


def _left_out_remark(text: str) -> str:
    return f"[… {len(text) - _MAX_CHARS:,} characters are left out …]"


def _command_entry(item: event_items.CommandExecution) -> ExportEntry:
    notes: list[str] = []
    if item.status == "declined":
        notes.append("declined")
    elif item.exit_code is not None:
        notes.append(f"exit {item.exit_code}")
    elif item.status != "completed":
        notes.append(item.status)
    if item.duration_ms is not None:
        notes.append(took(item.duration_ms))
    output = command_output(_shortened(item.aggregated_output)).strip("\n")
    return ExportEntry(
        "command",
        title=plain(script_of(item.command).strip()),
        note=", ".join(notes),
        failed=item.status in {"failed", "declined"},
        parts=_texts(output),
    )


def _failed_change_entry(item: event_items.FileChange) -> ExportEntry:
    names = ", ".join(change.path for change in item.changes)
    if item.is_declined:
        title = f"Declined patch of {names}"
    else:
        title = f"Failed patch of {names}"
    message = "" if item.error is None else item.error["message"]
    return ExportEntry("change", plain(title), failed=True, parts=_texts(message))


def _change_entry(item: event_items.FileChange) -> ExportEntry:
    diff = item.diff[:_MAX_CHARS]
    files = read_diff(diff)
    parts: list[Part]
    if files:
        names = [_shown_name(file) for file in files]
        parts = [Diff(plain(diff).rstrip("\n"), files)]
    else:
        names = [change.path for change in item.changes]
        parts = _texts(diff)
    verb = files[0].verb if len(files) == 1 else "Edited"
    title = plain(f"{verb} {', '.join(names)}")
    note = ""
    if len(diff) < len(item.diff):
        note = _left_out_remark(item.diff)
    return ExportEntry("change", title, note, parts=parts)


def _shown_name(file: ShownFile) -> str:
    if file.moved_to:
        return f"{file.path} → {file.moved_to}"
    return file.path


def _plan_entry(item: event_items.TodoList) -> ExportEntry:
    steps = [f"- {_STEP_MARKS[step.status]} {step.text}" for step in item.items]
    paragraphs = filter(None, (item.explanation, "\n".join(steps)))
    text = "\n\n".join(paragraphs)
    return ExportEntry("plan", "Updated plan", parts=_texts(text, "markdown"))


def _call_entry(item: event_items.McpToolCall) -> ExportEntry:
    """Return the entry of a call: its arguments as JSON, its result, and its error."""
    arguments = ""
    if item.arguments:
        arguments = json.dumps(item.arguments, ensure_ascii=False, indent=2)
    message = ""
    if item.error is not None:
        message = str(item.error.get("message") or item.error)
    is_failed = item.status == "failed"
    return ExportEntry(
        "call",
        title=plain(f"Called {item.server}.{item.tool}"),
        note="failed" if is_failed else "",
        failed=is_failed or bool(message),
        parts=[
            *_texts(_shortened(arguments), language="json"),
            *_texts(_shortened(result_text(item.result))),
            *_texts(message),
        ],
    )


def _agents_entry(item: event_items.CollabToolCall) -> ExportEntry:
    """Return the entry of a call to subagents: the prompt that they got, and their answers."""
    ids = item.receiver_thread_ids
    names = ", ".join(item.names.get(agent_id, agent_id) for agent_id in ids)
    parts = _texts(_shortened(item.prompt or ""), "markdown")
    for agent_id, state in item.agents_states.items():
        if state.message:
            name = item.names.get(agent_id, agent_id)
            text = f"{name} ({state.status}):\n\n{state.message}"
            parts += _texts(_shortened(text), "markdown")
    title = plain(f"{agent_verb(item.tool, is_done=True)} {names}")
    return ExportEntry("call", title, failed=item.status == "failed", parts=parts)
