"""What the scripted server refuses of a client whose model writes its calls into its text."""

import json
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.server import ScriptedServer
from tests.testing.wires import anthropic, chat, post, user, without_tools

SAYS = [*ev_message("Done."), ev_completed()]
GO = user("go")


def says(*names: str) -> dict[str, Any]:
    blocks = [f'<tool name="{name}">\n{{}}\n</tool>' for name in names]
    return {"role": "assistant", "content": "\n\n".join(["Look:", *blocks])}


def results(*names: str) -> dict[str, Any]:
    parts = [
        f'<tool_result name="{name}" id="x">\nok\n</tool_result>' for name in names
    ]
    return {
        "role": "user",
        "content": [{"type": "text", "text": part} for part in parts],
    }


def test_each_result_has_its_call():
    messages = [GO, says("a", "b"), results("a", "b"), GO, says("a"), results("a")]
    with ScriptedServer([SAYS, SAYS], text_tools=True) as server:
        assert post(server, "chat", without_tools(chat(*messages)))[0] == 200
        assert post(server, "anthropic", without_tools(anthropic(GO)))[0] == 200


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([GO, results("a")], 1),
        ([GO, results("a"), says("a")], 1),
        ([GO, says("a"), results("a", "a")], 2),
        ([GO, says("b"), results("a")], 2),
    ],
)
def test_a_result_without_a_call_before_it_is_refused(messages: list[Any], place: int):
    server = ScriptedServer([SAYS], text_tools=True)
    server.start()
    assert post(server, "chat", without_tools(chat(*messages)))[0] == 400
    with pytest.raises(
        AssertionError, match=f"message {place}: a result of 'a' without a call"
    ):
        server.close()


def test_a_model_that_cannot_call_tools_refuses_them_without_a_violation():
    with ScriptedServer([SAYS], text_tools=True) as server:
        status, answer = post(server, "chat", chat(GO))
        assert (status, json.loads(answer)["error"]["message"]) == (
            400,
            "'m' does not support tools",
        )
        assert post(server, "chat", without_tools(chat(GO)))[0] == 200
