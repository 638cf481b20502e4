"""Converts streamed answers to single JSON objects, for clients that ask with `stream=false`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from codex_py.testing.events import Event, sse
from codex_py.testing.reply import Pause, Reply


def whole_reply(reply: Reply, path: str) -> Reply:
    """The reply as one JSON object of the API with this path.

    An error in the stream becomes an HTTP error, and pauses are left out. A reply that is not a
    stream of that API is returned unchanged.
    """
    if reply.body is not None or reply.cut:
        return reply
    try:
        events = _events(reply)
    except ValueError:
        return reply
    for event in events:
        error = _error(event)
        if error is not None:
            body = json.dumps(error)
            return replace(reply, status=500, body=body.encode())
    body = json.dumps(_WHOLE[path](events))
    return replace(reply, body=body.encode())


def _events(reply: Reply) -> list[Event]:
    """Read the events of a stream. Raises a `ValueError` if one is not JSON."""
    stream = b""
    for part in reply.events:
        if isinstance(part, bytes):
            stream += part
        elif not isinstance(part, Pause):
            stream += sse([part])
    events: list[Event] = []
    for line in stream.splitlines():
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            if data != b"[DONE]":
                events.append(json.loads(data))
    return events


def _error(event: Event) -> Event | None:
    """The body of the HTTP error that an event stands for; None if it is no error."""
    if "error" in event:
        return event
    if event.get("type") == "error":
        return {"error": event}
    return None


def _response(events: Sequence[Event]) -> Event:
    """The last version of a response of the Responses API, with its items."""
    done = [
        event["item"]
        for event in events
        if event["type"] == "response.output_item.done"
    ]
    responses = [event["response"] for event in events if "response" in event]
    response: Event = responses[-1] if responses else {}
    return {**response, "output": response.get("output") or done}


def _completion(chunks: Sequence[Event]) -> Event:
    """A response of Chat Completions, from its chunks."""
    message: Event = {"role": "assistant", "content": None}
    calls: dict[int, Event] = {}
    finish = None
    usage = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            delta: Event = choice["delta"]
            for part in delta.pop("tool_calls", ()):
                call = calls.setdefault(part.pop("index"), {})
                _add(call, part)
            # The role is there already; each delta may repeat it.
            delta.pop("role", None)
            _add(message, delta)
    if calls:
        message["tool_calls"] = list(calls.values())
    first = chunks[0] if chunks else {}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**first, "object": "chat.completion", "choices": [choice], "usage": usage}


def _message(events: Sequence[Event]) -> Event:
    """A message of Anthropic's API, from its events."""
    message: Event = {}
    for event in events:
        match event:
            case {"type": "message_start"}:
                message = {**event["message"], "content": []}
            case {"type": "content_block_start"}:
                message["content"].append(event["content_block"])
            case {"type": "content_block_delta"}:
                block: Event = message["content"][-1]
                # The type of a delta is not that of its block.
                _add(block, {**event["delta"], "type": ""})
            case {"type": "content_block_stop"}:
                block: Event = message["content"][-1]
                arguments = block.pop("partial_json", None)
                if arguments is not None:
                    block["input"] = json.loads(arguments or "{}")
            case {"type": "message_delta"}:
                usage = {**message["usage"], **event["usage"]}
                message |= event["delta"]
                message["usage"] = usage
            case _:
                pass
    return message


def _add(whole: Event, delta: Mapping[str, Any]) -> None:
    """Append the texts of a delta to the texts of the whole."""
    for name, value in delta.items():
        if isinstance(value, dict):
            _add(whole.setdefault(name, {}), cast("Event", value))
        elif isinstance(value, str):
            whole[name] = (whole.get(name) or "") + value


_WHOLE: Final[Mapping[str, Callable[[Sequence[Event]], Event]]] = {
    "/responses": _response,
    "/chat/completions": _completion,
    "/messages": _message,
}
