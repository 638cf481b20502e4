"""Responses API streams as data: one in full, as OpenAI sends it, and its bytes."""

import json
from typing import Any

Event = dict[str, Any]


def sse_bytes(*events: Event) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in events
    )


REASONING: Event = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I look at the files."}],
    "encrypted_content": "gAAA",
}
MESSAGE: Event = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [
        {
            "type": "output_text",
            "text": "Ich prüfe 👍 das.",
            "annotations": [],
            "logprobs": [],
        }
    ],
}
CALL: Event = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "shell",
    "arguments": '{"command":["ls"]}',
    "status": "completed",
}


def full_stream() -> list[Event]:
    """Reasoning, a message and a call, with every event that OpenAI has for them."""
    text = MESSAGE["content"][0]["text"]
    events: list[Event] = [
        _response("created", "in_progress"),
        _response("in_progress", "in_progress"),
        _item("added", 0, {"type": "reasoning", "id": "rs_1", "summary": []}),
        _summary("part.added", part={"type": "summary_text", "text": ""}),
        _summary("text.delta", delta="I look at "),
        _summary("text.delta", delta="the files."),
        _summary("text.done", text="I look at the files."),
        _summary("part.done", part=REASONING["summary"][0]),
        _item("done", 0, REASONING),
        _item("added", 1, {**MESSAGE, "status": "in_progress", "content": []}),
        _text(
            "content_part.added",
            part={"type": "output_text", "text": "", "annotations": []},
        ),
        _text("output_text.delta", delta="Ich prüfe "),
        _text("output_text.delta", delta="👍 das."),
        _text("output_text.done", text=text),
        _text("content_part.done", part=MESSAGE["content"][0]),
        _item("done", 1, MESSAGE),
        _item("added", 2, {**CALL, "status": "in_progress", "arguments": ""}),
        _arguments("delta", delta='{"command":'),
        _arguments("delta", delta='["ls"]}'),
        _arguments("done", arguments='{"command":["ls"]}'),
        _item("done", 2, CALL),
        _response(
            "completed",
            "completed",
            output=[REASONING, MESSAGE, CALL],
            usage={
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 12},
                "total_tokens": 120,
            },
        ),
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _response(state: str, status: str, **fields: Any) -> Event:
    response: Event = {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "output": [],
        **fields,
    }
    return {"type": f"response.{state}", "response": response}


def _item(state: str, index: int, item: Event) -> Event:
    return {
        "type": f"response.output_item.{state}",
        "output_index": index,
        "item": item,
    }


def _summary(kind: str, **fields: Any) -> Event:
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    return {"type": f"response.reasoning_summary_{kind}", **place, **fields}


def _text(kind: str, **fields: Any) -> Event:
    return {
        "type": f"response.{kind}",
        "item_id": "msg_1",
        "output_index": 1,
        "content_index": 0,
        **fields,
    }


def _arguments(kind: str, **fields: Any) -> Event:
    place = {"item_id": "fc_1", "output_index": 2}
    return {"type": f"response.function_call_arguments.{kind}", **place, **fields}
