"""What the scripted server refuses of Anthropic's Messages API, one request for each rule."""

import json
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message, ev_reasoning
from codex_py.testing.events import Event
from tests.support.server import ScriptedServer
from tests.testing.wires import HEADERS, anthropic, data, post

SAYS = [*ev_message("Done."), ev_completed()]


def user(*content: Any) -> Event:
    return {"role": "user", "content": [*content]}


def says(*content: Any) -> Event:
    return {"role": "assistant", "content": [*content]}


def text(value: str, **fields: Any) -> Event:
    return {"type": "text", "text": value, **fields}


def call(call_id: str = "a", name: str = "shell", **fields: Any) -> Event:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}, **fields}


def result(call_id: str = "a", content: Any = "done", **fields: Any) -> Event:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def thinking(value: str, signature: str | None) -> Event:
    block = {"type": "thinking", "thinking": value, "signature": signature}
    return {key: value for key, value in block.items() if value is not None}


GO, HELLO = user(text("go")), says(text("Hello."))
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
SEARCH = {
    "type": "server_tool_use",
    "id": "srv_1",
    "name": "web_search",
    "input": {"query": "x"},
}
FOUND: Event = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
TOOL = {"name": "shell", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    "body",
    [
        anthropic({"role": "user", "content": "go"}, HELLO, GO, system="Be brief."),
        anthropic(GO, says(text("Look:"), call("a"), call("b")), user(result("b"), result("a"))),
        anthropic(GO, says(call()), user(result(content=[text("x"), IMAGE]), text("and"), IMAGE)),
        anthropic(GO, says(call()), user(result(content="", is_error=False))),
        anthropic(GO, says(SEARCH, FOUND, text("Rain.")), GO),
        anthropic(GO, says(text("So far so"))),
        anthropic(
            user(text("go", **MARK)),
            says(text("Hello.", **MARK)),
            user(text("go", **MARK)),
            tools=[{**TOOL, **LONG_MARK}],
        ),
        # Marks are marks in their places alone.
        anthropic(
            GO, says(call(input={"cache_control": "", "type": "tool_use"})), user(result())
        ),
    ],
)  # fmt: skip
def test_a_request_that_keeps_the_rules_is_answered(body: Event):
    with ScriptedServer([SAYS]) as server:
        assert post(server, "anthropic", body)[0] == 200


def without(body: Event, key: str) -> Event:
    return {name: value for name, value in body.items() if name != key}


BROKEN = [
    (without(anthropic(GO), "max_tokens"), "`max_tokens` is missing"),
    (anthropic(), "`messages` is empty"),
    (anthropic(HELLO, GO), "messages[0]: the first message is no user's"),
    (anthropic(GO, GO), "messages[1]: two messages of one role in a row"),
    (
        anthropic(GO, {"role": "tool", "content": "x"}),
        "messages[1]: unknown role 'tool'",
    ),
    (anthropic(user()), "messages[0]: a message without content"),
    (
        anthropic(GO, says(call())),
        "`tool_use` without a `tool_result` right after it: ['a']",
    ),
    (
        anthropic(GO, says(call()), GO),
        "messages[2]: no `tool_result` at its beginning for ['a']",
    ),
    (
        anthropic(GO, says(call("a"), call("b")), user(result("a"))),
        "messages[2]: no `tool_result` at its beginning for ['b']",
    ),
    (
        anthropic(GO, says(call()), user(text("So:"), result())),
        "messages[2]: a `tool_result` behind other content",
    ),
    (
        anthropic(
            GO, says(call("a"), call("b")), user(result("a"), text("So:"), result("b"))
        ),
        "messages[2]: a `tool_result` behind other content",
    ),
    (
        anthropic(GO, HELLO, user(result())),
        "messages[2]: a `tool_result` without its call: 'a'",
    ),
    (
        anthropic(GO, says(call()), user(result(), result())),
        "messages[2]: several results for the call 'a'",
    ),
    (
        anthropic(GO, says(call(), call()), user(result())),
        "messages[1]: the ids of calls are not unique: ['a']",
    ),
    (
        anthropic(GO, says(call()), user(result()), says(call()), user(result())),
        "messages[3]: the ids of calls are not unique: ['a']",
    ),
    (
        anthropic(GO, says(call("shell:0")), user(result("shell:0"))),
        "messages[1]: 'shell:0' is no legal id of a call",
    ),
    (
        anthropic(GO, says(call(name="files/read")), user(result())),
        "messages[1]: 'files/read' is no legal name of a tool",
    ),
    (
        anthropic(GO, says(call(input="{}")), user(result())),
        "messages[1]: an input that is no object",
    ),
    (anthropic(user(text(""))), "messages[0]: an empty text block"),
    (anthropic(user(text("\n"))), "messages[0]: an empty text block"),
    (anthropic(GO, system=[text("")]), "system[0]: an empty text block"),
    (
        anthropic(GO, says(call()), user(result(content=[text("")]))),
        "messages[2].tool_result: an empty text block",
    ),
    (
        anthropic(GO, says(call()), user(result(content="", is_error=True))),
        "messages[2]: an error without content",
    ),
    (
        anthropic(user({"type": "image_url", "image_url": {}})),
        "messages[0]: user messages have no blocks 'image_url'",
    ),
    (
        anthropic(GO, says(IMAGE), GO),
        "messages[1]: assistant messages have no blocks 'image'",
    ),
    (
        anthropic(GO, says(text("Hi.", provider_data={})), GO),
        "messages[1].text: extra inputs are not permitted: ['provider_data']",
    ),
    (
        anthropic({**GO, "id": "msg_1"}),
        "messages[0]: extra inputs are not permitted: ['id']",
    ),
    (anthropic(GO, include=[]), "extra inputs are not permitted: ['include']"),
    (
        anthropic(user(*(text(str(n), **MARK) for n in range(5)))),
        "5 cache marks, 4 are allowed",
    ),
    (
        anthropic(user(text("go", **MARK), text("on", **LONG_MARK))),
        "a cache mark of 1h behind one of 5m",
    ),
    (
        anthropic(user(text("go", cache_control={"type": "forever"}))),
        "{'type': 'forever'} is no cache mark",
    ),
    (
        without(anthropic(GO, says(call()), user(result())), "tools"),
        "calls in the messages, and no `tools`",
    ),
    (
        anthropic(GO, tools=[], tool_choice={"type": "auto"}),
        "`tool_choice` is only allowed when `tools` are specified",
    ),
    (
        anthropic(GO, tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        "thinking may not be on when a tool must be called",
    ),
    (
        anthropic(
            GO, max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 1000}
        ),
        "`budget_tokens` is not from 1024 to below `max_tokens`",
    ),
    (
        anthropic(GO, tools=[{"name": "shell"}]),
        "tools[0]: `input_schema` is no schema of an object",
    ),
    (anthropic(GO, tools=[TOOL, TOOL]), "several tools have the name ['shell']"),
    (
        anthropic(GO, tools=[{**TOOL, "name": "a b"}]),
        "tools[0]: 'a b' is no legal name of a tool",
    ),
    (
        anthropic(GO, says(text("Hello. "))),
        "the final assistant message ends in white space",
    ),
    (
        anthropic(GO, says(thinking("Hm.", "sig_of_another")), GO),
        "messages[1]: the signature of a thinking block is not that of its text",
    ),
    (
        anthropic(GO, says(thinking("Hm.", None)), GO),
        "messages[1]: a thinking block without a signature",
    ),
    (
        anthropic(GO, says({"type": "redacted_thinking", "data": "x"}), GO),
        "messages[1]: unknown data of redacted thinking",
    ),
    (
        anthropic(
            GO,
            says(call()),
            user(result()),
            max_tokens=4000,
            thinking={"type": "enabled", "budget_tokens": 2000},
        ),
        "thinking is on, and there is none before the last calls",
    ),
    ({"max_tokens": 1}, "`messages` is no list of objects"),
]


@pytest.mark.parametrize(("body", "problem"), BROKEN)
def test_a_request_that_breaks_a_rule_is_refused(body: Event, problem: str):
    server = ScriptedServer([SAYS])
    server.start()
    status, answer = post(server, "anthropic", body)
    assert (status, json.loads(answer)) == (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": problem},
        },
    )
    with pytest.raises(AssertionError) as raised:
        server.close()
    assert str(raised.value) == f"request 1: {problem}"


def test_the_version_of_the_api_is_needed():
    server = ScriptedServer([SAYS])
    server.start()
    assert post(server, "anthropic", anthropic(GO), headers={})[0] == 400
    with pytest.raises(
        AssertionError, match="the header `anthropic-version` is missing"
    ):
        server.close()


def answered_thinking(server: ScriptedServer) -> Event:
    """The thinking block of the next answer."""
    _, stream = post(server, "anthropic", anthropic(GO))
    deltas = [e["delta"] for e in data(stream) if e["type"] == "content_block_delta"]
    return thinking(
        "".join(delta.get("thinking", "") for delta in deltas),
        "".join(delta.get("signature", "") for delta in deltas),
    )


THINKS = [*ev_reasoning("Look first."), *ev_message("Hello.", index=1), ev_completed()]


def test_thinking_comes_back_with_the_signature_that_it_went_out_with():
    with ScriptedServer([THINKS, SAYS]) as server:
        block = answered_thinking(server)
        assert block["thinking"] == "Look first."
        assert (
            post(server, "anthropic", anthropic(GO, says(block, text("Hello.")), GO))[0]
            == 200
        )


def test_a_message_cannot_end_with_its_thinking():
    server = ScriptedServer([THINKS, SAYS])
    server.start()
    assert (
        post(server, "anthropic", anthropic(GO, says(answered_thinking(server)), GO))[0]
        == 400
    )
    with pytest.raises(AssertionError, match="the final block cannot be thinking"):
        server.close()


@pytest.mark.parametrize(
    "change", [{"signature": "sig_1"}, {"thinking": "Look."}, MARK]
)
def test_thinking_that_was_changed_is_refused(change: Event):
    server = ScriptedServer([THINKS, SAYS])
    server.start()
    block = {**answered_thinking(server), **change}
    assert (
        post(server, "anthropic", anthropic(GO, says(block, text("Hello.")), GO))[0]
        == 400
    )
    with pytest.raises(AssertionError, match=r"(of|on) a thinking block"):
        server.close()


def test_the_thinking_of_another_server_is_refused():
    with ScriptedServer([THINKS]) as other:
        block = answered_thinking(other)
    server = ScriptedServer([THINKS, SAYS])
    server.start()
    answered_thinking(server)
    assert (
        post(server, "anthropic", anthropic(GO, says(block, text("Hello.")), GO))[0]
        == 400
    )
    with pytest.raises(AssertionError, match="is not that of its text"):
        server.close()


def test_signatures_in_events_of_the_api_and_in_bytes_are_known():
    start = {"type": "content_block_start", "index": 0}
    sealed = {"type": "redacted_thinking", "data": "x"}
    script = [
        {**start, "content_block": thinking("Hm.", "sig_1")},
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta",'
        b'"signature":"sig_2"}}\n\n',
        {**start, "index": 1, "content_block": sealed},
    ]
    with ScriptedServer([script, SAYS]) as server:
        post(server, "anthropic", anthropic(GO))
        blocks = (
            thinking("Hm.", "sig_1"),
            thinking("Hm.", "sig_2"),
            sealed,
            text("Hello."),
        )
        assert post(server, "anthropic", anthropic(GO, says(*blocks), GO))[0] == 200


def test_each_request_begins_with_the_one_before_it_cache_marks_aside():
    server = ScriptedServer([SAYS] * 3)
    server.start()
    first = anthropic(user(text("go", **MARK)), system=[text("Be brief.", **MARK)])
    assert post(server, "anthropic", first)[0] == 200
    # A message may grow at its end.
    grown = anthropic(user(text("go"), text("on", **MARK)), system="Be brief.")
    assert post(server, "anthropic", grown)[0] == 200
    assert (
        post(server, "anthropic", anthropic(user(text("go")), system="Be kind."))[0]
        == 400
    )
    with pytest.raises(
        AssertionError, match="request 3: the input does not begin with the last"
    ):
        server.close()


def test_threads_are_told_apart_by_their_header():
    with ScriptedServer([SAYS, SAYS]) as server:
        for thread in "ab":
            headers = {**HEADERS, "thread-id": thread}
            assert (
                post(server, "anthropic", anthropic(user(text(thread))), headers)[0]
                == 200
            )


def test_the_result_of_a_call_is_found():
    with ScriptedServer([SAYS]) as server:
        post(server, "anthropic", anthropic(GO, says(call()), user(result())))
        assert server.requests[0].output("a") == "done"
