"""Streams of chat completions as servers send them.

Also tests `model/response_builder.py`.
"""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.errors import ModelError, StreamError
from codex_py.model.chat.decoder import ChatDecoder
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
    ReasoningDelta,
    ResponseEvent,
    Usage,
)
from codex_py.protocol.tools import FreeformSpec, FunctionSpec

PATCH = FreeformSpec("apply_patch", "Patches.", "start: x")
OFFERED = ("exec_command", "shell", "shell_command", "mcp__srv__tool")
DONE = "[DONE]"
STOP: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def decoder(offered: Sequence[str] = ()) -> ChatDecoder:
    tools = [PATCH, *(FunctionSpec(name, "", {"type": "object"}) for name in offered)]
    prompt = Prompt(model="m", input=[], cache_key="t", tools=tools)
    return ChatDecoder(prompt, Maker("p", "p"), deltas=True)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def part(arguments: Any = "", *, name: str = "", **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return chunk(tool_calls=[{**fields, "function": function}])


def decode(*chunks: Any, offered: Sequence[str] = ()) -> list[ResponseEvent]:
    reader = decoder(offered)
    events: list[ResponseEvent] = []
    for each in chunks:
        events += reader.feed(each if isinstance(each, str) else json.dumps(each))
    return [*events, *reader.end()]


def items(events: list[ResponseEvent]) -> list[ResponseItem]:
    return [event.item for event in events if isinstance(event, OutputItemDone)]


def calls(events: list[ResponseEvent]) -> list[tuple[str, str, str]]:
    found = [item for item in items(events) if isinstance(item, FunctionCall)]
    return [(call.call_id, call.name, call.arguments) for call in found]


def usage_of(events: list[ResponseEvent]) -> Usage:
    (completed,) = [event for event in events if isinstance(event, Completed)]
    return completed.usage


def test_text_is_shown_as_it_comes_and_the_usage_may_come_last() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 3}}
    usage: dict[str, Any] = {
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, **details},
        "choices": [],
    }
    events = decode(chunk(content="Hel"), chunk(content="lo"), STOP, usage, DONE)
    assert [e.delta for e in events if isinstance(e, OutputTextDelta)] == ["Hel", "lo"]
    (message,) = items(events)
    assert isinstance(message, Message)
    assert (message.text, message.id) == ("Hello", None)
    assert usage_of(events) == Usage(
        input_tokens=7, cached_input_tokens=3, output_tokens=2
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning": {"text": "hm"}},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"content": "<think>hm</think>\n\n"},
        {"content": [{"type": "text", "text": "<think>hm</think>"}]},
    ],
)
def test_reasoning_has_many_names(fields: dict[str, Any]) -> None:
    events = decode(chunk(**fields), chunk(content="yes"), STOP, DONE)
    thought, message = items(events)
    assert isinstance(thought, Reasoning)
    assert isinstance(message, Message)
    assert ([part.text for part in thought.summary], message.text) == (["hm"], "yes")
    kept = thought.source["provider_data"]
    assert (kept["provider"], kept["model"]) == ("p", "m")
    assert kept["field"] == ("think" if "content" in fields else next(iter(fields)))


def test_reasoning_details_are_kept_word_for_word() -> None:
    detail = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    thought, _ = items(
        decode(chunk(reasoning_details=[detail]), chunk(content="."), STOP, DONE)
    )
    assert getattr(thought, "source")["provider_data"]["details"] == [detail]  # noqa: B009


def test_thoughts_between_tags_are_shown_as_they_stream() -> None:
    reader = decoder()
    shown = [
        "".join(
            e.delta
            for e in reader.feed(json.dumps(chunk(content=text)))
            if isinstance(e, ReasoningDelta)
        )
        for text in ("<thi", "nk>", "\n", "a <", "b> c ", "\n</th", "ink>\n\nd")
    ]
    assert shown == ["", "", "", "a ", "<b> c ", "\n", ""]
    thought, answer = items([*reader.feed(json.dumps(STOP)), *reader.end()])
    assert isinstance(thought, Reasoning)
    assert thought.summary[0].text == "a <b> c \n"
    assert getattr(answer, "text", "") == "d"


def test_a_think_tag_may_come_in_pieces_and_text_before_it_is_text() -> None:
    pieces = [chunk(content=c) for c in ("<th", "ink>a", "</thi", "nk>b")]
    assert [type(item) for item in items(decode(*pieces, STOP, DONE))] == [
        Reasoning,
        Message,
    ]
    (message,) = items(decode(chunk(content="x <think>"), STOP, DONE))
    assert getattr(message, "text", "") == "x <think>"


A, B = '{"a":1}', '{"b":2}'


@pytest.mark.parametrize(
    "chunks",
    [
        # by index, in pieces
        [
            part(name="f", index=0, id="1"),
            part('{"a"', index=0),
            part(name="g", index=1, id="2"),
            part(":1}", index=0),
            part(B, index=1),
        ],
        # every call at the same index, told apart by id
        [part(A, name="f", index=0, id="1"), part(B, name="g", index=0, id="2")],
        # no index
        [part(A, name="f", id="1"), part(B, name="g", id="2")],
        [part('{"a"', name="f", id="1"), part(":1}"), part(B, name="g", id="2")],
        # the id in every chunk, and the name too
        [
            part('{"a"', name="f", index=0, id="1"),
            part(":1}", name="f", index=0, id="1"),
            part(B, name="g", index=1, id="2"),
        ],
        # decoded arguments; whole arguments once more at the end
        [
            part({"a": 1}, name="f", index=0, id="1"),
            part({"b": 2}, name="g", index=1, id="2"),
        ],
        [
            part(A, name="f", index=0, id="1"),
            part(B, name="g", index=1, id="2"),
            part(A, index=0),
            part(B, index=1),
        ],
    ],
)
def test_calls_are_put_together_however_they_come(chunks: list[Any]) -> None:
    end = chunk("tool_calls")
    assert calls(decode(*chunks, end, DONE)) == [("1", "f", A), ("2", "g", B)]


def test_without_index_and_id_a_name_begins_a_call_once_the_last_one_is_whole() -> None:
    found = calls(decode(part(A, name="f"), part(B, name="f"), chunk("stop"), DONE))
    assert [(name, arguments) for _, name, arguments in found] == [("f", A), ("f", B)]
    assert len({call_id for call_id, *_ in found}) == 2


@pytest.mark.parametrize(
    "pieces",
    [
        ["exec_", "command"],
        ["exec_command"],
        ["e", "xec", "_com", "mand"],
        ["shell", "_command"],
        ["mcp__srv", "__", "tool"],
    ],
)
@pytest.mark.parametrize("has_id", [True, False])
def test_a_name_in_pieces_is_that_of_one_call(pieces: list[str], has_id: bool) -> None:
    first = {"id": "a"} if has_id else {}
    chunks = [part(name=pieces[0], index=0, **first)]
    chunks += [part(name=piece, index=0) for piece in pieces[1:]]
    chunks += [part(piece, index=0) for piece in ('{"a"', ":1}")]
    chunks += [part(B, name="shell", index=1, id="b"), chunk("tool_calls"), DONE]
    found = calls(decode(*chunks, offered=OFFERED))
    assert [(name, arguments) for _, name, arguments in found] == [
        ("".join(pieces), A),
        ("shell", B),
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # One index for every call, as some servers have it.
        (["shell", "exec_command"], ["shell", "exec_command"]),
        (["exec_command", "shell"], ["exec_command", "shell"]),
        (["unknown", "_command"], ["unknown", "_command"]),
    ],
)
def test_a_name_that_no_pieces_make_is_that_of_another_call(
    names: list[str], expected: list[str]
) -> None:
    chunks = [part(name=name, index=0) for name in names]
    found = calls(decode(*chunks, chunk("tool_calls"), DONE, offered=OFFERED))
    assert [name for _, name, _ in found] == expected


def test_a_name_that_is_repeated_at_the_end_is_no_call() -> None:
    chunks = [part(A, name="f", index=0), part("", name="f", index=0)]
    assert len(calls(decode(*chunks, chunk("tool_calls"), DONE))) == 1


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "", "anything", None])
def test_calls_count_whatever_the_end_is_called(finish: str | None) -> None:
    events = decode(part(name="f", index=0, id="1"), chunk(finish), DONE)
    assert calls(events) == [("1", "f", "{}")]


def test_a_call_of_a_freeform_tool_is_unwrapped() -> None:
    arguments = json.dumps({"input": "*** Begin Patch"})
    (call,) = items(
        decode(part(arguments, name="apply_patch", index=0, id="1"), STOP, DONE)
    )
    assert isinstance(call, CustomToolCall)
    assert (call.input, call.call_id) == ("*** Begin Patch", "1")


def test_data_that_the_provider_attaches_to_a_call_is_kept() -> None:
    extra = {"google": {"thought_signature": "s"}}
    (call,) = items(
        decode(part(A, name="f", index=0, id="1", extra_content=extra), STOP, DONE)
    )
    assert getattr(call, "source")["provider_data"]["extra_content"] == extra  # noqa: B009


def test_a_message_that_is_not_streamed_is_read_too() -> None:
    choice = {"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}
    (message,) = items(decode({"object": "chat.completion", "choices": [choice]}))
    assert getattr(message, "text", "") == "yes"


def test_the_end_may_lack_its_mark_but_not_its_reason() -> None:
    assert items(decode(chunk(content="yes"), STOP))
    assert items(decode(chunk(content="yes"), DONE))
    for chunks in ([chunk(content="yes")], [DONE], []):
        with pytest.raises(StreamError, match="disconnected"):
            decode(*chunks)


COUNTED: dict[str, Any] = {
    "choices": [],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}
CALL = part(A, name="f", index=0, id="1")


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(content="yes"), COUNTED],
        [chunk("", content="yes"), COUNTED],
        [part(name="f", index=0, id="1"), COUNTED],
        [CALL, COUNTED],
        [chunk(content="yes"), CALL, COUNTED],
        [chunk(reasoning_content="hm"), chunk(content="yes"), COUNTED],
        [COUNTED, chunk(content="yes"), COUNTED],
    ],
)
def test_the_usage_alone_behind_an_answer_is_its_end(chunks: list[Any]) -> None:
    events = decode(*chunks)
    assert items(events)
    assert isinstance(events[-1], Completed)
    assert events[-1].usage.output_tokens == 1


@pytest.mark.parametrize(
    "chunks",
    [
        [COUNTED],
        [COUNTED, chunk(content="cut")],
        [chunk(content="cut"), COUNTED, chunk(content=" off")],
        [{**chunk(content="cut"), "usage": COUNTED["usage"]}],
        [chunk(content="cut"), {"choices": [], "usage": None}],
        [chunk(content="cut"), {"choices": []}],
        [
            part('{"a"', name="f", index=0, id="1"),
            {**chunk(), "usage": COUNTED["usage"]},
        ],
        [part('{"a"', name="f", index=0, id="1"), COUNTED],
        [chunk(content="yes"), CALL, part('{"a"', name="g", index=1, id="2"), COUNTED],
        [chunk("", content="a"), chunk("", content="b")],
        [chunk("", content="a"), {**chunk("", content="b"), "usage": COUNTED["usage"]}],
    ],
)
def test_the_usage_elsewhere_is_no_end(chunks: list[Any]) -> None:
    with pytest.raises(StreamError, match="disconnected"):
        decode(*chunks)


@pytest.mark.parametrize(
    "end", [[STOP], [STOP, DONE], [DONE], [chunk("", content=""), COUNTED]]
)
@pytest.mark.parametrize("reason", ["", None])
def test_usage_in_every_chunk_cuts_no_answer(
    reason: str | None, end: list[Any]
) -> None:
    pieces = [
        {**chunk(reason, content=text), "usage": COUNTED["usage"]} for text in "abc"
    ]
    (message,) = items(decode(*pieces, *end))
    assert getattr(message, "text", "") == "abc"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (chunk("length", content="cut"), "incomplete"),
        (chunk("content_filter", content="cut"), "content_filter"),
        (chunk("sensitive", content="cut"), "content_filter"),
        (
            chunk("model_context_window_exceeded", content="cut"),
            "context_length_exceeded",
        ),
        ({"error": {"message": "no", "code": "invalid_api_key"}}, "invalid_api_key"),
        ({"choices": [{"error": {"code": 502, "message": "no"}}]}, "server_error"),
        (chunk("error", content="cut"), "server_error"),
    ],
)
def test_every_other_end_is_a_failure_that_runs_no_call_and_keeps_the_text_if_it_is_final(
    last: dict[str, Any], code: str
) -> None:
    reader = decoder()
    events: list[ResponseEvent] = []
    failures: list[ModelError] = []
    for each in (
        chunk(content="the "),
        part('{"a"', name="f", index=0, id="1"),
        last,
        DONE,
    ):
        try:
            events += reader.feed(json.dumps(each))
        except ModelError as error:
            failures.append(error)
    failure = failures[0]
    assert (failure.code, calls(events)) == (code, [])
    states = [getattr(message, "status", None) for message in items(events)]
    assert states == ([] if failure.retryable else ["incomplete"])


def test_a_request_that_fills_the_window_gets_no_answer() -> None:
    with pytest.raises(ModelError) as caught:
        decode(chunk("length"))
    assert caught.value.code == "context_length_exceeded"


def test_usage_hides_in_other_places() -> None:
    numbers = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 9}
    for usage in ({"x_groq": {"usage": numbers}}, {"usage": numbers}):
        events = decode(chunk(content="."), {**STOP, **usage})
        # What the total has beyond both is reasoning.
        assert usage_of(events) == Usage(input_tokens=5, output_tokens=4)
    moonshot = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": numbers}]}
    assert usage_of(decode(chunk(content="."), moonshot)).input_tokens == 5


def test_long_arguments_in_small_pieces_take_linear_time() -> None:
    text = json.dumps({"a": "x" * 100_000})
    pieces = [part(text[n : n + 5], index=0) for n in range(0, len(text), 5)]
    assert calls(decode(part(name="f", index=0, id="1"), *pieces, STOP, DONE)) == [
        ("1", "f", text)
    ]


@pytest.mark.parametrize("beginning", ["<think>", " "])
def test_a_long_beginning_in_small_pieces_takes_linear_time(beginning: str) -> None:
    reader = decoder()
    pieces = [
        json.dumps(chunk(content=text)) for text in (beginning, *["    "] * 50_000)
    ]
    start = time.process_time()
    for piece in pieces:
        reader.feed(piece)
    assert time.process_time() - start < 5


def test_a_response_of_endless_calls_ends() -> None:
    chunks = (part("{}", name="f", index=number) for number in range(2_001))
    with pytest.raises(ModelError, match="more than 2000 messages and calls"):
        decode(*chunks)


@pytest.mark.parametrize("number", [-1, True, 10**400, 1.5, "1"])
def test_a_number_of_tokens_that_cannot_be_is_none(number: Any) -> None:
    usage = dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "total_tokens"), number
    )
    assert usage_of(decode(chunk(content="."), STOP | {"usage": usage})) == Usage()


def said(*texts: str, **fields: Any) -> tuple[str, str]:
    """The reasoning and the answer of a stream with this text."""
    chunks = [chunk(**fields)] if fields else []
    found = items(decode(*chunks, *(chunk(content=text) for text in texts), STOP, DONE))
    thoughts = [item.summary[0].text for item in found if isinstance(item, Reasoning)]
    answers = [item.text for item in found if isinstance(item, Message)]
    return "".join(thoughts), "".join(answers)


@pytest.mark.parametrize(
    "text",
    [
        "I should greet the user.\nLet me.\n</think>\n\nHello!",
        "I should greet the user.\nLet me.</think>\nHello!",
        "I should greet the user.\nLet me.\n</think>Hello!",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_closing_tag_alone_ends_reasoning(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert said(*pieces) == ("I should greet the user.\nLet me.", "Hello!")


def test_reasoning_may_be_all_that_comes_before_a_call() -> None:
    chunks = [
        chunk(content="Let me look.\n</think>"),
        part(A, name="f", index=0, id="1"),
    ]
    thought, call = items(decode(*chunks, chunk("tool_calls"), DONE))
    assert isinstance(thought, Reasoning)
    assert thought.summary[0].text == "Let me look."
    assert isinstance(call, FunctionCall)


@pytest.mark.parametrize(
    "text",
    [
        "Models end their thoughts with </think> as a rule.",
        "Write `</think>\n` at the end.",
        "Write:\n```\nthoughts\n</think>\n```\nThat is all.",
        "The template is:\n<think>\nthoughts\n</think>\nand so on.",
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_an_answer_that_speaks_of_the_tag_keeps_it(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert said(*pieces) == ("", text)


def test_a_tag_behind_reasoning_of_its_own_is_text() -> None:
    found = said("x\n</think>\ny", reasoning_content="Hm.")
    assert found == ("Hm.", "x\n</think>\ny")
