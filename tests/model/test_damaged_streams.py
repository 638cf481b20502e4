"""Streams that were cut or damaged anywhere: each is an answer or an error, and runs no call that is not complete.

`WIRE_CASES` says how many are tried of each kind in each API.

Tests `protocol/json_fields.py`.
"""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest

from codex_py.errors import ModelError
from codex_py.http.sse import server_sent_events
from codex_py.model.text.format import session_tag
from codex_py.model.text.wire import TextToolsWire
from codex_py.protocol.items import CustomToolCall, FunctionCall
from codex_py.protocol.stream import Completed, OutputItemDone, ResponseEvent, Wire
from codex_py.testing import (
    ev_completed,
    ev_created,
    ev_function_call,
    ev_incomplete,
    ev_message,
)
from codex_py.testing.rendering.chat import ChatStream
from tests.model.transcripts import WIRES, make_wire, prompt, read_exchanges
from tests.support.searches import share
from tests.support.text_calls import with_calls_as_text

CASES = int(os.environ.get("WIRE_CASES", share(200)))
APIS = [*WIRES, "text"]
VALUES: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    [None],
    {"a": [1]},
]


@dataclass(frozen=True)
class Read:
    calls: Sequence[FunctionCall | CustomToolCall]
    is_complete: bool


def read(wire: Wire, body: bytes) -> Read:
    """What is read of a stream. Another exception than a `ModelError` is a bug."""
    events: list[ResponseEvent] = []

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    async def main() -> None:
        decoder = wire.decoder(prompt("damaged"))
        async for batch in server_sent_events(httpx.Response(200, content=pieces())):
            for name, data in batch:
                events.extend(decoder.feed(data, name))
            if decoder.finished:
                break
        events.extend(decoder.end())

    try:
        asyncio.run(main())
        is_complete = True
    except ModelError:
        is_complete = False
    ends = [event for event in events if isinstance(event, Completed)]
    assert len(ends) == is_complete
    items = [event.item for event in events if isinstance(event, OutputItemDone)]
    calls = [item for item in items if isinstance(item, FunctionCall | CustomToolCall)]
    return Read(calls, is_complete)


def wire_of(api: str) -> Wire:
    return (
        TextToolsWire(make_wire("chat"), session_id="t")
        if api == "text"
        else make_wire(api)
    )


def streams(api: str) -> list[bytes]:
    if api == "text":
        return [written(ev_completed()), written(ev_incomplete())]
    return [
        "\n".join(exchange.body).encode()
        for peer in ("aimock", "litellm")
        for case, exchange in read_exchanges(peer, api).items()
        if exchange.status == 200 and case != "long"
    ]


def written(end: dict[str, Any]) -> bytes:
    """Calls in the text of an answer."""
    calls = [
        ev_function_call(f"call_{n}", "shell", {"cmd": "ls"}, index=n) for n in range(2)
    ]
    parts = [ev_created(), *ev_message("I look."), *calls[0], *calls[1], end]
    events = with_calls_as_text(parts, session_tag("t"))
    stream = ChatStream({})
    return b"".join(stream.render(cast("dict[str, Any]", event)) for event in events)


def content(call: FunctionCall | CustomToolCall) -> tuple[str, str]:
    return call.name, call.arguments if isinstance(call, FunctionCall) else call.input


def check(api: str, found: Read) -> None:
    assert all(call.name for call in found.calls)
    if found.is_complete:
        return
    if api in {"chat", "text"}:
        # No call is known to be complete before the end.
        assert not found.calls
    for call in found.calls:
        # The Responses API says itself when a call is complete.
        if isinstance(call, FunctionCall) and api == "anthropic":
            assert isinstance(json.loads(call.arguments), dict)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_was_cut_runs_only_calls_that_are_whole(api: str) -> None:
    rng = random.Random(api)
    wire = wire_of(api)
    for _ in range(CASES):
        body = rng.choice(streams_of[api])
        whole = [content(call) for call in read(wire, body).calls]
        found = read(wire, body[: rng.randrange(len(body) + 1)])
        check(api, found)
        assert [
            content(call) for call in found.calls if content(call) not in whole
        ] == []


streams_of = {api: streams(api) for api in APIS}


def bytes_damaged(rng: random.Random, body: bytes) -> bytes:
    start = rng.randrange(len(body))
    end = min(len(body), start + rng.choice([1, 1, 2, 8, 100]))
    piece = body[start:end]
    other = rng.choice(
        [b"", piece * 2, piece[::-1], rng.randbytes(len(piece)), b"\n\n", b"\0"]
    )
    return body[:start] + other + body[end:]


def events_damaged(rng: random.Random, body: bytes) -> bytes:
    events = body.split(b"\n\n")
    first, second = rng.randrange(len(events)), rng.randrange(len(events))
    match rng.randrange(4):
        case 0:
            del events[first]
        case 1:
            events.insert(second, events[first])
        case 2:
            events[first], events[second] = events[second], events[first]
        case _:
            rng.shuffle(events)
    return b"\n\n".join(events)


def values_damaged(rng: random.Random, body: bytes) -> bytes:
    """Put something else in the place of a value, as servers do that think otherwise."""
    lines = body.split(b"\n")
    with_data = [n for n, line in enumerate(lines) if line.startswith(b"data: {")]
    place = rng.choice(with_data)
    event = json.loads(lines[place][6:])
    if not (found := places(event)):
        return body
    holder, key = rng.choice(found)
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = rng.choice(VALUES)
    lines[place] = b"data: " + json.dumps(event).encode()
    return b"\n".join(lines)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every value within another, as its holder and its key."""
    holder: Any = value
    keys: list[Any] = list(holder) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(holder)))
    return [(holder, key) for key in keys] + [
        p for key in keys for p in places(holder[key])
    ]


@pytest.mark.parametrize("damage", [bytes_damaged, events_damaged, values_damaged])
@pytest.mark.parametrize("api", APIS)
def test_a_damaged_stream_is_an_answer_or_an_error(
    api: str, damage: Callable[[random.Random, bytes], bytes]
) -> None:
    rng = random.Random(f"{api} {damage.__name__}")
    wire = wire_of(api)
    for _ in range(CASES):
        body = rng.choice(streams_of[api])
        for _ in range(rng.choice([1, 1, 2, 5])):
            body = damage(rng, body)
        check(api, read(wire, body))
