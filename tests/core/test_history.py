import json
from typing import Any

import pytest

from codex_py.core.history import History
from codex_py.protocol.items import parse_item
from codex_py.protocol.messages import input_text, message

_PROMPT = message("user", [input_text("hi")])


def _call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": call_id}


def _output(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def _history(*items: dict[str, Any]) -> History:
    history = History([_PROMPT])
    for item in items:
        _add(history, item)
    return history


def _add(history: History, item: dict[str, Any]) -> None:
    parsed = parse_item(item)
    history.add(parsed.encoded(), parsed)


def _decoded(history: History) -> list[Any]:
    return [json.loads(item) for item in history.items]


def test_items_stand_in_the_order_of_their_coming() -> None:
    history = History([_PROMPT])
    answer = {"type": "message", "role": "assistant", "content": "hello", "phase": "commentary"}
    encoded = parse_item(answer).encoded()
    history.add(encoded, parse_item(answer))
    later = message("user", [input_text("bye")])
    history.add(later)
    assert list(history.items) == [_PROMPT, encoded, later]
    assert json.loads(encoded) == answer


def test_a_prompt_is_made_of_the_history_without_a_copy() -> None:
    history = History([_PROMPT])
    view = history.items
    history.add(_PROMPT)
    assert len(view) == 2


def test_a_call_is_open_until_its_output() -> None:
    history = _history(_call("a"), _call("b"), _output("a"))
    assert list(history.open_calls) == [("b", "function_call")]
    _add(history, _output("b"))
    assert list(history.open_calls) == []


def test_calls_of_one_id_want_an_output_each() -> None:
    history = _history(_call("a"), _call("a"), _output("a"))
    assert list(history.open_calls) == [("a", "function_call")]


def test_an_id_may_come_again_once_its_call_is_answered() -> None:
    history = _history(_call("a"), _output("a"), _call("a"), _output("a"))
    assert list(history.open_calls) == []


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(_output("b"), id="another id"),
        pytest.param({"type": "custom_tool_call_output", "call_id": "a", "output": ""}, id="kind"),
    ],
)
def test_an_output_without_its_call_is_refused(output: dict[str, Any]) -> None:
    history = _history(_call("a"))
    with pytest.raises(ValueError, match="answers no open call"):
        _add(history, output)
    assert _decoded(history) == [json.loads(_PROMPT), _call("a")]


def test_replacing_the_items_leaves_earlier_views_alone() -> None:
    history = _history(_call("a"), _output("a"))
    before = history.items
    summary = message("user", [input_text("summary")])
    history.replace([summary])
    history.add(_PROMPT)
    assert list(history.items) == [summary, _PROMPT]
    assert len(before) == 3


def test_items_are_not_replaced_while_a_call_is_open() -> None:
    history = _history(_call("a"))
    with pytest.raises(ValueError, match="calls are open"):
        history.replace([])
