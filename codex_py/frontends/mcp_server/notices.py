"""Converts the events of a session to messages of Codex's `codex/event`, and to lines for people.

The messages have the format of Codex 0.145. They are the ones that clients watch for.
"""

import shlex
from collections.abc import Collection
from typing import Any

from codex_py.app.views.item_words import ItemWords, Kind, item_words
from codex_py.protocol import event_items, events
from codex_py.protocol.stream import Usage

_MAX_LINE_CHARS = 200
_TOLD_AT_END: Collection[Kind] = ("agent", "thought", "change", "search")
_NOT_TOLD: Collection[Kind] = ("user", "agents", "error", "note", "time")
"""All other kinds of items are told at their start."""


def codex_event(event: events.Event) -> dict[str, Any] | None:
    """The message of `codex/event` for an event; None for most of the live ones."""
    match event:
        case events.TurnStarted():
            return {"type": "task_started"}
        case events.ItemStarted(event_items.CommandExecution() as item):
            return {"type": "exec_command_begin", **_command(item)}
        case events.ItemStarted(event_items.McpToolCall() as item):
            return {"type": "mcp_tool_call_begin", **_invocation(item)}
        case events.ItemStarted(event_items.TodoList() as item) | events.ItemUpdated(
            event_items.TodoList() as item
        ):
            return _plan(item)
        case events.ItemCompleted(item):
            return _done(item)
        case events.UsageReported(last, total, window):
            info = {
                "total_token_usage": _usage(total),
                "last_token_usage": _usage(last),
                "model_context_window": window,
            }
            return {"type": "token_count", "info": info, "rate_limits": None}
        case events.Reconnecting(message):
            return {"type": "stream_error", "message": message}
        case events.Error(message):
            return {"type": "error", "message": message}
        case events.TurnCompleted(diff=str(diff)) | events.TurnFailed(diff=str(diff)):
            return {"type": "turn_diff", "unified_diff": diff}
        case events.TurnFailed(error) if error.code == "aborted":
            return {"type": "turn_aborted", "reason": "interrupted"}
        case _:
            return None


def warning_text(event: events.Event) -> str | None:
    """A warning for the user, if the event is one."""
    match event:
        case events.ItemCompleted(event_items.ErrorItem(message=message)):
            return message
        case events.ItemCompleted(event_items.FileChange(error={"message": message})):
            return message
        case events.Reconnecting(message):
            return message
        case _:
            return None


def progress_text(event: events.Event) -> str | None:
    """One line about the current work; None if the event says nothing about it."""
    match event:
        case events.TurnStarted():
            text = "thinking"
        case events.ItemStarted(event_items.TodoList() as plan) | events.ItemUpdated(
            event_items.TodoList() as plan
        ):
            done = sum(entry.completed for entry in plan.items)
            text = f"{done} of {len(plan.items)} steps of the plan done"
        case events.ItemStarted(item):
            text = _started(item_words(item, is_done=False))
        case events.ItemCompleted(item):
            text = _ended(item_words(item))
        case events.McpToolCallProgress(message=message) | events.Reconnecting(message):
            text = message
        case _:
            return None
    if text is None:
        return None
    line = " ".join(text.split())
    if len(line) <= _MAX_LINE_CHARS:
        return line
    return f"{line[: _MAX_LINE_CHARS - 1]}…"


def _started(words: ItemWords) -> str | None:
    if words.kind in {*_TOLD_AT_END, *_NOT_TOLD}:
        return None
    return _lower(words.line)


def _ended(words: ItemWords) -> str | None:
    if words.kind not in _TOLD_AT_END or words.failed is not None:
        return None
    if words.kind in {"agent", "thought"}:
        return words.body[0].text
    return _lower(words.line)


def _lower(line: str) -> str:
    return line[:1].lower() + line[1:]


def _done(item: event_items.ThreadItem) -> dict[str, Any] | None:
    """The message for an item that is done; None for most patches and plans."""
    match item:
        case event_items.AgentMessage(text=text):
            return {"type": "agent_message", "message": text}
        case event_items.ReasoningSummary(text=text):
            return {"type": "agent_reasoning", "text": text}
        case event_items.ErrorItem(message=message):
            return {"type": "warning", "message": message}
        case event_items.CommandExecution():
            return _command_end(item)
        case event_items.McpToolCall():
            if item.error is None:
                result = {"Ok": item.result}
            else:
                result = {"Err": item.error["message"]}
            return {"type": "mcp_tool_call_end", **_invocation(item), "result": result}
        case event_items.WebSearch(id=call_id, query=query):
            return {"type": "web_search_end", "call_id": call_id, "query": query}
        case _:
            return None


def _command_end(item: event_items.CommandExecution) -> dict[str, Any]:
    output = item.aggregated_output
    exit_code = item.exit_code
    if exit_code is None:
        exit_code = -1
    seconds, milliseconds = divmod(item.duration_ms or 0, 1000)
    end = {
        "stdout": output,
        "stderr": "",
        "aggregated_output": output,
        "formatted_output": output,
        "exit_code": exit_code,
        "duration": {"secs": seconds, "nanos": milliseconds * 1_000_000},
        "status": item.status,
    }
    return {"type": "exec_command_end", **_command(item), **end}


def _command(item: event_items.CommandExecution) -> dict[str, Any]:
    """The fields that the messages of a command have in common."""
    try:
        argv = shlex.split(item.command)
    except ValueError:
        argv = [item.command]
    return {"call_id": item.id, "command": argv, "cwd": item.cwd}


def _invocation(item: event_items.McpToolCall) -> dict[str, Any]:
    call = {"server": item.server, "tool": item.tool, "arguments": item.arguments}
    return {"call_id": item.id, "invocation": call}


def _plan(item: event_items.TodoList) -> dict[str, Any]:
    plan = [{"step": entry.text, "status": entry.status} for entry in item.items]
    return {"type": "plan_update", "explanation": item.explanation, "plan": plan}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_output_tokens,
        "total_tokens": usage.total_tokens,
    }
