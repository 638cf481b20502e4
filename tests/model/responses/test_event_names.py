"""Guides and some gateways name an event beside its data alone, and send items without what goes around them."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from codex_py.errors import ModelError
from codex_py.http.transport import http_client
from codex_py.model.client import HttpModelClient
from codex_py.model.providers import Provider
from codex_py.model.responses.wire import ResponsesWire
from codex_py.protocol.items import parse_item
from codex_py.protocol.stream import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Usage,
)

CALL = {
    "type": "function_call",
    "name": "shell",
    "call_id": "call_1",
    "arguments": '{"a":1}',
}
NO_ARGUMENTS = {**CALL, "arguments": ""}
DONE = Completed(Usage(1, output_tokens=1))
END = (
    "response.completed",
    {"id": "r", "usage": {"input_tokens": 1, "output_tokens": 1}},
)


def answer(events: Iterable[tuple[str, Any]]) -> list[ResponseEvent]:
    """What a client reads of a stream of these events."""
    body = "".join(f"event: {name}\ndata: {json.dumps(d)}\n\n" for name, d in events)

    async def main() -> list[ResponseEvent]:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
        client = HttpModelClient(
            provider=Provider(id="mock", name="Mock", base_url="http://mock.test/v1"),
            wire=ResponsesWire(),
            http=http_client(environment={}, transport=transport),
            key=None,
            headers={},
        )
        async with client.stream(Prompt(model="m", input=(), cache_key="t")) as stream:
            out = [event async for event in stream]
        await client.aclose()
        return out

    return asyncio.run(main())


def test_an_unwrapped_item_is_the_item_of_its_event() -> None:
    assert answer(
        [("response.created", {"id": "r"}), ("response.output_item.done", CALL), END]
    ) == [
        Created(),
        OutputItemAdded(),
        OutputItemDone(0, parse_item(CALL)),
        DONE,
    ]


def test_deltas_without_a_type_are_those_of_the_item_before_them() -> None:
    halves = [
        ("response.function_call_arguments.delta", {"delta": half})
        for half in ('{"a"', ":1}")
    ]
    events = [
        ("response.output_item.added", NO_ARGUMENTS),
        *halves,
        ("response.output_item.done", NO_ARGUMENTS),
    ]
    assert answer([*events, END]) == [
        OutputItemAdded(),
        OutputItemDone(0, parse_item(CALL)),
        DONE,
    ]


def test_an_unwrapped_item_keeps_its_place() -> None:
    calls = [{**CALL, "call_id": f"call_{index}"} for index in (0, 1)]
    placed = [{**calls[index], "output_index": index} for index in (1, 0)]
    out = answer([*(("response.output_item.done", call) for call in placed), END])
    done = [event for event in out if isinstance(event, OutputItemDone)]
    assert done == [OutputItemDone(index, parse_item(calls[index])) for index in (1, 0)]


def test_the_type_in_the_data_counts_more_than_the_name() -> None:
    item = {"type": "response.output_item.done", "item": CALL}
    out = answer(
        [
            ("response.output_item.added", item),
            ("response.output_text.delta", item),
            END,
        ]
    )
    assert out[1:] == [OutputItemDone(0, parse_item(CALL)), DONE]


def test_text_is_no_item_whatever_the_name_of_its_event() -> None:
    text = {"type": "response.output_text.delta", "delta": "x"}
    out = answer([("response.output_item.done", text), END])
    assert out[1] == OutputTextDelta(0, "x")


ADDED, ITEM_DONE = "response.output_item.added", "response.output_item.done"
SHELL = {
    "type": "local_shell_call",
    "call_id": "c",
    "action": {"type": "exec", "command": ["ls"]},
}
PATCH = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch"}
ANSWER = {"type": "message", "role": "assistant"}
HI = {**ANSWER, "content": [{"type": "output_text", "text": "Hi"}]}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
ARGUMENTS = "response.function_call_arguments.delta"
TEXT = "response.output_text.delta"


def call(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "shell", **fields}


@pytest.mark.parametrize(
    ("events", "items"),
    [
        pytest.param(
            [
                (ADDED, call(1)),
                (ARGUMENTS, {"delta": '{"a"'}),
                (ARGUMENTS, {"delta": ":1}"}),
                (ITEM_DONE, call(1, arguments='{"a":1}')),
            ],
            [call(1, arguments='{"a":1}')],
            id="a call",
        ),
        pytest.param(
            [(ADDED, call(1)), (ARGUMENTS, {"delta": "{}"})],
            [call(1, arguments="{}", status="completed")],
            id="a call that is never done",
        ),
        pytest.param(
            [(ITEM_DONE, call(1, arguments="{}"))] * 2,
            [call(1, arguments="{}")],
            id="a call twice, not announced",
        ),
        pytest.param(
            [(ARGUMENTS, {"delta": "{}"}), (ADDED, call(1)), (ITEM_DONE, call(1))],
            [call(1, arguments="{}")],
            id="arguments before any item",
        ),
        pytest.param(
            [
                (ADDED, call(1)),
                (ARGUMENTS, {"delta": '{"a":1}'}),
                (ADDED, call(2)),
                (ARGUMENTS, {"delta": '{"a":2}'}),
                (ITEM_DONE, call(1)),
                (ITEM_DONE, call(2)),
            ],
            [call(1, arguments='{"a":1}'), call(2, arguments='{"a":2}')],
            id="two open calls",
        ),
        pytest.param(
            [
                ("response.output_text.delta", {"delta": "Hi", "type": "output_text"}),
                ("data", {"type": ADDED, "output_index": 1, "item": call(1)}),
                (ARGUMENTS, {"delta": "{}"}),
                (ITEM_DONE, call(1)),
            ],
            [call(1, arguments="{}"), {**HI, "status": "completed"}],
            id="both forms in one stream",
        ),
        pytest.param(
            [(ADDED, SHELL), (ITEM_DONE, SHELL)], [SHELL], id="a local shell call"
        ),
        pytest.param(
            [
                (ADDED, PATCH),
                ("response.custom_tool_call_input.delta", {"delta": "x"}),
                (ITEM_DONE, PATCH),
            ],
            [{**PATCH, "input": "x"}],
            id="a custom call",
        ),
        pytest.param(
            [(ADDED, ANSWER), (TEXT, {"delta": "Hi"}), (ITEM_DONE, HI)], [HI], id="text"
        ),
        pytest.param(
            [
                (ADDED, ANSWER),
                (TEXT, {"delta": "Hi"}),
                (ITEM_DONE, {"type": "message"}),
            ],
            [HI],
            id="a message without content",
        ),
        pytest.param(
            [
                ("response.content_part.added", {"type": "output_text", "text": ""}),
                (TEXT, {"delta": "Hi", "type": "text"}),
                ("response.content_part.done", {"type": "output_text", "text": "Hi"}),
            ],
            [{**HI, "status": "completed"}],
            id="parts that are their events",
        ),
        pytest.param(
            [
                (ADDED, {"type": "reasoning"}),
                ("response.reasoning_summary_text.delta", {"delta": "hm"}),
                (ITEM_DONE, {"type": "reasoning"}),
            ],
            [THOUGHT],
            id="reasoning",
        ),
        pytest.param(
            [
                ("response.news", call(1, arguments="{}")),
                ("ping", {"type": "ping"}),
                (ITEM_DONE, HI),
            ],
            [HI],
            id="events with other names",
        ),
        pytest.param(
            [(ITEM_DONE, {**HI, "sequence_number": 4, "output_index": 0})],
            [HI],
            id="a place beside the fields of the item",
        ),
    ],
)
@pytest.mark.parametrize("kind", [{}, {"type": "response"}, {"object": "response"}])
def test_the_data_of_an_event_may_be_what_it_is_about(
    events: list[tuple[str, Any]], items: list[dict[str, Any]], kind: dict[str, str]
) -> None:
    end = ("response.completed", {**END[1], **kind})
    out = answer([("response.created", {"id": "r", **kind}), *events, end])
    done = [json.loads(e.item.encoded()) for e in out if isinstance(e, OutputItemDone)]
    assert done == items
    assert (out[0], out[-1]) == (Created(), DONE)


def test_a_response_without_an_event_around_it_ends_the_stream_once_it_has_a_result() -> (
    None
):
    begun = ("message", {"type": "response", "id": "r"})
    end = ("message", {"type": "response", **END[1]})
    assert answer([begun, (TEXT, {"delta": "Hi"}), end])[-1] == DONE


def test_a_character_that_two_nameless_deltas_share_is_whole() -> None:
    out = answer([(TEXT, {"delta": "\ud83d"}), (TEXT, {"delta": "\udc4d"}), END])
    assert [e.item.text for e in out if isinstance(e, OutputItemDone)] == ["👍"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


FAILURE = {"code": "context_length_exceeded", "message": "too long"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("response.failed", {"response": {"error": FAILURE}}),
        ("response.failed", {"type": "response", "error": FAILURE}),
        ("response.failed", FAILURE),
        ("error", FAILURE),
        ("error", {"type": "invalid_request_error", **FAILURE}),
        ("error", {"error": FAILURE}),
    ],
)
def test_a_failure_by_name_alone_is_one(name: str, data: Any) -> None:
    with pytest.raises(ModelError, match="ran out of room"):
        answer([(name, data)])
