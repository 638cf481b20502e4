"""The cell of each kind of item; here too are those of the plan, of MCP servers, searches and compaction."""

import json
from collections.abc import Mapping
from typing import Any, cast

from rich.console import RenderableType
from rich.text import Text

from codex_py.frontends.tui.cells.command import command_cell, running_cell
from codex_py.frontends.tui.cells.layout import Hanging, below, folded, marked, stacked
from codex_py.frontends.tui.cells.message import (
    note_cell,
    reasoning_cell,
    user_cell,
    worked_cell,
)
from codex_py.frontends.tui.cells.patch import change_cell, changing_cell
from codex_py.frontends.tui.plain import cut, one_line
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol import events
from codex_py.protocol.events import ContextCompaction, McpToolCall, TodoList, WebSearch

_LONGEST_ARGUMENTS = 300
_LONGEST_NAME = 100
_RESULT_HEAD, _RESULT_TAIL = 3, 2
_MOST_STEPS = 50


def item_cell(item: events.ThreadItem, theme: Theme) -> RenderableType | None:
    """A finished item; None for an answer, which is shown by its blocks."""
    match item:
        case events.UserMessage():
            return user_cell(item.text, theme, images=item.images)
        case events.ReasoningSummary():
            return reasoning_cell(item.text, theme)
        case events.CommandExecution():
            return command_cell(item, theme)
        case events.FileChange():
            return change_cell(item, theme)
        case events.TodoList():
            return plan_cell(item, theme)
        case events.McpToolCall():
            return call_cell(item, theme)
        case events.WebSearch():
            return search_cell(item, theme)
        case events.ErrorItem():
            return note_cell(item.message, theme, "warning")
        case events.ContextCompaction():
            return compaction_cell(item, theme)
        case events.TurnTime(duration_ms=duration_ms):
            return worked_cell(duration_ms, theme)
        case events.AgentMessage():
            return None


def live_cell(
    item: events.ThreadItem, output: str, elapsed_s: float, theme: Theme, *, tail: int
) -> RenderableType | None:
    """An item that is under way; None for one that is shown in another way.

    `output`: the end of what it has printed or said so far, of which `tail` lines may be shown.
    """
    match item:
        case events.CommandExecution():
            return running_cell(item, output, elapsed_s, theme, tail=tail)
        case events.McpToolCall():
            return calling_cell(item, output if tail else "", theme)
        case events.FileChange():
            return changing_cell(item, theme)
        case events.ContextCompaction():
            return compaction_cell(item, theme)
        case _:
            return None


def plan_cell(item: TodoList, theme: Theme) -> RenderableType:
    parts: list[RenderableType] = []
    if item.explanation:
        parts.append(folded(item.explanation, theme, head=10, tail=2, style="thought"))
    for entry in item.items[:_MOST_STEPS]:
        if entry.completed:
            glyph, style = "done", "step done"
        elif entry.in_progress:
            glyph, style = "now", "step"
        else:
            glyph, style = "open", "quiet"
        text = Text(one_line(entry.text, 500, theme.glyph("more")), theme.style(style))
        sign_style = theme.style("ok" if entry.completed else style)
        parts.append(Hanging(f"{theme.glyph(glyph)} ", text, style=sign_style))
    if (hidden := len(item.items) - _MOST_STEPS) > 0:
        parts.append(Text(f"{theme.glyph('more')} +{hidden} steps", theme.style("quiet")))
    head = Text("Updated Plan", theme.style("action"))
    body = below(stacked(parts), theme) if parts else Text("(no steps)", theme.style("quiet"))
    return marked(stacked([head, body]), theme, style="plan")


def call_cell(item: McpToolCall, theme: Theme) -> RenderableType:
    """A call that is over."""
    failed = item.error is not None or item.status in {"failed", "declined"}
    verb = "Declined" if item.status == "declined" else "Called"
    parts: list[RenderableType] = [_call(verb, item, theme)]
    if item.error is not None:
        message = str(item.error.get("message") or item.error)
        parts.append(below(folded(message, theme, head=8, tail=2, style="error"), theme))
    elif text := _result_text(item.result):
        parts.append(below(folded(text, theme, head=_RESULT_HEAD, tail=_RESULT_TAIL), theme))
    return marked(stacked(parts), theme, style="error" if failed else "ok")


def calling_cell(item: McpToolCall, progress: str, theme: Theme) -> RenderableType:
    """A call that is under way. `progress`: what the server said last, or nothing."""
    parts: list[RenderableType] = [_call("Calling", item, theme)]
    if progress:
        shown = one_line(progress, 200, theme.glyph("more"))
        parts.append(below(Text(shown, theme.style("quiet")), theme))
    return marked(stacked(parts), theme, style="accent")


def search_cell(item: WebSearch, theme: Theme) -> RenderableType:
    action = item.action or {}
    match action.get("type"):
        case "open_page":
            verb, what = "Opened", str(action.get("url") or item.query)
        case "find_in_page":
            place = action.get("url")
            verb, what = "Looked for", str(action.get("pattern") or item.query)
            what += f" in {place}" if place else ""
        case _:
            verb, what = "Searched the web for", item.query
    shown = one_line(what, 300, theme.glyph("more"))
    return marked(Text.assemble((f"{verb} ", theme.style("action")), shown), theme)


def compaction_cell(item: ContextCompaction, theme: Theme) -> RenderableType:
    match item.status:
        case "in_progress":
            return marked(Text("Compacting the conversation", theme.style("action")), theme)
        case "completed":
            text = Text("Compacted the conversation: a summary takes its place")
            text.stylize(theme.style("quiet"))
            return marked(text, theme)
        case _:
            text = Text("The conversation could not be compacted", theme.style("warning"))
            return marked(text, theme, glyph="warn", style="warning")


def _call(verb: str, item: McpToolCall, theme: Theme) -> Text:
    more = theme.glyph("more")
    name = one_line(f"{item.server}.{item.tool}", _LONGEST_NAME, more)
    arguments = _json(item.arguments) if item.arguments else ""
    return Text.assemble(
        (f"{verb} ", theme.style("action")),
        (name, theme.style("accent")),
        (f"({one_line(arguments, _LONGEST_ARGUMENTS, more)})", theme.style("quiet")),
    )


def _json(value: Any) -> str:
    """JSON of a value of any size, of which long parts are cut before they are written."""
    if isinstance(value, str):
        return json.dumps(cut(value, _LONGEST_ARGUMENTS, ""), ensure_ascii=False)
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())[:20]
        return "{" + ", ".join(f"{_json(str(key))}: {_json(part)}" for key, part in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, cast("list[Any]", value)[:20])) + "]"
    return cut(json.dumps(value, default=str), _LONGEST_ARGUMENTS, "")


def _result_text(result: Mapping[str, Any] | None) -> str:
    """The texts of a result; for images and the like, their kind."""
    if result is None:
        return ""
    content = result.get("content")
    texts: list[str] = []
    for part in cast("list[Any]", content)[:20] if isinstance(content, list) else []:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(f"[{kind}]")
            case _:
                pass
    if not texts and (structured := result.get("structured_content")) is not None:
        texts.append(_json(structured))
    return "\n".join(texts)
