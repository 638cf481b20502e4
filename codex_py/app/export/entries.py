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

_LONGEST = 20_000
"""The characters of one output, one diff or one prompt of an agent."""
_SHORT_TURN_MS = 2_000
"""The milliseconds of a quick turn, which needs no line, as in the terminal."""
_STEPS = {"completed": "✔", "in_progress": "▸", "pending": "□"}

Kind: TypeAlias = Literal[
    "user", "agent", "thought", "command", "change", "plan", "call", "note", "error"
]


@frozen
class Text:
    text: str
    form: Literal["markdown", "plain", "code"] = "code"
    language: str = ""


@frozen
class Diff:
    text: str
    files: Sequence[ShownFile]


Part: TypeAlias = Text | Diff


@frozen
class ExportEntry:
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
        if not (
            isinstance(item, event_items.TurnTime) and item.duration_ms < _SHORT_TURN_MS
        ):
            yield _entry(item)


def _entry(item: event_items.ThreadItem) -> ExportEntry:
    match item:
        case event_items.CommandExecution():
            return _command(item)
        case event_items.FileChange():
            return _change(item)
        case event_items.TodoList():
            steps = [f"- {_STEPS[step.status]} {step.text}" for step in item.items]
            parts = filter(None, (item.explanation, "\n".join(steps)))
            text = "\n\n".join(parts)
            return ExportEntry("plan", "Updated plan", parts=_texts(text, "markdown"))
        case event_items.McpToolCall():
            return _call(item)
        case event_items.CollabToolCall():
            return _agents(item)
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
            return _said(item)


def _said(
    item: event_items.UserMessage
    | event_items.AgentMessage
    | event_items.ReasoningSummary,
) -> ExportEntry:
    match item:
        case event_items.UserMessage():
            images = "".join(f"\n[image: {path}]" for path in item.images)
            return ExportEntry(
                "user", parts=_texts((item.text + images).strip("\n"), "plain")
            )
        case event_items.AgentMessage(text=text):
            return ExportEntry("agent", parts=_texts(without_tags(text), "markdown"))
        case event_items.ReasoningSummary(text=text):
            return ExportEntry("thought", "Reasoning", parts=_texts(text, "markdown"))


def _texts(
    text: str, form: Literal["markdown", "plain", "code"] = "code", language: str = ""
) -> list[Part]:
    if text.strip():
        return [Text(plain(text, tab=4), form, language)]
    return []


def _shortened(text: str) -> str:
    """Return the text; if it is long, its first and last characters with a remark between them."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n{_left_out(text)}\n{text[-half:]}"


def _left_out(text: str) -> str:
    return f"[… {len(text) - _LONGEST:,} characters are left out …]"


def _command(item: event_items.CommandExecution) -> ExportEntry:
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
        plain(script_of(item.command).strip()),
        ", ".join(notes),
        item.status in {"failed", "declined"},
        _texts(output),
    )


def _change(item: event_items.FileChange) -> ExportEntry:
    if item.status == "failed":
        names = ", ".join(change.path for change in item.changes)
        if item.is_declined:
            title = f"Declined patch of {names}"
        else:
            title = f"Failed patch of {names}"
        if item.error is None:
            message = ""
        else:
            message = item.error["message"]
        return ExportEntry("change", plain(title), failed=True, parts=_texts(message))
    diff = item.diff[:_LONGEST]
    files = read_diff(diff)
    verb = "Edited"
    names = [change.path for change in item.changes]
    if files:
        names = [_name(file) for file in files]
    if len(files) == 1:
        verb = files[0].verb
    if len(diff) < len(item.diff):
        remark = _left_out(item.diff)
    else:
        remark = ""
    parts: list[Part]
    if files:
        parts = [Diff(plain(diff).rstrip("\n"), files)]
    else:
        parts = _texts(diff)
    return ExportEntry(
        "change", plain(f"{verb} {', '.join(names)}"), remark, parts=parts
    )


def _name(file: ShownFile) -> str:
    if file.moved_to:
        return f"{file.path} → {file.moved_to}"
    return file.path


def _call(item: event_items.McpToolCall) -> ExportEntry:
    arguments = item.arguments
    if arguments:
        told = json.dumps(arguments, ensure_ascii=False, indent=2)
    else:
        told = ""
    if item.error is None:
        message = ""
    else:
        message = str(item.error.get("message") or item.error)
    said = [
        *_texts(_shortened(told), language="json"),
        *_texts(_shortened(result_text(item.result))),
    ]
    return ExportEntry(
        "call",
        plain(f"Called {item.server}.{item.tool}"),
        item.status if item.status == "failed" else "",
        item.status == "failed" or bool(message),
        [*said, *_texts(message)],
    )


def _agents(item: event_items.CollabToolCall) -> ExportEntry:
    names = ", ".join(item.names.get(each, each) for each in item.receiver_thread_ids)
    parts = _texts(_shortened(item.prompt or ""), "markdown")
    for agent_id, state in item.agents_states.items():
        if state.message:
            name = item.names.get(agent_id, agent_id)
            text = f"{name} ({state.status}):\n\n{state.message}"
            parts += _texts(_shortened(text), "markdown")
    title = plain(f"{agent_verb(item.tool, is_done=True)} {names}")
    return ExportEntry("call", title, failed=item.status == "failed", parts=parts)
