"""Streams of the Anthropic API.

Also tests `model/response_builder.py`.
"""

import json
import time
from typing import Any

import pytest

from codex_py.errors import ModelError, StreamError
from codex_py.model.anthropic.decoder import AnthropicDecoder
from codex_py.model.provider_data import Maker
from codex_py.protocol.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ResponseItem,
)
from codex_py.protocol.stream import (
    Completed,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Usage,
)
from codex_py.protocol.tools import FreeformSpec

PATCH = FreeformSpec("apply_patch", "Patches.", "start: x")
START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 2,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def decoder() -> AnthropicDecoder:
    prompt = Prompt(model="m", input=[], cache_key="t", tools=[PATCH])
    return AnthropicDecoder(prompt, Maker("p", "p"), deltas=True)


def block(
    index: int, content: dict[str, Any], *deltas: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *(
            {"type": "content_block_delta", "index": index, "delta": delta}
            for delta in deltas
        ),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def use(
    index: int, call_id: str, *pieces: str, name: str = "f", **extra: Any
) -> list[Any]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    content: dict[str, Any] = {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {},
        **extra,
    }
    return block(index, content, *deltas)


def reason(stop: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}


def decode(*events: dict[str, Any]) -> list[ResponseEvent]:
    reader = decoder()
    out = [decoded for event in events for decoded in reader.feed(json.dumps(event))]
    return [*out, *reader.end()]


def test_the_name_of_an_event_is_its_type_where_the_data_have_none() -> None:
    reader = decoder()
    events = [START, *text(0, "Hello"), reason("end_turn"), STOP]
    named = [(event.pop("type"), event) for event in json.loads(json.dumps(events))]
    out = [
        each for name, event in named for each in reader.feed(json.dumps(event), name)
    ]
    (message,) = items([*out, *reader.end()])
    assert isinstance(message, Message)
    assert message.text == "Hello"


def items(events: list[ResponseEvent]) -> list[ResponseItem]:
    return [event.item for event in events if isinstance(event, OutputItemDone)]


def test_blocks_become_items_in_their_order() -> None:
    deltas = (
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "si"},
        {"type": "signature_delta", "signature": "gn"},
    )
    events = decode(
        START,
        {"type": "ping"},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas),
        *text(1, "Hel", "lo"),
        *use(2, "toolu_1", '{"a"', ":1}"),
        *use(3, "toolu_2"),
        reason("tool_use", output_tokens=9),
        STOP,
    )
    thought, message, first, second = items(events)
    assert isinstance(thought, Reasoning)
    assert isinstance(message, Message)
    assert thought.summary[0].text == "hm"
    assert thought.source["provider_data"] == {
        "provider": "p",
        "model": "m",
        "signature": "sign",
    }
    assert message.text == "Hello"
    assert isinstance(first, FunctionCall)
    assert isinstance(second, FunctionCall)
    assert (first.call_id, first.arguments, second.arguments) == (
        "toolu_1",
        '{"a":1}',
        "{}",
    )
    assert [e.delta for e in events if isinstance(e, OutputTextDelta)] == ["Hel", "lo"]
    (completed,) = [event for event in events if isinstance(event, Completed)]
    assert completed.usage == Usage(10, 3, 2, 9, 0)


def test_a_call_is_given_out_when_its_block_ends() -> None:
    reader = decoder()
    events = [
        e for part in use(0, "t", '{"a":1}') for e in reader.feed(json.dumps(part))
    ]
    assert [type(item) for item in items(events)] == [FunctionCall]


def test_freeform_calls_are_unwrapped_and_given_inputs_are_taken() -> None:
    wrapped = use(0, "t", '{"input": "*** Begin"}', name="apply_patch")
    custom, given = items(
        decode(*wrapped, *use(1, "u", input={"a": 1}), reason("tool_use"), STOP)
    )
    assert isinstance(custom, CustomToolCall)
    assert custom.input == "*** Begin"
    assert isinstance(given, FunctionCall)
    assert given.arguments == '{"a":1}'


def test_redacted_thinking_and_blocks_of_the_server_are_kept_as_they_came() -> None:
    search: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "s",
        "name": "web_search",
        "input": {},
    }
    query = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}
    result: dict[str, Any] = {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": [],
    }
    redacted, used, found = items(
        decode(
            *block(0, {"type": "redacted_thinking", "data": "zz"}),
            *block(1, search, query),
            *block(2, result),
            reason("pause_turn"),
            STOP,
        )
    )
    data = [item.source["provider_data"] for item in (redacted, used, found)]
    assert data[0]["redacted"] == "zz"
    assert data[1]["blocks"] == [{**search, "input": {"query": "x"}}]
    assert data[2]["blocks"] == [result]


def test_a_paused_turn_goes_on() -> None:
    (completed,) = [
        e
        for e in decode(*text(0, "."), reason("pause_turn"), STOP)
        if isinstance(e, Completed)
    ]
    assert completed.end_turn is False


def test_a_message_that_is_not_streamed_is_read_too() -> None:
    content = [{"type": "text", "text": "yes"}]
    (message,) = items(
        decode(
            {
                "type": "message",
                "id": "m",
                "content": content,
                "stop_reason": "end_turn",
            }
        )
    )
    assert getattr(message, "text", "") == "yes"


def test_a_stop_reason_is_an_end_and_silence_is_none() -> None:
    assert items(decode(START, *text(0, "yes"), reason("end_turn")))
    with pytest.raises(StreamError, match="message_stop"):
        decode(START, *text(0, "yes"))


def test_a_call_without_a_name_is_a_failure() -> None:
    with pytest.raises(StreamError, match="without a name"):
        decode(
            *use(0, "t", '{"a": 1}', name=""),
            *use(1, "u", "{}"),
            reason("tool_use"),
            STOP,
        )


@pytest.mark.parametrize("pieces", [[], ["{}"], ['{"a": ']])
def test_a_call_without_whole_arguments_waits_for_the_end(pieces: list[str]) -> None:
    started = use(0, "t", *pieces)
    with pytest.raises(ModelError, match="max_output_tokens"):
        decode(*started, reason("max_tokens"), STOP)
    (call,) = items(decode(*started, reason("tool_use"), STOP))
    assert isinstance(call, FunctionCall)
    reader = decoder()
    assert (
        items([event for each in started for event in reader.feed(json.dumps(each))])
        == []
    )


@pytest.mark.parametrize(
    ("end", "code", "retryable"),
    [
        ([reason("max_tokens"), STOP], "incomplete", False),
        ([reason("refusal"), STOP], "content_filter", False),
        ([reason("content_filter"), STOP], "content_filter", False),
        (
            [reason("model_context_window_exceeded"), STOP],
            "context_length_exceeded",
            False,
        ),
        (
            [
                {
                    "type": "error",
                    "error": {"type": "overloaded_error", "message": "busy"},
                }
            ],
            "overloaded_error",
            True,
        ),
        (
            [{"type": "error", "error": {"type": "api_error", "message": "oh"}}],
            "api_error",
            True,
        ),
    ],
)
def test_other_ends_are_failures_and_run_no_call_that_was_cut(
    end: list[dict[str, Any]], code: str, retryable: bool
) -> None:
    reader = decoder()
    events: list[ResponseEvent] = []
    failures: list[ModelError] = []
    for event in (*use(0, "t", '{"a": "cut'), *end):
        try:
            events += reader.feed(json.dumps(event))
        except ModelError as error:
            failures.append(error)
    assert [(failure.code, failure.retryable) for failure in failures] == [
        (code, retryable)
    ]
    assert items(events) == []


def test_the_text_of_a_refusal_is_safe_to_print() -> None:
    end = {
        "stop_reason": "refusal",
        "stop_details": {"explanation": "\x1b]0;title\x07no\nmore"},
    }
    with pytest.raises(ModelError) as caught:
        decode(START, {"type": "message_delta", "delta": end}, STOP)
    assert str(caught.value) == "]0;titleno more"


def test_a_signature_in_small_pieces_takes_linear_time() -> None:
    deltas = [{"type": "signature_delta", "signature": "s" * 100}] * 20_000
    start = time.process_time()
    (item,) = items(
        decode(START, *block(0, {"type": "thinking"}, *deltas), reason("end"), STOP)
    )
    assert len(item.source["provider_data"]["signature"]) == 2_000_000
    assert time.process_time() - start < 5
