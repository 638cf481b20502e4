"""Streams as no server should send them, and some do: the program either understands or says what is wrong.

Tests `model/reported.py`.
"""

import gzip
import json
import os
import socket
import time
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
    ev_message,
    ev_reasoning,
    sse,
)
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer
from tests.support.tcp_server import tcp_server

Event = dict[str, Any]
SSE = {"content-type": "text/event-stream"}
DONE = [*ev_message("done"), ev_completed()]
MESSAGE: Event = {
    "type": "message",
    "id": "msg_0",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "done"}],
}
COUNT = {"cmd": "echo x >> count; echo ran"}
CALL = ev_function_call("call_1", "exec_command", COUNT)
CALL_ITEM: Event = CALL[-1]["item"]


def times_run(place: Workplace) -> int:
    path = place.cwd / "count"
    return path.read_text(encoding="ascii").count("x") if path.exists() else 0


def deltas(text: str, **place: Any) -> Event:
    return {"type": "response.output_text.delta", **place, "delta": text}


def without(event: Event, *names: str) -> Event:
    """The event with fields of its `response` left out."""
    response = {
        key: value for key, value in event["response"].items() if key not in names
    }
    return {**event, "response": response}


def data_lines(events: list[Event]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


UNDERSTOOD: dict[str, bytes] = {
    "done only": sse([ev_item_done(MESSAGE), ev_completed()]),
    "deltas only": sse(
        [deltas("do", output_index=0), deltas("ne", output_index=0), ev_completed()]
    ),
    "deltas without any index": sse([deltas("do"), deltas("ne"), ev_completed()]),
    "content_index counted up by each delta": sse(
        [deltas("do", content_index=0), deltas("ne", content_index=1), ev_completed()]
    ),
    "completed only": sse([ev_completed(output=[MESSAGE])]),
    "no event lines, and [DONE]": data_lines(DONE) + b"data: [DONE]\n\n",
    "CRLF, comments and a byte order mark": b"\xef\xbb\xbf: hi\r\n\r\n"
    + sse(DONE).replace(b"\n", b"\r\n").replace(b"event:", b": keepalive\r\nevent:"),
    "CR alone": sse(DONE).replace(b"\n", b"\r"),
    "no blank line at the end": sse(DONE).rstrip(b"\n"),
    "no space after data:": sse(DONE).replace(b"data: ", b"data:"),
    "an event over several data lines": b'data: {"type": "response.output_item.done",\n'
    b'data: "item": ' + json.dumps(MESSAGE).encode() + b"}\n\n" + sse([ev_completed()]),
    "completed without usage": sse(
        [*ev_message("done"), without(ev_completed(), "usage")]
    ),
    "completed without id": sse(
        [*ev_message("done"), without(ev_completed(), "id", "object")]
    ),
    "completed with usage null": sse([*ev_message("done"), ev_completed(usage=None)]),
    "completed with usage that is no usage": sse(
        [
            *ev_message("done"),
            ev_completed(usage={"input_tokens": "many", "output_tokens": [1]}),
        ]
    ),
    "completed bare": sse([*ev_message("done"), {"type": "response.completed"}]),
    "unknown events": sse(
        [
            {"type": "response.new", "x": [1]},
            {"type": "vendor:x"},
            *ev_message("done"),
            ev_completed(),
        ]
    ),
    "events that are no objects": b"data: null\n\ndata: 1\n\ndata: []\n\ndata: {\n\n"
    + sse(DONE),
    "events after the end": sse(
        [*DONE, *ev_message("late", index=1), ev_failed("x", "late")]
    ),
    "a JSON body": json.dumps(ev_completed(output=[MESSAGE])["response"]).encode(),
    "a JSON body over many lines": json.dumps(
        ev_completed(output=[MESSAGE])["response"], indent=2
    ).encode(),
    "created twice": sse([ev_created(), ev_created("resp_2"), *DONE]),
    "the message sent twice": sse(
        [*ev_message("done"), *ev_message("done"), ev_completed()]
    ),
    "the message again in completed": sse(
        [*ev_message("done"), ev_completed(output=[MESSAGE])]
    ),
    "the message again under another id": sse(
        [*ev_message("done"), ev_completed(output=[{**MESSAGE, "id": "msg_other"}])]
    ),
    "null in every optional field": sse(
        [
            ev_item_done({**MESSAGE, "id": None, "status": None, "phase": None}),
            ev_completed(),
        ]
    ),
}


@pytest.mark.parametrize("body", UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_a_stream_is_understood_whatever_it_leaves_out(
    place: Workplace, body: bytes
) -> None:
    with ScriptedServer([Reply(body=body, headers=SSE)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages, len(server.requests)) == (0, ["done"], 1)
    assert outcome.types[-1] == "turn.completed"


def named(*events: tuple[str, Event]) -> Reply:
    """A stream whose data do not say which event they are."""
    lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
    return Reply(body="".join(lines).encode(), headers=SSE)


@pytest.mark.parametrize(
    "end", [{}, {"type": "response", "id": "resp_1"}, {"response": {}}]
)
def test_an_item_may_be_the_data_of_its_event(place: Workplace, end: Event) -> None:
    announced = {"type": "function_call", "call_id": "call_1", "name": "exec_command"}
    arguments = json.dumps(COUNT)
    call = [
        ("response.created", {"type": "response", "id": "resp_1"}),
        ("response.output_item.added", announced),
        ("response.function_call_arguments.delta", {"delta": arguments[:9]}),
        ("response.function_call_arguments.delta", {"delta": arguments[9:]}),
        ("response.output_item.done", {**announced, "arguments": arguments}),
        ("response.completed", end),
    ]
    message = [
        ("response.output_item.added", {"type": "message", "role": "assistant"}),
        ("response.output_text.delta", {"delta": "do"}),
        ("response.output_text.delta", {"delta": "ne"}),
        ("response.output_item.done", {"type": "message", "role": "assistant"}),
        ("response.completed", end),
    ]
    with ScriptedServer([named(*call), named(*message)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages, times_run(place)) == (0, ["done"], 1)
    assert "ran" in str(server.requests[1].output("call_1"))


UNFINISHED = {
    "nothing": b"",
    "[DONE] alone": b"data: [DONE]\n\n",
    "created alone": sse([ev_created()]),
    "a message without the end": sse(ev_message("done")),
    "half a line": sse(DONE)[:-30],
}


@pytest.mark.parametrize("body", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_a_stream_without_its_end_is_retried_and_never_a_success(
    place: Workplace, body: bytes
) -> None:
    with ScriptedServer([Reply(body=body, headers=SSE)] * 2) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, len(server.requests)) == (69, 2)
    retried, failed = [event for event in outcome.events if event["type"] == "error"]
    reason = (
        "stream disconnected before completion: stream closed before response.completed"
    )
    assert retried["message"] == f"Reconnecting... 1/1 ({reason})"
    assert (failed["message"], failed["code"]) == (reason, "disconnected")
    assert outcome.error["message"] == reason


def test_the_retry_of_a_cut_stream_can_succeed(place: Workplace) -> None:
    cut = Reply(events=ev_message("done")[:3], cut=True)
    with ScriptedServer([cut, DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, outcome.messages) == (0, ["done"])


@pytest.mark.parametrize(
    ("event", "code", "message"),
    [
        (
            ev_failed("server_error", "it broke"),
            69,
            "stream disconnected before completion: it broke",
        ),
        (
            ev_completed(
                status="failed", error={"code": "server_error", "message": "it broke"}
            ),
            69,
            "stream disconnected before completion: it broke",
        ),
        (ev_incomplete(), 1, "Incomplete response returned, reason: max_output_tokens"),
        (
            ev_completed(status="incomplete"),
            1,
            "Incomplete response returned, reason: unknown",
        ),
        (
            ev_incomplete("content_filter"),
            1,
            "Incomplete response returned, reason: content_filter",
        ),
        ({"type": "response.cancelled"}, 1, "The response was cancelled."),
        (ev_completed(status="cancelled"), 1, "The response was cancelled."),
        (
            {"type": "error", "code": "server_error", "message": "flat", "param": None},
            69,
            "stream disconnected before completion: flat",
        ),
        (
            {"type": "error", "error": {"type": "server_error", "message": "nested"}},
            69,
            "stream disconnected before completion: nested",
        ),
        (
            {
                "type": "error",
                "error": {"code": "context_length_exceeded", "message": "too long"},
            },
            1,
            "Codex ran out of room in the model's context window. "
            "Start a new thread or clear earlier history before retrying. (too long)",
        ),
        (
            ev_failed("insufficient_quota", "pay"),
            1,
            "Quota exceeded. Check your plan and billing details. (pay)",
        ),
        (ev_failed("invalid_prompt", "no such prompt"), 1, "no such prompt"),
        ({"error": {"message": "put in by a gateway"}}, 69, None),
    ],
)
def test_a_response_that_failed_fails_the_turn(
    place: Workplace, event: Event, code: int, message: str | None
) -> None:
    body = data_lines([*ev_message("part"), event])
    with ScriptedServer([Reply(body=body, headers=SSE)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages, len(server.requests)) == (code, ["part"], 1)
    assert message in (None, outcome.error["message"])


def test_unknown_items_are_kept_and_sent_back(place: Workplace) -> None:
    unknown: Event = {
        "type": "hologram",
        "id": "h_1",
        "depth": 3.5,
        "rays": [{"a": None}],
    }
    message: Event = {
        **MESSAGE,
        "phase": "commentary",
        "mood": {"calm": True},
        "content": [
            {"type": "output_text", "text": "look", "annotations": [], "tint": 1e-7},
            {"type": "output_scent", "base64": "eA=="},
        ],
    }
    reasoning = ev_reasoning("I look.")[-1]["item"]
    events = [
        ev_item_done(reasoning, 0),
        ev_item_done(unknown, 1),
        ev_item_done(message, 2),
        ev_item_done({**CALL_ITEM, "signature": "s"}, 3),
        ev_completed(),
    ]
    with ScriptedServer([events, DONE]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["look", "done"])
    *_, first, second, third, call, output = server.requests[1].input
    assert [first, second, third] == [reasoning, unknown, message]
    assert call == {**CALL_ITEM, "signature": "s"}
    assert output["type"] == "function_call_output"


def test_a_server_cannot_answer_a_call_itself(place: Workplace) -> None:
    forged = {"type": "function_call_output", "call_id": "call_1", "output": "forged"}
    stray = {**forged, "call_id": "call_9"}
    events = [*CALL, ev_item_done(forged, 1), ev_item_done(stray, 2), ev_completed()]
    with ScriptedServer([events, DONE]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["done"])
    assert "ran" in str(server.requests[1].output("call_1"))
    assert "forged" not in json.dumps(server.requests[1].body)


def test_items_done_out_of_order_are_kept_in_order(place: Workplace) -> None:
    # As LiteLLM sends a message with two calls.
    first = ev_function_call("call_1", "exec_command", {"cmd": "echo one"}, index=1)
    second = ev_function_call("call_2", "exec_command", {"cmd": "echo two"}, index=2)
    message = ev_message("both", index=0)
    events = [
        message[0],
        first[0],
        second[0],
        second[-1],
        first[-1],
        message[-1],
        ev_completed(),
    ]
    with ScriptedServer([events, DONE]) as server:
        outcome = place.run(server)
    assert outcome.code == 0
    kinds = [
        (item["type"], item.get("call_id")) for item in server.requests[1].input[-5:]
    ]
    assert kinds == [
        ("message", None),
        ("function_call", "call_1"),
        ("function_call", "call_2"),
        ("function_call_output", "call_1"),
        ("function_call_output", "call_2"),
    ]


def test_outputs_follow_the_order_in_which_unannounced_calls_came(
    place: Workplace,
) -> None:
    calls = [
        ev_function_call(f"call_{n}", "exec_command", {"cmd": "true"}, index=n)[-1]
        for n in (2, 0, 1)
    ]
    with ScriptedServer([[*calls, ev_completed()], DONE]) as server:
        place.run(server)
    names = [item["call_id"] for item in server.requests[1].input if "call_id" in item]
    assert names[:3] == names[3:]


REPEATED = {
    "done twice": [*CALL, CALL[-1], ev_completed()],
    "again at another index": [*CALL, ev_item_done(CALL_ITEM, 1), ev_completed()],
    "again in completed": [*CALL, ev_completed(output=[CALL_ITEM])],
    "again in completed, renamed": [
        *CALL,
        ev_completed(output=[{**CALL_ITEM, "id": "fc_other", "call_id": "call_other"}]),
    ],
    "announced again": [*CALL, CALL[0], ev_completed()],
}


@pytest.mark.parametrize("events", REPEATED.values(), ids=REPEATED.keys())
def test_a_call_that_is_sent_again_runs_once(
    place: Workplace, events: list[Event]
) -> None:
    with ScriptedServer([events, DONE]) as server:
        outcome = place.run(server)
    assert (outcome.code, times_run(place)) == (0, 1)
    calls = [
        item for item in server.requests[1].input if item["type"] == "function_call"
    ]
    assert calls == [CALL_ITEM]


def test_two_calls_of_one_id_are_both_answered(place: Workplace) -> None:
    other = ev_function_call("call_1", "exec_command", {"cmd": "echo other"}, index=1)
    with ScriptedServer([[*CALL, *other, ev_completed()], DONE]) as server:
        outcome = place.run(server)
    assert outcome.code == 0
    first, second = [
        i for i in server.requests[1].input if i["type"] == "function_call_output"
    ]
    assert first["output"].endswith("\nran\n")
    assert second["output"].startswith("[ERROR:InvalidArgs] duplicate call_id 'call_1'")


@pytest.mark.parametrize(
    ("item", "complaint"),
    [
        (
            {"type": "function_call", "call_id": "c", "name": "exec_command"},
            "'arguments'",
        ),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "'name'"),
        (
            {
                "type": "function_call",
                "call_id": "c",
                "name": "x",
                "arguments": {"cmd": "x"},
            },
            "'arguments'",
        ),
        (
            {"type": "function_call", "call_id": 7, "name": "x", "arguments": "{}"},
            "'call_id'",
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch"},
            "'input'",
        ),
        ({"type": "message", "role": 7, "content": []}, "'role'"),
        ({**MESSAGE, "content": [{"type": "output_text"}]}, "'content.0"),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec"}},
            "'action.command",
        ),
        ({"type": "reasoning", "summary": "I look"}, "'summary'"),
    ],
)
def test_a_malformed_item_fails_the_turn_and_names_the_field(
    place: Workplace, item: Event, complaint: str
) -> None:
    with ScriptedServer([[ev_item_done(item), ev_completed()]]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["code"]) == (1, "malformed_item")
    assert complaint in outcome.error["message"]
    assert str(item["type"]) in outcome.error["message"]


def test_a_data_line_of_20_mb_is_read(place: Workplace) -> None:
    text = "x" * 20_000_000
    with ScriptedServer([[*ev_message(text), ev_completed()]]) as server:
        outcome = place.run(server)
    assert (outcome.code, [len(m) for m in outcome.messages]) == (0, [len(text)])


def test_a_stream_cut_inside_a_chunk_is_retried(place: Workplace) -> None:
    body = b"400\r\n" + sse(ev_message("done"))[:200]
    cut = Reply(body=body, headers={**SSE, "transfer-encoding": "chunked"}, cut=True)
    with ScriptedServer([cut, DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, outcome.messages) == (0, ["done"])


def test_a_stream_cut_before_its_content_length_is_retried(place: Workplace) -> None:
    cut = Reply(
        body=sse(DONE[:-1]), headers={**SSE, "content-length": "100000"}, cut=True
    )
    with ScriptedServer([cut, DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, len(server.requests)) == (0, 2)


@pytest.mark.parametrize("repeats_the_call", [True, False])
def test_a_call_before_the_cut_runs_once_and_the_retry_carries_its_output(
    place: Workplace, repeats_the_call: bool
) -> None:
    again = [*CALL, ev_completed()] if repeats_the_call else None
    replies = [Reply(events=CALL, cut=True), *([again] if again else []), DONE]
    with ScriptedServer(replies) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, times_run(place), len(server.requests)) == (
        0,
        1,
        len(replies),
    )
    call, output = server.requests[1].input[-2:]
    assert call == CALL_ITEM
    assert output["output"].endswith("\nran\n")


def test_a_long_run_survives_a_connection_that_breaks_again_and_again(
    place: Workplace,
) -> None:
    replies: list[Any] = []
    for n in range(60):
        call = ev_function_call(
            f"call_{n}", "update_plan", {"plan": [], "explanation": str(n)}
        )
        if n % 3 == 0:
            replies.append(Reply(events=call[:2], cut=True))
        if n % 5 == 0:
            replies.append(Reply(status=503, body=b""))
        replies.append([*call, ev_completed()])
    with ScriptedServer([*replies, DONE]) as server:
        outcome = place.run(server, stream_max_retries=1, request_max_retries=1)
    assert (outcome.code, outcome.messages) == (0, ["done"])
    assert len(server.requests) == len(replies) + 1


def test_a_call_that_was_not_finished_does_not_run(place: Workplace) -> None:
    with ScriptedServer([Reply(events=CALL[:2], cut=True), DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, times_run(place)) == (0, 0)
    assert server.requests[1].input == server.requests[0].input


def test_a_call_that_was_announced_and_never_sent_is_a_broken_stream(
    place: Workplace,
) -> None:
    with ScriptedServer([[CALL[0], ev_completed()], DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert (outcome.code, times_run(place), len(server.requests)) == (0, 0, 2)


def test_a_call_known_from_its_deltas_alone_runs(place: Workplace) -> None:
    with ScriptedServer([[*CALL[:2], ev_completed()], DONE]) as server:
        outcome = place.run(server)
    assert (outcome.code, times_run(place)) == (0, 1)


def test_a_server_that_falls_silent_is_given_up_after_the_idle_time(
    place: Workplace,
) -> None:
    silence = Pause()
    with ScriptedServer([[ev_created(), *ev_message("part"), silence], DONE]) as server:
        outcome = place.run(server, stream_max_retries=1, stream_idle_timeout_ms=300)
        silence.until.set()
    assert (outcome.code, outcome.messages) == (0, ["part", "done"])
    assert outcome.events[3]["message"] == (
        "Reconnecting... 1/1 (stream disconnected before completion: idle timeout waiting for SSE)"
    )


def test_a_server_that_never_answers_is_given_up_after_the_idle_time(
    place: Workplace,
) -> None:
    def listen(connection: socket.socket, _request: bytes) -> None:
        connection.recv(1)

    with ScriptedServer() as server, tcp_server(listen) as (url, requests):
        outcome = place.run(server, base_url=url, stream_idle_timeout_ms=300)
    assert (outcome.code, outcome.error["code"], len(requests)) == (69, "timeout", 1)


def test_a_server_that_keeps_the_stream_open_after_the_end_is_not_waited_for(
    place: Workplace,
) -> None:
    open_end = Pause()
    began = time.monotonic()
    with ScriptedServer([[*CALL, ev_completed(), open_end], DONE]) as server:
        outcome = place.run(server)
        took_s = time.monotonic() - began
        open_end.until.set()
    assert (outcome.code, times_run(place)) == (0, 1)
    assert took_s < 5


def test_a_500_with_events_in_its_body_is_a_failed_request(place: Workplace) -> None:
    # LiteLLM does so.
    body = b'data: {"error": {"message": "the upstream broke"}}\n\ndata: [DONE]\n\n'
    with ScriptedServer([Reply(status=500, body=body, headers=SSE)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["http_status"]) == (69, 500)
    assert "the upstream broke" in outcome.error["message"]


@pytest.mark.parametrize("body", [gzip.compress(sse(DONE), mtime=0), sse(DONE)])
def test_an_answer_that_says_it_is_packed_is_read_whether_it_is_or_not(
    body: bytes, place: Workplace
) -> None:
    headers = {**SSE, "content-encoding": "gzip"}
    with ScriptedServer([Reply(body=body, headers=headers)]) as server:
        outcome = place.run(server)
        assert server.requests[0].headers["accept-encoding"] == "identity"
    assert outcome.code == 0


def test_an_encoding_that_cannot_be_read_is_refused_by_its_name(
    place: Workplace,
) -> None:
    headers = {**SSE, "content-encoding": "br"}
    with ScriptedServer([Reply(body=b"\x0b", headers=headers)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["code"]) == (1, "packed")
    assert "'br'" in outcome.error["message"]


def test_a_web_page_in_place_of_a_stream_is_named(place: Workplace) -> None:
    page = Reply(
        body=b"<html><title>Welcome</title></html>",
        headers={"content-type": "text/html"},
    )
    with ScriptedServer([page]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["code"]) == (1, "not_a_stream")
    assert (
        "is a web page (text/html): Welcome; look at `base_url`"
        in outcome.error["message"]
    )


def test_an_answer_that_is_no_stream_says_what_it_is(place: Workplace) -> None:
    whole = {"id": "r", "object": "chat.completion", "choices": "none"}
    with ScriptedServer([Reply(body=json.dumps(whole).encode())]) as server:
        outcome = place.run(server, stream_max_retries=3)
        url = f"{server.base_url}/responses"
        assert len(server.requests) == 1
    assert (outcome.code, outcome.error["code"]) == (1, "not_a_stream")
    assert outcome.error["message"] == (
        f"the answer of {url} is no stream (application/json): {json.dumps(whole)}; look at `base_url`"
        " and `wire_api`, which is 'responses'"
    )


def test_an_empty_answer_says_so_and_is_asked_for_again(place: Workplace) -> None:
    empty = Reply(body=b"", headers={"content-type": "text/plain"})
    with ScriptedServer([empty, empty]) as server:
        outcome = place.run(server, stream_max_retries=1)
        assert len(server.requests) == 2
    assert (outcome.code, outcome.error["code"]) == (69, "disconnected")
    assert "is empty (text/plain); look at `base_url`" in outcome.error["message"]


def test_single_bytes_add_up(place: Workplace) -> None:
    text = "grüße 👍 \u2028 ende"
    events = [
        ev_item_done({**MESSAGE, "content": [{"type": "output_text", "text": text}]}, 0)
    ]
    raw = "".join(
        f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n"
        for event in [*events, ev_completed()]
    ).encode()
    drip = Reply(events=[bytes([byte]) for byte in raw], chunk_each=True, write_bytes=1)
    with ScriptedServer([drip]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, [text])


def test_half_a_surrogate_pair_is_replaced_everywhere(place: Workplace) -> None:
    message = json.dumps(ev_item_done(MESSAGE)).replace('"done"', '"do\\ud83d"')
    call = json.dumps(ev_item_done(CALL_ITEM, 1)).replace(
        "echo ran", "echo \\\\udc4d\\udc4d"
    )
    body = b"".join(b"data: %b\n\n" % e.encode() for e in (message, call)) + sse(
        [ev_completed()]
    )
    with ScriptedServer([Reply(body=body, headers=SSE), DONE, DONE]) as server:
        outcome = place.run(server)
        assert place.rerun("resume", "--last", "more").code == 0
    assert (outcome.code, outcome.messages) == (0, ["do\ufffd", "done"])
    assert b"\\ud83d" not in server.requests[2].raw.lower()
    # Within the arguments it is the model's own mistake, which it is told.
    assert server.requests[2].output("call_1").startswith("[ERROR:InvalidArgs] ")


def test_a_pair_split_between_two_deltas_is_whole_again(place: Workplace) -> None:
    body = (
        b'data: {"type":"response.output_text.delta","delta":"a\\ud83d"}\n\n'
        b'data: {"type":"response.output_text.delta","delta":"\\udc4d"}\n\n'
    )
    with ScriptedServer(
        [Reply(body=body + sse([ev_completed()]), headers=SSE)]
    ) as server:
        outcome = place.run(server)
    assert outcome.messages == ["a👍"]


def test_bytes_that_are_no_utf_8_are_replaced(place: Workplace) -> None:
    body = sse(DONE).replace(b"done", b"do\xff")
    with ScriptedServer([Reply(body=body, headers=SSE)]) as server:
        outcome = place.run(server)
    assert outcome.messages == ["do\ufffd"]


def test_reasoning_left_by_a_cut_is_not_sent_back_alone(place: Workplace) -> None:
    cut = Reply(events=ev_reasoning("I look."), cut=True)
    with ScriptedServer([cut, DONE]) as server:
        outcome = place.run(server, stream_max_retries=1)
    assert outcome.code == 0
    assert server.requests[1].input == server.requests[0].input


def test_a_freeform_call_that_comes_as_arguments_is_unwrapped(place: Workplace) -> None:
    # LiteLLM streams the input of a custom call as the JSON arguments of a function.
    patch = "*** Begin Patch\n*** Add File: new\n+text\n*** End Patch\n"
    call = ev_custom_tool_call("call_1", "apply_patch", "")
    wrapped = {
        "type": "response.function_call_arguments.delta",
        "item_id": call[0]["item"]["id"],
        "output_index": 0,
        "delta": json.dumps({"input": patch}),
    }
    with ScriptedServer([[call[0], wrapped, ev_completed()], DONE]) as server:
        outcome = place.run(server)
    assert outcome.code == 0
    assert (place.cwd / "new").read_text(encoding="utf-8") == "text\n"


def test_end_turn_false_asks_for_another_request(place: Workplace) -> None:
    with ScriptedServer(
        [[*ev_message("part"), ev_completed(end_turn=False)], DONE]
    ) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["part", "done"])


def test_deeply_nested_json_does_not_crash(place: Workplace) -> None:
    deep = b'data: {"type": "x", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n"
    with ScriptedServer([Reply(body=deep + sse(DONE), headers=SSE)]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["done"])


def test_a_prompt_that_is_no_utf_8_is_sent_with_what_can_be_read(
    place: Workplace,
) -> None:
    with ScriptedServer([[*ev_message("ok"), ev_completed()]]) as server:
        place.configure(server)
        arguments = ["exec", "--skip-git-repo-check", os.fsdecode(b"a\xffb")]
        done = run_codex_py(arguments, place.home, place.cwd)
    assert (done.returncode, done.stdout) == (0, b"ok\n"), done.stderr
    assert (
        server.requests[0].input[-1]["content"][0]["text"]
        == "a\N{REPLACEMENT CHARACTER}b"
    )
