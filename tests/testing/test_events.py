import json

from codex_py.testing import (
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_item_done,
    ev_local_shell_call,
    ev_message,
    ev_reasoning,
    ev_text_deltas,
    ev_web_search_call,
    sse,
)
from codex_py.testing.events import Event


def kinds(events: list[Event]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_a_message_is_announced_streamed_and_finished_in_the_order_of_the_api():
    events = ev_message("abcde", pieces=2)
    assert kinds(events) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert [event["delta"] for event in events[2:4]] == ["abc", "de"]
    assert events[-1]["item"] == {
        "type": "message",
        "id": "msg_0",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "abcde", "annotations": []}],
    }


def test_an_empty_message_has_no_deltas():
    assert kinds(ev_message(""))[1:3] == ["content_part.added", "output_text.done"]


def test_deltas_can_stand_alone():
    assert ev_text_deltas(["a", "b"], index=3) == [
        {
            "type": "response.output_text.delta",
            "item_id": "msg_3",
            "output_index": 3,
            "content_index": 0,
            "delta": delta,
        }
        for delta in "ab"
    ]


def test_reasoning_comes_as_a_summary_with_its_sealed_content():
    events = ev_reasoning("**Looking**", index=1)
    assert kinds(events) == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert events[-1] == ev_item_done(
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "**Looking**"}],
            "encrypted_content": "opaque",
        },
        index=1,
    )


def test_a_function_call_carries_its_arguments_as_text():
    *_, delta, done, item = ev_function_call(
        "call_1", "shell", {"cmd": "ls"}, namespace="x"
    )
    assert (delta["delta"], done["arguments"]) == ('{"cmd": "ls"}', '{"cmd": "ls"}')
    assert item["item"] == {
        "type": "function_call",
        "id": "fc_call_1",
        "call_id": "call_1",
        "name": "shell",
        "namespace": "x",
        "arguments": '{"cmd": "ls"}',
        "status": "completed",
    }


def test_arguments_given_as_text_go_out_as_they_are():
    assert (
        ev_function_call("call_1", "shell", "{not json")[-1]["item"]["arguments"]
        == "{not json"
    )


def test_a_custom_tool_call_carries_its_raw_input():
    events = ev_custom_tool_call("call_1", "apply_patch", "*** Begin Patch")
    assert kinds(events) == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert events[-1]["item"]["input"] == "*** Begin Patch"


def test_calls_without_deltas_are_added_and_done():
    shell = ev_local_shell_call("call_1", ["ls", "-l"], timeout_ms=5)
    search = ev_web_search_call("weather")
    assert kinds(shell) == kinds(search) == ["output_item.added", "output_item.done"]
    assert shell[-1]["item"]["action"] == {
        "type": "exec",
        "command": ["ls", "-l"],
        "env": {},
        "timeout_ms": 5,
    }
    assert search[-1]["item"]["action"] == {"type": "search", "query": "weather"}


def test_a_response_ends_in_one_of_three_ways():
    assert ev_completed(input_tokens=3, output_tokens=4, end_turn=False)[
        "response"
    ] == {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "usage": {
            "input_tokens": 3,
            "input_tokens_details": {"cached_tokens": 50},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 7,
        },
        "end_turn": False,
    }
    assert ev_failed("server_error", "oh")["response"]["error"] == {
        "code": "server_error",
        "message": "oh",
    }
    assert ev_incomplete()["response"]["incomplete_details"] == {
        "reason": "max_output_tokens"
    }


def test_events_become_a_stream_in_utf8():
    event = {"type": "x", "text": "Dóne"}
    assert (
        sse([event])
        == f"event: x\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
    )
    assert sse([ev_created(), event]).count(b"\n\n") == 2
