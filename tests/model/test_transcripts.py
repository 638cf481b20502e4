"""What servers that others have written said once, read again: `tests/model/transcripts`."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from codex_py.errors import ModelError
from codex_py.model.client import HttpModelClient
from codex_py.model.providers import Provider
from codex_py.protocol.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ResponseItem,
    WebSearchCall,
)
from codex_py.protocol.stream import Completed, OutputItemDone, ResponseEvent
from tests.model.transcripts import WIRES, Exchange, make_wire, prompt, read_exchanges

LONG = "".join(f"{number}. “Déjà vu”\n" for number in range(60))
FIRST = ("shell", '{"cmd":"ls"}')
SECOND = ("shell", r'{"cmd":"echo\"b\""}')
SEARCH = ("search", "")
READ: dict[str, list[tuple[str, str]]] = {
    "text": [("text", "Hello there.")],
    "long": [("text", LONG)],
    "reasoning": [("thought", "Hm. Well."), ("text", "Yes.")],
    "calls": [("text", "I look."), FIRST, SECOND],
    "thought, call": [("thought", "Hm."), FIRST],
    "patch": [("apply_patch", "a\n+b")],
    "search": [("text", "Found.")],
    "no [DONE]": [("text", "Yes.")],
    # The proxy ends the stream in order where the server behind it did not.
    "no end": [("text", "Yes")],
}
CUT = {"length": [("text", "It is too")], "filter": [("text", "It is")]}
CODES = {
    "length": "incomplete",
    "call cut by the length": "incomplete",
    "filter": "content_filter",
    "429": "rate_limited",
    "503": "server_error",
    "400": "bad_request",
}
FAILURES = {
    "responses": "server_error",
    "chat": "internal_server_error",
    "anthropic": "api_error",
}
"""A failure within a stream, in the words of the proxy."""


def read(
    wire: str, case: str, exchange: Exchange
) -> tuple[list[ResponseEvent], ModelError | None]:
    """The events, and the error at the end."""
    events: list[ResponseEvent] = []

    def answer(_: httpx.Request) -> httpx.Response:
        headers = {"content-type": exchange.content_type}
        return httpx.Response(
            exchange.status, headers=headers, text="\n".join(exchange.body)
        )

    async def main() -> None:
        client = HttpModelClient(
            provider=Provider(
                id="p", name="p", base_url="http://peer/v1", wire_api=wire
            ),
            wire=make_wire(wire),
            http=httpx.AsyncClient(transport=httpx.MockTransport(answer)),
            key=None,
            headers={},
        )
        try:
            async with client.stream(prompt(case)) as stream:
                async for event in stream:
                    events.append(event)  # noqa: PERF401 - those before an error count too
        finally:
            await client.aclose()

    try:
        asyncio.run(main())
    except ModelError as error:
        return events, error
    return events, None


def shown(events: Sequence[ResponseEvent]) -> list[tuple[str, str]]:
    """The items in short, in the order of their places."""
    done = [event for event in events if isinstance(event, OutputItemDone)]
    done.sort(key=lambda event: event.output_index)
    short = [_shown(event.item) for event in done]
    return [entry for entry in short if entry != ("thought", "")]


def _shown(item: ResponseItem) -> tuple[str, str]:
    match item:
        case Message():
            return "text", item.text
        case Reasoning():
            return "thought", "".join(part.text for part in item.summary)
        case FunctionCall():
            return item.name, item.arguments.replace(" ", "")
        case CustomToolCall():
            return item.name, item.input
        case WebSearchCall():
            return SEARCH
        case _:
            return item.type, ""


CASES = [
    pytest.param(peer, wire, case, exchange, id=f"{peer}-{wire}-{case}")
    for peer in ("aimock", "litellm")
    for wire in WIRES
    for case, exchange in read_exchanges(peer, wire).items()
]


@pytest.mark.parametrize(("peer", "wire", "case", "exchange"), CASES)
def test_recorded_responses_of_servers_are_read(
    peer: str, wire: str, case: str, exchange: Exchange
) -> None:
    events, error = read(wire, case, exchange)
    if case in READ:
        assert error is None
        assert isinstance(events[-1], Completed)
    else:
        assert error is not None
        assert error.code == (_OWN_CODES.get((peer, wire, case)) or CODES.get(case))
    assert shown(events) == _OWN_ITEMS.get(
        (peer, wire, case), {**READ, **CUT}.get(case, [])
    )


_OWN_ITEMS: dict[tuple[str, str, str], Any] = {
    # It has no freeform tools in this API.
    ("aimock", "responses", "patch"): [("apply_patch", r'{"input":"a\n+b"}')],
    ("aimock", "responses", "search"): [SEARCH, ("text", "Found.")],
    # The proxy calls it complete.
    ("litellm", "responses", "call cut by the length"): [("shell", "{}")],
}
_OWN_CODES = {
    # It says that it failed, and not why.
    ("aimock", "responses", "filter"): "server_error",
    **{("litellm", wire, "failure"): code for wire, code in FAILURES.items()},
}
