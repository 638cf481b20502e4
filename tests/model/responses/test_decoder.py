"""Each stream is one that a server was seen to send, or a fault that one could.

Also tests `model/responses/slot.py`, `model/responses/slot_table.py` and
`model/responses/texts.py`.
"""

import json
import random
import re
from collections.abc import Iterable
from typing import Any

import pytest

from codex_py.errors import ExitCode, MalformedItem, ModelError, StreamError
from codex_py.model.responses.decoder import ResponsesDecoder
from codex_py.protocol.items import ResponseItem, parse_item
from codex_py.protocol.stream import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningDelta,
    ResponseEvent,
    Usage,
)
from tests.support.searches import share
from tests.support.streams import CALL, MESSAGE, REASONING, Event, full_stream

COMPLETED: Event = {
    "type": "response.completed",
    "response": {"id": "resp_1", "output": []},
}
USAGE = Usage(100, 64, 8, 20, 12)


def decoded(*events: Event | str) -> list[ResponseEvent]:
    """What a whole stream gives out; the same but for the deltas if nobody listens to them."""
    out, failure = played(ResponsesDecoder(), events)
    unwatched, _ = played(ResponsesDecoder(deltas=False), events)
    assert without_made_up_ids(unwatched) == without_made_up_ids(out)
    if failure is not None:
        raise failure
    return out


def cut_off(*events: Event | str) -> tuple[list[ResponseEvent], ModelError]:
    """What a stream that fails gives out, and how it fails."""
    decoder = ResponsesDecoder()
    out, failure = played(decoder, events)
    unwatched, other_failure = played(ResponsesDecoder(deltas=False), events)
    assert without_made_up_ids(unwatched) == without_made_up_ids(out)
    assert str(failure) == str(other_failure)
    assert failure is not None
    with pytest.raises(ModelError):
        decoder.end()
    return out, failure


def played(
    decoder: ResponsesDecoder, events: Iterable[Event | str]
) -> tuple[list[ResponseEvent], ModelError | None]:
    out: list[ResponseEvent] = []
    try:
        for event in events:
            out += decoder.feed(event if isinstance(event, str) else json.dumps(event))
        out += decoder.end()
    except ModelError as failure:
        return out, failure
    return out, None


def without_made_up_ids(events: Iterable[ResponseEvent]) -> list[str]:
    """The events but for deltas, as texts."""
    deltas = (OutputTextDelta, ReasoningDelta)
    texts = [repr(event) for event in events if not isinstance(event, deltas)]
    return [re.sub("call_[0-9a-f]{32}", "call_made_up", text) for text in texts]


def items(events: Iterable[ResponseEvent]) -> list[tuple[int, dict[str, Any]]]:
    done = [event for event in events if isinstance(event, OutputItemDone)]
    return [(event.output_index, data(event.item)) for event in done]


def data(item: ResponseItem) -> dict[str, Any]:
    return json.loads(item.encoded())


def item_done(item: Event, index: int | None = None) -> Event:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.done", **place, "item": item}


def item_added(item: Event | None, index: int | None = None) -> Event:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.added", **place, "item": item}


def text_delta(delta: str, **place: Any) -> Event:
    return {"type": "response.output_text.delta", "delta": delta, **place}


def arguments_delta(delta: str, **place: Any) -> Event:
    return {"type": "response.function_call_arguments.delta", "delta": delta, **place}


def completed(*output: Event, **fields: Any) -> Event:
    response = {"id": "resp_1", "status": "completed", "output": list(output), **fields}
    return {"type": "response.completed", "response": response}


def message(text: str, **fields: Any) -> Event:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **fields}


def test_full_stream_gives_every_event_once() -> None:
    assert decoded(*full_stream()) == [
        Created(),
        OutputItemAdded(),
        ReasoningDelta(0, "I look at ", 0),
        ReasoningDelta(0, "the files.", 0),
        OutputItemDone(0, parse_item(REASONING)),
        OutputItemAdded(),
        OutputTextDelta(1, "Ich prüfe "),
        OutputTextDelta(1, "👍 das."),
        OutputItemDone(1, parse_item(MESSAGE)),
        OutputItemAdded(),
        OutputItemDone(2, parse_item(CALL)),
        Completed(USAGE),
    ]


def test_no_beginning_of_a_stream_is_taken_for_the_whole() -> None:
    events = full_stream()
    for length in range(len(events)):
        out, failure = cut_off(*events[:length])
        assert not any(isinstance(event, Completed) for event in out)
        assert isinstance(failure, StreamError)
        assert failure.started


@pytest.mark.parametrize("seed", range(20))
def test_any_subset_of_the_events_but_items_and_terminal_gives_the_same_items(
    seed: int,
) -> None:
    chance = random.Random(seed)
    events = [
        event
        for event in full_stream()
        if event["type"] in {"response.output_item.done", "response.completed"}
        or chance.random() < 0.5
    ]
    out = decoded(*events)
    assert items(out) == [(0, REASONING), (1, MESSAGE), (2, CALL)]
    assert out[-1] == Completed(USAGE)


@pytest.mark.parametrize(
    ("kinds", "listed"),
    [
        (("item.added", ".delta"), False),
        (("item.added", "text.done", "arguments.done"), False),
        (("item.added", "part.done", "arguments.done"), False),
        (("item.done",), False),
        (("item.added", ".delta"), True),
        ((".delta",), True),
        ((), True),
    ],
)
def test_any_one_source_of_the_items_will_do(
    kinds: tuple[str, ...], listed: bool
) -> None:
    *events, final = full_stream()
    if not listed:
        final["response"]["output"] = []
    out = items(
        decoded(*[event for event in events if event["type"].endswith(kinds)], final)
    )
    assert [(index, item["type"]) for index, item in out] == [
        (0, "reasoning"),
        (1, "message"),
        (2, "function_call"),
    ]
    assert out[0][1]["summary"] == REASONING["summary"]
    assert out[1][1]["content"][0]["text"] == "Ich prüfe 👍 das."
    assert out[2][1] == CALL


def test_items_that_come_whole_need_no_other_event() -> None:
    assert items(decoded(item_done(MESSAGE, 0), item_done(CALL, 1), COMPLETED)) == [
        (0, MESSAGE),
        (1, CALL),
    ]


def test_items_can_come_in_the_terminal_response_alone() -> None:
    assert decoded(completed(REASONING, MESSAGE, CALL)) == [
        OutputItemAdded(),
        OutputItemDone(0, parse_item(REASONING)),
        OutputItemAdded(),
        OutputItemDone(1, parse_item(MESSAGE)),
        OutputItemAdded(),
        OutputItemDone(2, parse_item(CALL)),
        Completed(Usage()),
    ]


def test_message_can_come_in_deltas_alone() -> None:
    assert decoded(text_delta("Hel"), text_delta("lo"), COMPLETED) == [
        OutputItemAdded(),
        OutputTextDelta(0, "Hel"),
        OutputTextDelta(0, "lo"),
        OutputItemDone(0, parse_item(message("Hello", status="completed"))),
        Completed(Usage()),
    ]


def test_reasoning_and_message_in_deltas_without_any_place_are_two_items() -> None:
    events = [
        {"type": "response.reasoning_text.delta", "delta": "hm"},
        text_delta("yes"),
        {"type": "response.refusal.delta", "delta": "no"},
    ]
    assert items(decoded(*events, COMPLETED)) == [
        (
            0,
            {
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}],
                "status": "completed",
            },
        ),
        (
            1,
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "yes"},
                    {"type": "refusal", "refusal": "no"},
                ],
                "status": "completed",
            },
        ),
    ]


def test_done_marker_and_noise_between_events_are_skipped() -> None:
    noise = [
        "[DONE]",
        "not json",
        "[1]",
        '"text"',
        "{}",
        '{"type": 5}',
        "[" * 5000,
        '{"a": 1}',
    ]
    unknown: list[Event] = [
        {"type": "response.news"},
        {"type": "vendor:xyz", "delta": "x"},
    ]
    assert decoded(*noise, *unknown, item_done(MESSAGE, 0), *noise, COMPLETED)[-2:] == [
        OutputItemDone(0, parse_item(MESSAGE)),
        Completed(Usage()),
    ]


@pytest.mark.parametrize("second", ['"zzz"', "[1]", "5", "null"])
def test_text_event_with_a_second_type_is_skipped(second: str) -> None:
    twofold = '{"type": "response.output_text.delta", "output_index": 0, "delta": "no", "type": %s}'
    assert decoded(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message"},
        },
        twofold % second,
        {"type": "response.output_text.delta", "output_index": 0, "delta": "yes"},
        COMPLETED,
    )[-2] == OutputItemDone(
        0,
        parse_item(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "yes"}],
                "status": "completed",
            }
        ),
    )


def test_done_marker_does_not_end_a_response() -> None:
    out, failure = cut_off(item_done(MESSAGE, 0), "[DONE]")
    assert items(out) == [(0, MESSAGE)]
    assert isinstance(failure, StreamError)
    assert str(failure) == (
        "stream disconnected before completion: stream closed before response.completed"
    )
    assert (failure.code, failure.started) == ("disconnected", True)
    assert failure.exit_code is ExitCode.UNAVAILABLE


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"id": None, "usage": None, "output": None},
        {"usage": {"input_tokens_details": None}},
    ],
)
def test_terminal_response_may_lack_everything(response: Event) -> None:
    assert decoded({"type": "response.completed", "response": response}) == [
        Completed(Usage())
    ]


def test_terminal_event_may_lack_its_response() -> None:
    created = {"type": "response.created", "response": {"id": "resp_7"}}
    assert decoded(created, {"type": "response.completed"}) == [
        Created(),
        Completed(Usage()),
    ]


def test_end_of_turn_is_passed_on() -> None:
    assert decoded(completed(end_turn=False)) == [Completed(Usage(), end_turn=False)]


def test_completed_response_of_status_failed_is_a_failure() -> None:
    error = {"code": "server_error", "message": "it broke"}
    out, failure = cut_off(completed(status="failed", error=error))
    assert out == []
    assert isinstance(failure, StreamError)
    assert str(failure) == "stream disconnected before completion: it broke"


def test_completed_response_of_status_incomplete_is_cut_short() -> None:
    out, failure = cut_off(
        text_delta("half an ans"),
        completed(message("half an ans"), status="incomplete"),
    )
    assert items(out) == [(0, message("half an ans", status="incomplete"))]
    assert str(failure) == "Incomplete response returned, reason: unknown"
    assert (failure.code, failure.retryable) == ("incomplete", False)


@pytest.mark.parametrize(
    ("reason", "code"),
    [("max_output_tokens", "incomplete"), ("content_filter", "content_filter")],
)
def test_response_that_was_cut_short_keeps_its_text_and_drops_open_calls(
    reason: str, code: str
) -> None:
    incomplete = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}},
    }
    out, failure = cut_off(
        item_done(CALL, 0),
        text_delta("half", output_index=1),
        item_added({**CALL, "call_id": "call_2", "arguments": ""}, 2),
        arguments_delta('{"a":1}', output_index=2),
        incomplete,
    )
    assert items(out) == [(0, CALL), (1, message("half", status="incomplete"))]
    assert not isinstance(failure, StreamError)
    assert str(failure) == f"Incomplete response returned, reason: {reason}"
    assert failure.code == code


def test_failure_with_items_is_raised_by_the_next_call_and_one_without_at_once() -> (
    None
):
    incomplete = json.dumps({"type": "response.incomplete", "response": {}})
    decoder = ResponsesDecoder()
    decoder.feed(json.dumps(text_delta("half")))
    assert len(decoder.feed(incomplete)) == 1
    assert decoder.finished
    with pytest.raises(ModelError, match="Incomplete"):
        decoder.feed("{}")
    with pytest.raises(ModelError, match="Incomplete"):
        ResponsesDecoder().feed(incomplete)


@pytest.mark.parametrize(
    "terminal",
    [
        {"type": "response.cancelled", "response": {"status": "cancelled"}},
        completed(status="cancelled"),
    ],
)
def test_cancelled_response_is_final(terminal: Event) -> None:
    out, failure = cut_off(item_done(CALL, 0), terminal)
    assert items(out) == [(0, CALL)]
    assert (failure.code, failure.retryable) == ("cancelled", False)


CONTEXT = {"code": "context_length_exceeded", "message": "too long"}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", **CONTEXT, "param": None},
        {
            "type": "error",
            "error": {"type": "invalid_request_error", **CONTEXT},
            "status": 400,
        },
        {"error": CONTEXT},
        {"type": "response.failed", "response": {"status": "failed", "error": CONTEXT}},
        {"type": "response.failed", "error": CONTEXT},
    ],
)
def test_errors_of_every_shape_end_the_response(event: Event) -> None:
    out, failure = cut_off(item_done(MESSAGE, 0), event, completed(CALL))
    assert items(out) == [(0, MESSAGE)]
    assert (failure.code, failure.retryable) == ("context_length_exceeded", False)
    assert str(failure).startswith(
        "Codex ran out of room in the model's context window."
    )


def test_rate_limit_within_the_stream_says_how_long_to_wait() -> None:
    error = {
        "code": "rate_limit_exceeded",
        "message": "Rate limit. Please try again in 1.5s.",
    }
    _, failure = cut_off({"type": "response.failed", "response": {"error": error}})
    assert isinstance(failure, StreamError)
    assert failure.retry_after_s == 1.5
    assert failure.exit_code is ExitCode.TEMPORARY


def test_headers_of_a_nested_error_are_read() -> None:
    error = {
        "type": "server_error",
        "message": "x",
        "headers": {"Retry-After-Ms": "250"},
    }
    _, failure = cut_off({"type": "error", "error": error, "status": 500})
    assert isinstance(failure, StreamError)
    assert (failure.retry_after_s, failure.status) == (0.25, 500)


def test_unknown_items_are_kept_as_they_are() -> None:
    item = {
        "type": "shell_call",
        "id": "sh_1",
        "action": {"commands": ["ls"]},
        "news": [1, None],
    }
    assert items(decoded(item_done(item, 0), COMPLETED)) == [(0, item)]


def test_items_done_out_of_order_keep_their_places() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2"}
    events = [
        item_added({**MESSAGE, "content": []}, 0),
        text_delta("x", output_index=0),
        item_added({**CALL, "arguments": ""}, 1),
        item_added({**second, "arguments": ""}, 2),
        item_done(CALL, 1),
        item_done(second, 2),
        item_done(MESSAGE, 0),
    ]
    assert items(decoded(*events, completed(MESSAGE, CALL, second))) == [
        (1, CALL),
        (2, second),
        (0, MESSAGE),
    ]


def test_interleaved_deltas_go_to_their_own_items() -> None:
    events = [
        item_added({**CALL, "arguments": ""}, 0),
        item_added({**CALL, "id": "fc_2", "call_id": "call_2", "arguments": ""}, 1),
        arguments_delta('{"a"', output_index=0),
        arguments_delta('{"b"', output_index=1),
        arguments_delta(":1}", output_index=0),
        arguments_delta(":2}", output_index=1),
    ]
    assert items(decoded(*events, COMPLETED)) == [
        (0, {**CALL, "arguments": '{"a":1}'}),
        (1, {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": '{"b":2}'}),
    ]


def test_items_without_a_place_are_told_apart_by_id() -> None:
    """Older llama.cpp sends no `output_index`."""
    events = [
        item_added({"type": "message", "id": "m", "role": "assistant", "content": []}),
        text_delta("Hi", item_id="m"),
        item_done(message("Hi", id="m")),
        item_added({**CALL, "id": "call_1", "arguments": ""}),
        arguments_delta('{"command":["ls"]}', item_id="call_1"),
        item_done({**CALL, "id": "call_1"}),
    ]
    out = decoded(*events, completed(message("Hi", id="m"), {**CALL, "id": "call_1"}))
    assert items(out) == [(0, message("Hi", id="m")), (1, {**CALL, "id": "call_1"})]


def test_items_that_all_claim_the_first_place_are_told_apart_by_id() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": '{"b":2}'}
    events = [
        item_added({**CALL, "arguments": ""}, 0),
        arguments_delta('{"command":["ls"]}', output_index=0, item_id="fc_1"),
        item_done(CALL, 0),
        item_added({**second, "arguments": ""}, 0),
        arguments_delta('{"b":2}', output_index=0, item_id="fc_2"),
        item_done(second, 0),
        item_done(MESSAGE, 0),
    ]
    assert items(decoded(*events, completed(CALL, second, MESSAGE))) == [
        (0, CALL),
        (1, second),
        (2, MESSAGE),
    ]


def test_summary_without_an_index_is_one_section() -> None:
    """LiteLLM announces reasoning without `summary` and sends deltas without `summary_index`."""
    kind = "response.reasoning_summary_text"
    events = [
        item_added({"type": "reasoning", "id": "rs_1"}, 0),
        {"type": f"{kind}.delta", "item_id": "rs_1", "output_index": 0, "delta": "I "},
        {
            "type": f"{kind}.delta",
            "item_id": "rs_1",
            "output_index": 0,
            "delta": "think",
        },
        item_done({"type": "reasoning", "id": "rs_1"}, 0),
    ]
    bad = {
        "type": "reasoning",
        "role": "assistant",
        "content": [{"type": "output_text"}],
    }
    assert items(decoded(*events, completed(bad))) == [
        (
            0,
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "I think"}],
            },
        )
    ]


def test_sections_of_a_summary_stay_apart() -> None:
    kind = "response.reasoning_summary_text.delta"
    deltas = [(0, "a"), (1, "b"), (0, "c")]
    events = [
        {"type": kind, "summary_index": part, "delta": text} for part, text in deltas
    ]
    out = decoded(*events, COMPLETED)
    assert out[1:4] == [ReasoningDelta(0, text, part) for part, text in deltas]
    assert [part["text"] for part in items(out)[0][1]["summary"]] == ["ac", "b"]


def test_content_index_that_grows_with_every_delta_makes_one_part() -> None:
    """vLLM counts it up; an index is no reason to make room for parts either."""
    deltas = [
        text_delta("x", content_index=10**12 + n, output_index=0) for n in range(1000)
    ]
    assert items(decoded(*deltas, COMPLETED)) == [
        (0, message("x" * 1000, status="completed"))
    ]


def test_parts_that_were_announced_stay_apart() -> None:
    def added(index: int) -> Event:
        part: Event = {"type": "output_text", "text": "", "annotations": []}
        return {
            "type": "response.content_part.added",
            "content_index": index,
            "part": part,
        }

    note = {"type": "url_citation", "url": "http://example.test"}
    events = [
        added(0),
        added(1),
        text_delta("one", content_index=0),
        text_delta("two", content_index=1),
        {
            "type": "response.output_text.annotation.added",
            "content_index": 1,
            "annotation": note,
        },
    ]
    assert items(decoded(*events, COMPLETED))[0][1]["content"] == [
        {"type": "output_text", "text": "one", "annotations": []},
        {"type": "output_text", "text": "two", "annotations": [note]},
    ]


CUSTOM = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "call_9",
    "name": "apply_patch",
    "input": "*** Begin Patch\n*** End Patch",
}


def test_custom_call_takes_its_input_from_the_done_item_not_from_the_json_around_it() -> (
    None
):
    """LiteLLM streams the wrapper of the function that stands for the freeform tool."""
    wrapper = json.dumps({"input": CUSTOM["input"]})
    out = decoded(
        item_added({**CUSTOM, "input": ""}, 0),
        arguments_delta(wrapper, output_index=0),
        {
            "type": "response.function_call_arguments.done",
            "output_index": 0,
            "arguments": wrapper,
        },
        item_done(CUSTOM, 0),
        COMPLETED,
    )
    assert items(out) == [(0, CUSTOM)]


@pytest.mark.parametrize("key", ["input", "content"])
def test_custom_call_that_is_never_done_is_unwrapped(key: str) -> None:
    wrapper = json.dumps({key: CUSTOM["input"]})
    events = [
        item_added({**CUSTOM, "input": ""}, 0),
        arguments_delta(wrapper, output_index=0),
    ]
    assert items(decoded(*events, COMPLETED)) == [
        (0, {**CUSTOM, "status": "completed"})
    ]


def test_custom_call_can_come_in_deltas_of_its_own() -> None:
    kind = "response.custom_tool_call_input.delta"
    deltas = [
        {"type": kind, "output_index": 0, "delta": char} for char in CUSTOM["input"]
    ]
    out = decoded(item_added({**CUSTOM, "input": ""}, 0), *deltas, COMPLETED)
    assert items(out) == [(0, {**CUSTOM, "status": "completed"})]


def test_call_that_was_announced_and_never_done_runs_when_its_arguments_are_whole() -> (
    None
):
    announced = {**CALL, "arguments": "", "status": "in_progress"}
    events = [
        item_added(announced, 0),
        arguments_delta('{"command":["ls"]}', output_index=0),
    ]
    assert items(decoded(*events, COMPLETED)) == [(0, CALL)]


@pytest.mark.parametrize("arguments", ["", '{"command":["rm", "-rf"'])
def test_call_that_was_cut_fails_the_response_after_the_whole_items(
    arguments: str,
) -> None:
    out, failure = cut_off(
        item_added({**CALL, "arguments": ""}, 0),
        *([arguments_delta(arguments, output_index=0)] if arguments else []),
        text_delta("hello", output_index=1),
        COMPLETED,
    )
    assert items(out) == [(1, message("hello", status="completed"))]
    assert isinstance(failure, StreamError)
    assert "function_call was announced and never sent" in str(failure)


def test_arguments_can_come_whole_at_their_end_alone() -> None:
    kind = "response.function_call_arguments.done"
    events: list[Event] = [
        item_added({"type": "function_call", "id": "fc_1", "call_id": "call_1"}, 0),
        {"type": kind, "output_index": 0, "arguments": "{}", "name": "shell"},
    ]
    assert items(decoded(*events, COMPLETED)) == [
        (
            0,
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "shell",
                "arguments": "{}",
                "status": "completed",
            },
        )
    ]


def test_arguments_announced_as_an_empty_object_are_not_put_before_the_real_ones() -> (
    None
):
    events = [
        item_added({**CALL, "arguments": "{}"}, 0),
        arguments_delta(CALL["arguments"], output_index=0),
    ]
    assert items(decoded(*events, COMPLETED)) == [(0, CALL)]


def test_items_announced_whole_need_no_more_than_the_end() -> None:
    assert items(decoded(item_added(MESSAGE, 0), item_added(CALL, 1), COMPLETED)) == [
        (0, MESSAGE),
        (1, CALL),
    ]


def test_announcement_without_an_item_is_skipped() -> None:
    assert decoded(item_added(None, 0), COMPLETED) == [Completed(Usage())]


def test_terminal_response_that_renames_items_does_not_repeat_them() -> None:
    """vLLM gives the streamed and the final items different ids."""
    renamed = [{**MESSAGE, "id": "msg_x"}, {**CALL, "id": "fc_x", "call_id": "call_x"}]
    events = [item_done(MESSAGE, 0), item_done(CALL, 1)]
    assert items(decoded(*events, completed(*renamed))) == [(0, MESSAGE), (1, CALL)]
    moved = [item_done(MESSAGE, 1), item_done(CALL, 2)]
    assert items(decoded(*moved, completed(*renamed))) == [(1, MESSAGE), (2, CALL)]


def test_terminal_response_adds_what_no_event_brought() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2"}
    events = [item_done(MESSAGE, 0), item_done(CALL, 1)]
    assert items(decoded(*events, completed(MESSAGE, CALL, second)))[2:] == [
        (2, second)
    ]


def test_terminal_response_mends_arguments_that_were_cut() -> None:
    events = [
        item_added({**CALL, "arguments": ""}, 0),
        arguments_delta('{"comm', output_index=0),
    ]
    assert items(decoded(*events, completed(CALL))) == [(0, CALL)]


def test_done_item_without_its_content_gets_what_was_streamed() -> None:
    events = [
        text_delta("Hello", output_index=0),
        item_done(
            {"type": "message", "role": "assistant", "id": "m", "content": []}, 0
        ),
        item_added({**CALL, "arguments": ""}, 1),
        arguments_delta(CALL["arguments"], output_index=1),
        item_done({"type": "function_call", "name": "shell", "arguments": ""}, 1),
    ]
    assert items(decoded(*events, COMPLETED)) == [
        (0, message("Hello", id="m")),
        (1, {k: CALL[k] for k in ("type", "name", "arguments", "id", "call_id")}),
    ]


def test_partial_encrypted_content_of_an_announcement_is_not_kept() -> None:
    summary = [{"type": "summary_text", "text": "s"}]
    added = {
        "type": "reasoning",
        "id": "rs",
        "summary": summary,
        "encrypted_content": "gA",
    }
    assert items(decoded(item_added(added, 0), COMPLETED)) == [
        (
            0,
            {
                "type": "reasoning",
                "id": "rs",
                "summary": summary,
                "status": "completed",
            },
        )
    ]


def test_item_that_is_sent_again_is_given_out_once() -> None:
    stream = full_stream()
    again = [
        *stream[:-1],
        *stream[:-1],
        item_done(CALL, 7),
        item_done(CALL),
        stream[-1],
    ]
    out = decoded(*again)
    assert items(out) == [(0, REASONING), (1, MESSAGE), (2, CALL)]
    assert sum(isinstance(event, OutputItemAdded) for event in out) == 3


def test_items_that_all_claim_the_first_place_are_given_out_once_when_sent_again() -> (
    None
):
    second = {**CALL, "id": "fc_2", "call_id": "call_2"}
    calls = [
        event
        for item in (CALL, second, second)
        for event in (item_added({**item, "arguments": ""}, 0), item_done(item, 0))
    ]
    assert items(decoded(*calls, COMPLETED)) == [(0, CALL), (1, second)]


def test_message_in_the_place_of_an_open_call_is_that_of_the_text_before_it() -> None:
    events = [
        item_added({**CALL, "arguments": ""}, 0),
        arguments_delta(CALL["arguments"], output_index=0),
        text_delta("Hello", output_index=0),
        item_done(message("Hello"), 0),
    ]
    assert items(decoded(*events, COMPLETED)) == [(1, message("Hello")), (0, CALL)]


def test_call_that_the_terminal_response_lists_twice_is_given_out_once() -> None:
    assert items(decoded(completed(CALL, CALL))) == [(0, CALL)]


@pytest.mark.parametrize("kind", ["items", "listed", "parts"])
def test_a_response_of_too_many_items_or_parts_is_refused(kind: str) -> None:
    calls = [{**CALL, "call_id": f"call_{n}", "id": f"fc_{n}"} for n in range(2_001)]
    part = {"type": "response.content_part.added", "part": {"type": "output_text"}}
    events = {
        "items": [item_done(call, index) for index, call in enumerate(calls)],
        "listed": [completed(*calls)],
        "parts": [
            {**part, "output_index": 0, "content_index": n} for n in range(2_001)
        ],
    }
    _, failure = cut_off(*events[kind], COMPLETED)
    assert (failure.code, failure.retryable) == ("response_too_large", False)


def test_repeated_item_does_not_close_the_call_in_whose_place_it_comes() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": '{"b":2}'}
    events = [
        item_done(CALL, 0),
        item_added({**second, "arguments": ""}, 1),
        item_done(CALL, 1),
    ]
    out = decoded(
        *events,
        item_done(second, 1),
        item_done({**second, "arguments": "{}"}, 1),
        COMPLETED,
    )
    assert items(out) == [(0, CALL), (1, second)]


def test_nameless_items_in_one_place_are_told_apart_by_what_they_say() -> None:
    events = [item_done(message(text), 0) for text in ("one", "one", "two")]
    assert items(decoded(*events, COMPLETED)) == [
        (0, message("one")),
        (1, message("two")),
    ]


def test_equal_calls_in_one_place_are_told_apart_by_id() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "call_2"}
    assert items(decoded(item_done(CALL, 0), item_done(second, 0), COMPLETED)) == [
        (0, CALL),
        (1, second),
    ]


def test_two_calls_under_one_id_are_both_given_out() -> None:
    other = {**CALL, "id": "fc_2", "arguments": '{"command":["pwd"]}'}
    out = decoded(item_done(CALL, 0), item_done(other, 1), COMPLETED)
    assert items(out) == [(0, CALL), (1, other)]


def test_call_without_an_id_gets_one() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": "{}"}
    [(_, first), (_, second)] = items(
        decoded(item_done(call, 0), item_done(call, 1), COMPLETED)
    )
    assert first["call_id"].startswith("call_")
    assert first["call_id"] != second["call_id"]


def test_local_shell_call_without_any_id_gets_one_and_keeps_an_id_that_it_has() -> None:
    call = {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}}
    named = {**call, "id": "lsh_1"}
    [(_, first), (_, second)] = items(
        decoded(item_done(call, 0), item_done(named, 1), COMPLETED)
    )
    assert first["call_id"].startswith("call_")
    assert second == named


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
def test_outputs_that_a_server_sends_are_not_taken_for_ours(kind: str) -> None:
    output = {"type": kind, "call_id": "call_1", "output": "forged"}
    out = decoded(
        item_added(output, 0), item_done(output, 0), item_done(MESSAGE, 1), COMPLETED
    )
    assert items(out) == [(1, MESSAGE)]
    assert out.count(OutputItemAdded()) == 1
    assert items(decoded(completed(output, MESSAGE))) == [(1, MESSAGE)]


def test_malformed_item_is_an_error_that_names_the_field() -> None:
    out, failure = cut_off(
        item_done(MESSAGE, 0),
        item_done({"type": "function_call", "call_id": "c", "arguments": "{}"}, 1),
        COMPLETED,
    )
    assert items(out) == [(0, MESSAGE)]
    assert isinstance(failure, MalformedItem)
    assert "'name'" in str(failure)


@pytest.mark.parametrize("kind", [None, [], {}, 5])
def test_type_that_is_no_text_is_malformed_too(kind: object) -> None:
    part = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": kind, "text": "x"}],
    }
    for item in ({"type": kind, "call_id": "c"}, part):
        _, failure = cut_off(item_done(item, 0), COMPLETED)
        assert isinstance(failure, MalformedItem)


def test_malformed_item_in_the_terminal_response_does_not_hold_up_the_others() -> None:
    out, failure = cut_off(completed({"type": "local_shell_call"}, MESSAGE))
    assert items(out) == [(1, MESSAGE)]
    assert isinstance(failure, MalformedItem)


def test_whole_response_in_place_of_a_stream_is_read() -> None:
    body: Event = {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [MESSAGE],
    }
    assert decoded(body) == [
        Created(),
        OutputItemAdded(),
        OutputItemDone(0, parse_item(MESSAGE)),
        Completed(Usage()),
    ]


def test_response_that_is_still_queued_is_not_taken_for_an_answer() -> None:
    out, failure = cut_off({"id": "resp_1", "object": "response", "status": "queued"})
    assert out == [Created()]
    assert isinstance(failure, StreamError)


def test_lone_surrogates_are_replaced_and_a_pair_across_deltas_is_joined() -> None:
    high, low = '"\\ud83d"', '"\\udc4d"'
    delta = '{"type":"response.output_text.delta","output_index":0,"delta":%s}'
    out = decoded(delta % high, delta % low, delta % high, COMPLETED)
    assert items(out) == [(0, message("👍\ufffd", status="completed"))]
    assert OutputTextDelta(0, "\ufffd") in out
    item = json.dumps(item_done(message("SURROGATE"), 0)).replace(
        "SURROGATE", "a\\uD83d"
    )
    assert items(decoded(item, COMPLETED)) == [(0, message("a\ufffd"))]


def test_nothing_is_read_after_the_end() -> None:
    decoder = ResponsesDecoder()
    assert decoder.feed(json.dumps(COMPLETED)) == [Completed(Usage())]
    assert decoder.finished
    assert decoder.feed(json.dumps(item_done(CALL, 0))) == ()
    assert decoder.end() == ()


def test_events_with_fields_of_the_wrong_type_do_no_harm() -> None:
    odd: list[Any] = [
        None,
        5,
        "x",
        [],
        [1],
        {},
        {"a": []},
        [{"type": "message"}],
        True,
        1.5,
    ]
    fields = [
        "output_index",
        "item_id",
        "content_index",
        "summary_index",
        "delta",
        "item",
        "part",
    ]
    fields += ["text", "arguments", "input", "response", "error", "name"]
    inner = ["text", "annotations", "type", "output", "usage", "id", "error", "status"]
    kinds = {event["type"] for event in full_stream()}
    kinds |= {"error", "response.failed", "response.output_text.annotation.added"}
    chance = random.Random(1)
    for _ in range(share(2000)):
        decoder = ResponsesDecoder()
        for _ in range(5):
            event = {name: chance.choice(odd) for name in chance.sample(fields, 5)}
            event["part" if chance.random() < 0.5 else "response"] = {
                name: chance.choice(odd) for name in chance.sample(inner, 3)
            }
            event["type"] = chance.choice(sorted(kinds))
            try:
                decoder.feed(json.dumps(event))
            except ModelError:
                break
