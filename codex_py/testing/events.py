"""Builders for the events of a streamed response, as plain JSON objects.

A builder of an item returns a list of events, in OpenAI's order: added, deltas, done. Source of the
shapes: the streaming events in the Responses API reference.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeGuard, cast

Event: TypeAlias = dict[str, Any]


def ev_created(response_id: str = "resp_1") -> Event:
    """The beginning of a response."""
    response: Event = {
        "id": response_id,
        "object": "response",
        "status": "in_progress",
        "output": [],
    }
    return {"type": "response.created", "response": response}


def ev_item_done(item: Mapping[str, Any], index: int = 0) -> Event:
    """The single event that many servers send for an item of any type."""
    return {
        "type": "response.output_item.done",
        "output_index": index,
        "item": dict(item),
    }


def ev_message(
    text: str, *, index: int = 0, item_id: str | None = None, pieces: int = 1
) -> list[Event]:
    """An answer with its text in `pieces` deltas of about the same length."""
    item_id = item_id or f"msg_{index}"
    part: Event = {"type": "output_text", "text": "", "annotations": []}
    item = {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "in_progress",
    }
    whole: Event = {**part, "text": text}
    place = {"item_id": item_id, "output_index": index, "content_index": 0}
    length = max(1, math.ceil(len(text) / pieces))
    starts = range(0, len(text), length)
    deltas = [text[start : start + length] for start in starts]
    return [
        _added({**item, "content": []}, index),
        {"type": "response.content_part.added", **place, "part": part},
        *ev_text_deltas(deltas, index=index, item_id=item_id),
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.content_part.done", **place, "part": whole},
        ev_item_done({**item, "status": "completed", "content": [whole]}, index),
    ]


def ev_text_deltas(
    deltas: Iterable[str], *, index: int = 0, item_id: str | None = None
) -> list[Event]:
    """Text without the events before and after it, as from a broken stream or a sloppy server."""
    place = {
        "item_id": item_id or f"msg_{index}",
        "output_index": index,
        "content_index": 0,
    }
    return [
        {"type": "response.output_text.delta", **place, "delta": delta}
        for delta in deltas
    ]


def ev_reasoning(
    summary: str,
    *,
    index: int = 0,
    item_id: str | None = None,
    encrypted: str = "opaque",
) -> list[Event]:
    """A reasoning item with a summary."""
    item_id = item_id or f"rs_{index}"
    item = {"type": "reasoning", "id": item_id}
    place = {"item_id": item_id, "output_index": index, "summary_index": 0}
    part = {"type": "summary_text", "text": summary}
    return [
        _added({**item, "summary": []}, index),
        {
            "type": "response.reasoning_summary_part.added",
            **place,
            "part": {**part, "text": ""},
        },
        {"type": "response.reasoning_summary_text.delta", **place, "delta": summary},
        {"type": "response.reasoning_summary_text.done", **place, "text": summary},
        {"type": "response.reasoning_summary_part.done", **place, "part": part},
        ev_item_done(
            {**item, "summary": [part], "encrypted_content": encrypted}, index
        ),
    ]


def ev_function_call(
    call_id: str,
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    index: int = 0,
    **extra: Any,
) -> list[Event]:
    """A function call. `arguments` given as text are sent unchanged, valid JSON or not."""
    if isinstance(arguments, str):
        text = arguments
    else:
        text = json.dumps(arguments)
    item_id = f"fc_{call_id}"
    item = {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        **extra,
    }
    place = {"item_id": item_id, "output_index": index}
    return [
        _added({**item, "arguments": "", "status": "in_progress"}, index),
        {"type": "response.function_call_arguments.delta", **place, "delta": text},
        {"type": "response.function_call_arguments.done", **place, "arguments": text},
        ev_item_done({**item, "arguments": text, "status": "completed"}, index),
    ]


def ev_custom_tool_call(
    call_id: str, name: str, text: str, *, index: int = 0
) -> list[Event]:
    """A call of a freeform tool, such as `apply_patch`."""
    item_id = f"ctc_{call_id}"
    item = {"type": "custom_tool_call", "id": item_id, "call_id": call_id, "name": name}
    place = {"item_id": item_id, "output_index": index}
    return [
        _added({**item, "input": ""}, index),
        {"type": "response.custom_tool_call_input.delta", **place, "delta": text},
        {"type": "response.custom_tool_call_input.done", **place, "input": text},
        ev_item_done({**item, "input": text, "status": "completed"}, index),
    ]


def ev_local_shell_call(
    call_id: str, command: Iterable[str], *, index: int = 0, **action: Any
) -> list[Event]:
    """A call of OpenAI's own shell tool."""
    item: Event = {
        "type": "local_shell_call",
        "id": f"lsh_{call_id}",
        "call_id": call_id,
        "action": {"type": "exec", "command": list(command), "env": {}, **action},
        "status": "completed",
    }
    return [_added({**item, "status": "in_progress"}, index), ev_item_done(item, index)]


def ev_web_search_call(
    query: str, *, index: int = 0, item_id: str = "ws_1"
) -> list[Event]:
    """A search that the provider ran."""
    action = {"type": "search", "query": query}
    item = {
        "type": "web_search_call",
        "id": item_id,
        "status": "completed",
        "action": action,
    }
    return [
        _added(
            {"type": "web_search_call", "id": item_id, "status": "in_progress"}, index
        ),
        ev_item_done(item, index),
    ]


def ev_completed(
    *,
    input_tokens: int = 100,
    cached: int = 50,
    output_tokens: int = 20,
    **response: Any,
) -> Event:
    """The end of a response. Additional arguments become fields of its `response`."""
    usage = {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": input_tokens + output_tokens,
    }
    body = {"id": "resp_1", "object": "response", "status": "completed", "usage": usage}
    return {"type": "response.completed", "response": {**body, **response}}


def ev_failed(code: str, message: str) -> Event:
    """The end of a response that failed."""
    error = {"code": code, "message": message}
    body = {"id": "resp_1", "object": "response", "status": "failed", "error": error}
    return {"type": "response.failed", "response": body}


def ev_incomplete(reason: str = "max_output_tokens") -> Event:
    """The end of a response that broke off, such as at the limit of its tokens."""
    details = {"reason": reason}
    body = {"id": "resp_1", "status": "incomplete", "incomplete_details": details}
    return {"type": "response.incomplete", "response": {**body, "object": "response"}}


def sse(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Encode events as a stream of server-sent events. Events without a type, as in Chat
    Completions, get no name."""
    return b"".join(map(_one_sse, events))


def _one_sse(event: Mapping[str, Any]) -> bytes:
    data = b"data: %b\n\n" % json.dumps(event, ensure_ascii=False).encode()
    if "type" in event:
        return b"event: %b\n" % str(event["type"]).encode() + data
    return data


def is_responses_event(part: object) -> TypeGuard[Mapping[str, Any]]:
    """True for an event of the Responses API, which the builders make; False for events of other
    APIs."""
    if not isinstance(part, Mapping):
        return False
    event = cast("Mapping[str, Any]", part)
    kind = str(event.get("type"))
    # Anthropic's event of this name has the error in a field.
    return kind.startswith("response.") or (kind == "error" and "error" not in event)


def _added(item: Mapping[str, Any], index: int) -> Event:
    return {
        "type": "response.output_item.added",
        "output_index": index,
        "item": dict(item),
    }
