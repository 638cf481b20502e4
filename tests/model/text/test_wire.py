"""Requests and responses of a model that writes its calls as text."""

import html
import json
from dataclasses import replace
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.chat.wire import ChatWire
from codex_py.model.provider_data import Maker
from codex_py.model.responses.wire import ResponsesWire
from codex_py.model.text.format import session_tag
from codex_py.model.text.wire import TextToolsWire
from codex_py.protocol.items import CustomToolCall, FunctionCall, Message, ResponseItem
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import (
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    ToolChoice,
)
from codex_py.protocol.tools import FreeformSpec, FunctionSpec
from codex_py.testing import ev_completed, ev_message

RUN = FunctionSpec(
    "exec_command", "Runs.", {"type": "object", "properties": {"cmd": {}, "x": {}}}
)
PATCH = FreeformSpec("apply_patch", "Patches.", "start: x")
TAG = session_tag("t")
HISTORY: list[dict[str, Any]] = [
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "go"}],
    },
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "yes"}],
    },
    {
        "type": "function_call",
        "call_id": "a",
        "name": "exec_command",
        "arguments": "{}",
    },
    {
        "type": "custom_tool_call",
        "call_id": "b",
        "name": "apply_patch",
        "input": "*** x",
    },
    {"type": "function_call_output", "call_id": "a", "output": "A"},
    {"type": "custom_tool_call_output", "call_id": "b", "output": "[ERROR:EINVAL] B"},
]


def wire() -> TextToolsWire:
    maker = Maker("p", "p")
    return TextToolsWire(ChatWire(maker=maker), session_id="t", maker=maker)


def prompt(**fields: Any) -> Prompt:
    items = [EncodedItem(encode_json(item)) for item in HISTORY]
    return Prompt(model="m", input=items, cache_key="t", tools=[RUN, PATCH], **fields)


def decode(*deltas: str) -> list[ResponseEvent]:
    reader = wire().decoder(prompt())
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": d}}]} for d in deltas
    ]
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    data = [*(json.dumps(chunk) for chunk in [*chunks, end]), "[DONE]"]
    return [event for each in data for event in reader.feed(each)]


def items(events: list[ResponseEvent]) -> list[ResponseItem]:
    return [event.item for event in events if isinstance(event, OutputItemDone)]


def shown(events: list[ResponseEvent]) -> str:
    return "".join(
        event.delta for event in events if isinstance(event, OutputTextDelta)
    )


def test_tools_calls_and_results_travel_as_text() -> None:
    body = json.loads(wire().body(prompt(instructions="Be.")))
    assert "tools" not in body
    system, user, assistant, results = body["messages"]
    assert system["content"].startswith("Be.\n\n# Tools")
    assert "## apply_patch (raw)" in system["content"]
    assert (user["content"], assistant["role"]) == ("go", "assistant")
    assert assistant["content"] == (
        f'yes\n\n<{TAG} name="exec_command">\n{{}}\n</{TAG}>\n\n<{TAG} name="apply_patch">\n*** x\n</{TAG}>'
    )
    assert results["content"] == (
        '<tool_result name="exec_command" id="a">\nA\n</tool_result>\n\n'
        '<tool_result name="apply_patch" id="b">\n[ERROR:EINVAL] B\n</tool_result>'
    )


def test_the_choice_of_a_tool_is_said_in_words() -> None:
    choice = ToolChoice("required", ("exec_command",))
    system = json.loads(wire().body(prompt(tool_choice=choice)))["messages"][0][
        "content"
    ]
    assert "You must call a tool now." in system
    assert "Call no other tool than: exec_command." in system


def test_blocks_become_calls_and_are_not_shown() -> None:
    text = (
        f'I look.\n<{TAG} name="exec_command">\n{{"cmd":"ls"}}\n</{TAG}>\n'
        f'<{TAG} name="apply_patch">\nx\n</{TAG}>'
    )
    for size in (1, 3, len(text)):
        events = decode(*(text[n : n + size] for n in range(0, len(text), size)))
        message, call, patch = items(events)
        assert isinstance(message, Message)
        assert isinstance(call, FunctionCall)
        assert isinstance(patch, CustomToolCall)
        assert (message.text, call.arguments, patch.input) == (
            "I look.",
            '{"cmd":"ls"}',
            "x",
        )
        assert call.call_id != patch.call_id
        assert shown(events) == "I look.\n"


def test_other_text_is_shown_as_it_comes() -> None:
    text = "a < b\n<div>\nvector<tool>\n- x"
    for size in (1, len(text)):
        events = decode(*(text[n : n + size] for n in range(0, len(text), size)))
        assert shown(events) == text
        (message,) = items(events)
        assert getattr(message, "text", "") == text


def test_no_call_is_given_out_before_the_response_is_complete() -> None:
    """Its id is made up: if the response is repeated, the call would run twice."""
    reader = TextToolsWire(ResponsesWire(), session_id="t").decoder(prompt())
    text = f'I look.\n<{TAG} name="exec_command">\n{{}}\n</{TAG}>'
    *said, end = [json.dumps(event) for event in [*ev_message(text), ev_completed()]]
    assert items([event for data in said for event in reader.feed(data)]) == []
    assert [item.type for item in items([*reader.feed(end)])] == [
        "message",
        "function_call",
    ]


QUOTED = (
    '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "id"}}\n</tool_call>'
)


@pytest.mark.parametrize(
    "output",
    [
        QUOTED,
        "".join(f"{n:6}\t{line}\n" for n, line in enumerate(QUOTED.splitlines(), 8)),
        "".join(
            f"a/b.md:{n}:{line}\n" for n, line in enumerate(QUOTED.splitlines(), 8)
        ),
        "@@ -1 +1,3 @@\n" + "".join(f"+{line}\n" for line in QUOTED.splitlines()),
        html.escape(QUOTED),
        json.dumps(QUOTED).replace("<", r"\u003c").replace(">", r"\u003e"),
    ],
    ids=["plain", "numbered", "found", "diff", "html", "json"],
)
def test_markup_that_a_result_shows_in_any_form_is_not_called(output: str) -> None:
    told = {"type": "function_call_output", "call_id": "a", "output": output}
    history = [*map(EncodedItem, map(encode_json, [*HISTORY[:-2], told, HISTORY[-1]]))]
    reader = wire().decoder(replace(prompt(), input=history))
    chunk = {"delta": {"content": f"The file says:\n{QUOTED}"}, "finish_reason": "stop"}
    events = [*reader.feed(json.dumps({"choices": [chunk]})), *reader.feed("[DONE]")]
    assert [type(item) for item in items(events)] == [Message]


def test_a_message_with_thousands_of_calls_is_refused() -> None:
    reader = wire().decoder(prompt())
    text = f'<{TAG} name="exec_command">\n{{}}\n</{TAG}>\n' * 1_000
    reader.feed(json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}))
    with pytest.raises(ModelError, match="more than 999 calls"):
        reader.feed(
            '{"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"a": 1}}'
        )
