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

CALL = {"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": '{"a":1}'}
NO_ARGUMENTS = {**CALL, "arguments": ""}
DONE = Completed(Usage(1, output_tokens=1))
END = ("response.completed", {"id": "r", "usage": {"input_tokens": 1, "output_tokens": 1}})


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
        ("response.function_call_arguments.delta", {"delta": half}) for half in ('{"a"', ":1}")
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
    out = answer([("response.output_item.added", item), ("response.output_text.delta", item), END])
    assert out[1:] == [OutputItemDone(0, parse_item(CALL)), DONE]


def test_text_is_no_item_whatever_the_name_of_its_event() -> None:
    text = {"type": "response.output_text.delta", "delta": "x"}
    out = answer([("response.output_item.done", text), END])
    assert out[1] == OutputTextDelta(0, "x")


FAILURE = {"code": "context_length_exceeded", "message": "too long"}


@pytest.mark.parametrize(
    ("name", "data"), [("response.failed", {"response": {"error": FAILURE}}), ("error", FAILURE)]
)
def test_a_failure_by_name_alone_is_one(name: str, data: Any) -> None:
    with pytest.raises(ModelError, match="ran out of room"):
        answer([(name, data)])
