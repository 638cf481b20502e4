"""One script, answered in each API.

Tests `testing/rendering/anthropic.py`, `testing/rendering/base.py`,
`testing/rendering/chat.py` and `testing/whole.py`.
"""

import json
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    Reply,
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
from tests.support.server import ScriptedServer
from tests.testing.wires import anthropic, chat, data, post, user, without_tools

PATCH = 'a "quoted"\nline'
EVERYTHING = [
    ev_created("r1"),
    *ev_reasoning("Look first.", index=0),
    *ev_message("Hello.", index=1, pieces=2),
    *ev_function_call("call_1", "shell", {"cmd": "ls"}, index=2),
    *ev_custom_tool_call("call_2", "apply_patch", PATCH, index=3),
    ev_completed(),
]


def chat_answer(script: Any, **fields: Any) -> list[Any]:
    with ScriptedServer([script]) as server:
        status, answer = post(server, "chat", chat(user("go"), **fields))
        assert status == 200
        return data(answer)


def anthropic_answer(script: Any) -> list[Any]:
    with ScriptedServer([script]) as server:
        status, answer = post(server, "anthropic", anthropic(user("go")))
        assert status == 200
        return data(answer)


def deltas(chunks: list[Any]) -> list[Any]:
    return [c["choices"][0]["delta"] for c in chunks if c != "[DONE]" and c["choices"]]


def test_chat_has_text_reasoning_and_calls_as_deltas():
    *chunks, done = chat_answer(EVERYTHING)
    assert done == "[DONE]"
    assert {(c["id"], c["object"], c["model"]) for c in chunks} == {
        ("r1", "chat.completion.chunk", "m")
    }

    def call(index: int, **fields: Any) -> Event:
        return {"tool_calls": [{"index": index, **fields}]}

    def begins(name: str) -> Event:
        return {"type": "function", "function": {"name": name, "arguments": ""}}

    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Look first."},
        {"content": "Hel"},
        {"content": "lo."},
        call(0, id="call_1", **begins("shell")),
        call(0, function={"arguments": '{"cmd": "ls"}'}),
        call(1, id="call_2", **begins("apply_patch")),
        call(1, function={"arguments": '{"input": "'}),
        call(1, function={"arguments": json.dumps(PATCH)[1:-1]}),
        call(1, function={"arguments": '"}'}),
        {},
    ]
    reasons = [c["choices"][0]["finish_reason"] for c in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["tool_calls"]


def test_chat_tells_the_usage_where_it_is_asked_for():
    script = [
        *ev_message("Hi."),
        ev_completed(input_tokens=9, cached=4, output_tokens=2),
    ]
    *_, finish, usage, done = chat_answer(
        script, stream_options={"include_usage": True}
    )
    assert (finish["choices"][0]["finish_reason"], finish["usage"], done) == (
        "stop",
        None,
        "[DONE]",
    )
    assert (usage["choices"], usage["usage"]) == (
        [],
        {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    )
    assert all("usage" not in chunk for chunk in chat_answer(script)[:-1])


def test_anthropic_has_blocks_one_after_the_other():
    events = anthropic_answer(EVERYTHING)
    usage = {
        "input_tokens": 50,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 50,
        "output_tokens": 20,
    }
    signature = events[4]["delta"].pop("signature")
    assert signature.startswith("sig_")

    def block(
        index: int, kind: str, delta: str, *pieces: str, **start: Any
    ) -> list[Event]:
        names = {"text": "text", "thinking": "thinking", "input_json": "partial_json"}
        return [
            {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": kind, **start},
            },
            *(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": f"{delta}_delta", names[delta]: piece},
                }
                for piece in pieces
            ),
            {"type": "content_block_stop", "index": index},
        ]

    thinking = block(
        0, "thinking", "thinking", "Look first.", thinking="", signature=""
    )
    sealed = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta"},
    }
    patch = ('{"input": "', json.dumps(PATCH)[1:-1], '"}')
    assert events == [
        {
            "type": "message_start",
            "message": {
                "id": "r1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {**usage, "output_tokens": 1},
            },
        },
        {"type": "ping"},
        *thinking[:2],
        sealed,
        thinking[2],
        *block(1, "text", "text", "Hel", "lo.", text=""),
        *block(
            2,
            "tool_use",
            "input_json",
            '{"cmd": "ls"}',
            id="call_1",
            name="shell",
            input={},
        ),
        *block(
            3,
            "tool_use",
            "input_json",
            *patch,
            id="call_2",
            name="apply_patch",
            input={},
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def test_items_without_deltas_are_said_at_once():
    script = [
        ev_item_done(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
        ),
        ev_item_done(
            {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]},
            index=1,
        ),
        *ev_local_shell_call("call_1", ["ls"], index=2),
        ev_item_done(
            {
                "type": "function_call",
                "call_id": "call_2",
                "name": "read",
                "namespace": "mcp__files__",
                "arguments": "{}",
            },
            index=3,
        ),
        ev_completed(),
    ]
    chunks = deltas(chat_answer(script))
    assert [
        chunk.get("reasoning_content") or chunk.get("content") for chunk in chunks[:3]
    ] == [
        "",
        "Hm.",
        "Hi.",
    ]
    calls = [chunk["tool_calls"][0]["function"] for chunk in chunks[3:7]]
    assert calls == [
        {"name": "shell", "arguments": ""},
        {"arguments": '{"command": ["ls"]}'},
        {"name": "mcp__files__read", "arguments": ""},
        {"arguments": "{}"},
    ]
    events = anthropic_answer(script)
    starts = [
        e["content_block"]["type"] for e in events if e["type"] == "content_block_start"
    ]
    assert starts == ["thinking", "text", "tool_use", "tool_use"]


@pytest.mark.parametrize(
    ("end", "finish_reason", "stop_reason"),
    [
        (ev_completed(), "stop", "end_turn"),
        (ev_incomplete(), "length", "max_tokens"),
        (ev_incomplete("content_filter"), "content_filter", "refusal"),
    ],
)
def test_a_response_ends_for_a_reason(end: Event, finish_reason: str, stop_reason: str):
    script = [*ev_message("Hi."), end]
    assert chat_answer(script)[-2]["choices"][0]["finish_reason"] == finish_reason
    assert anthropic_answer(script)[-2]["delta"]["stop_reason"] == stop_reason


@pytest.mark.parametrize(
    ("failure", "code", "kind", "message"),
    [
        (ev_failed("server_is_overloaded", "busy"), "server_is_overloaded", "overloaded_error", "busy"),
        (ev_failed("rate_limit_exceeded", "slow"), "rate_limit_exceeded", "rate_limit_error", "slow"),
        (
            ev_failed("context_length_exceeded", "9 tokens"),
            "context_length_exceeded",
            "invalid_request_error",
            "prompt is too long: 9 tokens",
        ),
        (
            {"type": "error", "code": "server_error", "message": "oh"},
            "server_error",
            "api_error",
            "oh",
        ),
    ],
)  # fmt: skip
def test_a_failure_in_a_stream_ends_it(
    failure: Event, code: str, kind: str, message: str
):
    script = [*ev_text_deltas(["Hi"]), failure]
    error = chat_answer(script)[-1]["error"]
    assert (error["code"], error["message"]) == (
        code,
        failure.get("message") or error["message"],
    )
    assert anthropic_answer(script)[-1] == {
        "type": "error",
        "error": {"type": kind, "message": message},
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "rate_limit_error"),
        (529, "overloaded_error"),
        (503, "api_error"),
        (422, "invalid_request_error"),
    ],
)
def test_a_status_has_the_error_in_the_form_of_its_api(status: int, kind: str):
    body = json.dumps({"error": {"message": "no", "type": "x", "code": None}}).encode()
    reply = Reply(status=status, headers={"retry-after": "1"}, body=body)
    with ScriptedServer([reply, reply]) as server:
        assert post(server, "chat", chat(user("go"))) == (status, body)
        answer = post(server, "anthropic", anthropic(user("go")))
    assert (answer[0], json.loads(answer[1])) == (
        status,
        {"type": "error", "error": {"type": kind, "message": "no"}},
    )


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"type":"error","error":{"type":"api_error"}}', b"[]"]
)
def test_a_body_that_is_no_error_of_openai_goes_out_as_it_is(body: bytes):
    with ScriptedServer([Reply(status=500, body=body)]) as server:
        assert post(server, "anthropic", anthropic(user("go"))) == (500, body)


def test_events_of_an_api_and_bytes_go_out_as_they_are():
    chunk: Event = {"id": "x", "choices": []}
    assert chat_answer([chunk, b"data: [DONE]\n\n"]) == [chunk, "[DONE]"]
    stop = {"type": "message_stop"}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    assert anthropic_answer([stop, error, b": comment\n\n"]) == [stop, error]


def test_a_stream_that_breaks_off_has_no_end():
    pause = Pause()
    with ScriptedServer(
        [[*ev_text_deltas(["Half"]), pause, *ev_text_deltas([" way"])]]
    ) as server:
        pause.until.set()
        _, answer = post(server, "chat", chat(user("go")))
    assert [delta.get("content") for delta in deltas(data(answer))] == [
        "",
        "Half",
        " way",
    ]
    assert pause.reached.is_set()


def test_an_item_of_the_responses_api_alone_is_a_fault_of_the_script():
    server = ScriptedServer([[*ev_web_search_call("weather"), ev_completed()]])
    server.start()
    assert post(server, "chat", chat(user("go")))[0] == 500
    with pytest.raises(
        AssertionError, match="only the Responses API has an item 'web_search_call'"
    ):
        server.close()


def test_blocks_at_the_same_time_are_a_fault_of_the_script():
    script = [*ev_text_deltas(["a"]), *ev_text_deltas(["b"], index=1)]
    server = ScriptedServer([script])
    server.start()
    assert post(server, "anthropic", anthropic(user("go")))[0] == 500
    with pytest.raises(AssertionError, match="one after the other"):
        server.close()


TEXT_CALLS = [
    *ev_message("Look:"),
    *ev_function_call("call_1", "shell", {"cmd": "ls"}, index=1),
    *ev_custom_tool_call("call_2", "apply_patch", "*** Begin Patch", index=2),
    ev_completed(),
]
AS_TEXT = """Look:
<tool name="shell">
{"cmd": "ls"}
</tool>
<tool name="apply_patch">
*** Begin Patch
</tool>"""


def test_a_model_without_tools_writes_its_calls():
    with ScriptedServer([TEXT_CALLS] * 3, text_tools=True) as server:
        chunks = data(post(server, "chat", without_tools(chat(user("go"))))[1])
        blocks = data(
            post(server, "anthropic", without_tools(anthropic(user("go"))))[1]
        )
        announced: Event = {
            "input": [],
            "instructions": '<tool_0a1b2c3d name="NAME">',
            "stream": True,
        }
        items = post(server, "responses", announced)[1]
    assert "".join(delta.get("content", "") for delta in deltas(chunks)) == AS_TEXT
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    texts = [
        e["delta"].get("text", "") for e in blocks if e["type"] == "content_block_delta"
    ]
    assert "".join(texts) == AS_TEXT
    assert items.startswith(sse(ev_message("Look:")))
    done = [
        e["item"]["type"]
        for e in data(items)
        if e["type"] == "response.output_item.done"
    ]
    assert done == ["message"] * 3
    texts = [
        e["delta"] for e in data(items) if e["type"] == "response.output_text.delta"
    ]
    assert "".join(texts).replace("tool_0a1b2c3d", "tool") == AS_TEXT
    assert "tool_0a1b2c3d" in "".join(texts)
