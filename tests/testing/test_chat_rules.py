"""What the scripted server refuses of Chat Completions, one request for each rule.

Tests `testing/request.py`.
"""

import json
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.server import ScriptedServer
from tests.testing.wires import chat, post, user

SAYS = [*ev_message("Done."), ev_completed()]


def call(call_id: str = "a", name: str = "shell", **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    return {"id": call_id, "type": "function", "function": function, **fields}


def says(
    *calls: dict[str, Any], content: str | None = None, **fields: Any
) -> dict[str, Any]:
    has_calls = {"tool_calls": [*calls]} if calls else {}
    return {"role": "assistant", "content": content, **has_calls, **fields}


def result(call_id: str = "a", content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


GO, SYSTEM = user("go"), {"role": "system", "content": "Be brief."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TEXT = {"type": "text", "text": "Look."}


@pytest.mark.parametrize(
    "body",
    [
        chat(SYSTEM, GO, SYSTEM, {"role": "developer", "content": "Be kind."}),
        chat(
            GO,
            says(call("a"), call("b"), content="Look:"),
            result("b"),
            result("a"),
            GO,
        ),
        # An id may come again in a later turn.
        chat(GO, says(call("x:0")), result("x:0"), says(call("x:0")), result("x:0")),
        chat(
            GO,
            says(call()),
            result(content=[TEXT]),
            {"role": "user", "content": [TEXT, IMAGE]},
        ),
        chat(GO, says(content="Hello."), GO, says(refusal="No."), GO),
        {"messages": [GO]},
        chat(GO, tools=[{"type": "custom", "custom": {"name": "apply_patch"}}]),
    ],
)
def test_a_request_that_keeps_the_rules_is_answered(body: dict[str, Any]):
    with ScriptedServer([SAYS]) as server:
        assert post(server, "chat", body)[0] == 200


NO_PARAMETERS = {"type": "function", "function": {"name": "shell"}}
BROKEN: list[tuple[Any, str]] = [
    (chat(GO, says(call())), "calls without a tool message: ['a']"),
    (
        chat(GO, says(call("a"), call("b")), result("a"), GO),
        "messages[3]: no tool messages before it for the calls ['b']",
    ),
    (
        chat(GO, says(call()), GO, result()),
        "messages[2]: no tool messages before it for the calls ['a']",
    ),
    (
        chat(GO, result()),
        "messages[1]: no call 'a' in the assistant message right before the tool messages",
    ),
    (
        chat(GO, says(call()), result(), result()),
        "messages[3]: no call 'a' in the assistant message right before the tool messages",
    ),
    (
        chat(GO, says(call()), result(), GO, result()),
        "messages[4]: no call 'a' in the assistant message right before the tool messages",
    ),
    (
        chat(GO, says(call()), result(content=[IMAGE])),
        "messages[2]: tool messages have no parts 'image_url'",
    ),
    (chat(GO, says(call()), result(content=None)), "messages[2]: `content` is missing"),
    (
        chat({"role": "system", "content": [IMAGE]}),
        "messages[0]: system messages have no parts 'image_url'",
    ),
    (
        chat({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
        "messages[0]: user messages have no parts 'input_text'",
    ),
    (chat(GO, says()), "messages[1]: an assistant message without content or calls"),
    (chat(GO, says(content="")), "messages[1]: an assistant message without content or calls"),
    (
        chat(GO, says(reasoning_content="Hm.")),
        "messages[1]: an assistant message without content or calls",
    ),
    (
        chat(GO, {"role": "assistant", "content": "Hi.", "tool_calls": []}),
        "messages[1]: `tool_calls` is empty",
    ),
    (
        chat(GO, says(call(name="mcp.files/read")), result()),
        "messages[1]: 'mcp.files/read' is no legal name of a tool",
    ),
    (
        chat(GO, tools=[{"type": "function", "function": {"name": "n" * 65, "parameters": {}}}]),
        f"tools[0]: {'n' * 65!r} is no legal name of a tool",
    ),
    (
        chat(GO, says(call(), call()), result(), result()),
        "messages[1]: several calls have the id 'a'",
    ),
    (chat(GO, says(call("")), result("")), "messages[1]: a call without an id"),
    (
        chat(GO, says(call(type="shell")), result()),
        "messages[1]: a call of type 'shell'",
    ),
    (
        chat(GO, says(call(function={"name": "shell", "arguments": {}})), result()),
        "messages[1]: the arguments of a call are no string",
    ),
    (chat({"role": "critic", "content": "hm"}), "messages[0]: unknown role 'critic'"),
    (
        chat({**GO, "tool_calls": [call()]}),
        "messages[0]: user messages have no `tool_calls`",
    ),
    (chat(GO, tools=[NO_PARAMETERS]), "tools[0]: `parameters` are missing"),
    (chat(GO, tools=[{"type": "web_search"}]), "tools[0]: a tool of type 'web_search'"),
    (chat(GO, tools=[]), "`tools` is empty"),
    (
        {"messages": [GO], "tool_choice": "auto"},
        "`tool_choice` is only allowed when `tools` are specified",
    ),
    (chat(), "`messages` is empty"),
    ({"input": []}, "`messages` is no list of objects"),
    ([], "the body is no JSON object"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "problem"), BROKEN)
def test_a_request_that_breaks_a_rule_is_refused(body: Any, problem: str):
    server = ScriptedServer([SAYS])
    server.start()
    status, answer = post(server, "chat", body)
    assert (status, json.loads(answer)["error"]["message"]) == (400, problem)
    with pytest.raises(AssertionError) as raised:
        server.close()
    assert str(raised.value) == f"request 1: {problem}"


def test_a_system_message_may_have_to_be_the_first():
    server = ScriptedServer([SAYS], system_first=True)
    server.start()
    assert post(server, "chat", chat(SYSTEM, GO))[0] == 200
    assert post(server, "chat", chat(SYSTEM, GO, SYSTEM))[0] == 400
    with pytest.raises(
        AssertionError, match="the system message must be at the beginning"
    ):
        server.close()


def test_each_request_begins_with_the_one_before_it():
    server = ScriptedServer([SAYS] * 4)
    server.start()
    assert post(server, "chat", chat(GO))[0] == 200
    # Each model has a cache of its own.
    assert post(server, "chat", chat(SYSTEM, GO, model="other"))[0] == 200
    assert post(server, "chat", chat(GO, says(content="Hi."), GO))[0] == 200
    # A message of the user may grow at its end.
    grown = {"role": "user", "content": [{"type": "text", "text": "go\n\non"}, IMAGE]}
    assert post(server, "chat", chat(GO, says(content="Hi."), grown))[0] == 200
    assert post(server, "chat", chat(GO, says(content="Ho."), grown))[0] == 400
    with pytest.raises(
        AssertionError, match="request 5: the input does not begin with the last"
    ):
        server.close()


def test_the_result_of_a_call_is_found():
    with ScriptedServer([SAYS]) as server:
        post(server, "chat", chat(GO, says(call()), result()))
        assert server.requests[0].output("a") == "done"
        assert server.requests[0].messages[0] == GO
        with pytest.raises(LookupError, match="'b'"):
            server.requests[0].output("b")
