import json
from typing import Any

import pytest

from codex_py.errors import MalformedItem
from codex_py.protocol.items import (
    FunctionCallOutput,
    LocalShellCall,
    Message,
    OtherItem,
    Reasoning,
    parse_item,
)


def test_an_item_goes_back_as_it_came() -> None:
    data: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "phase": None,
        "content": [
            {"type": "output_text", "text": "hi", "new": 1},
            {"type": "hologram"},
        ],
        "unknown": {"a": [1]},
    }
    item = parse_item(data)
    assert isinstance(item, Message)
    assert (item.text, item.refusal) == ("hi", "")
    assert json.loads(item.encoded()) == data
    other = parse_item({"type": "teleport", "id": "t"})
    assert isinstance(other, OtherItem)
    assert json.loads(other.encoded()) == {"type": "teleport", "id": "t"}


def test_a_message_without_a_type_gets_one() -> None:
    item = parse_item({"role": "user", "content": "hello"})
    assert json.loads(item.encoded()) == {
        "type": "message",
        "role": "user",
        "content": "hello",
    }


def test_an_item_of_our_own_is_written_without_what_it_lacks() -> None:
    item = FunctionCallOutput(call_id="c", output="done")
    assert (
        item.encoded()
        == b'{"type":"function_call_output","call_id":"c","output":"done"}'
    )


def test_objects_within_an_item_are_typed() -> None:
    reasoning = parse_item({"type": "reasoning", "summary": [{"text": "because"}]})
    assert isinstance(reasoning, Reasoning)
    assert [part.text for part in reasoning.summary] == ["because"]
    call = parse_item(
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}}
    )
    assert isinstance(call, LocalShellCall)
    assert (call.action.command, call.action.timeout_ms) == (["ls"], None)


MALFORMED: list[tuple[Any, str]] = [
    (None, "'type' of an item without a type: it is missing"),
    ({"type": 5}, "'type' of 5: it must be a string"),
    (
        {"type": "function_call", "call_id": "c", "arguments": ""},
        "'name' of function_call",
    ),
    (
        {"type": "message", "role": 1},
        "'role' of message: it must be a string",
    ),
    ({"type": "message", "role": "user", "content": [1]}, "'content.0' of message"),
    (
        {"type": "message", "role": "user", "content": [{"type": "output_text"}]},
        "'content.0.text' of message: it is missing",
    ),
    (
        {"type": "message", "role": "user", "content": [{"type": []}]},
        "'content.0.type'",
    ),
    ({"type": "function_call_output", "call_id": "c", "output": 5}, "'output'"),
    ({"type": "local_shell_call", "action": {"command": "ls"}}, "'action.command'"),
    ({"type": "local_shell_call", "action": {"command": [1]}}, "'action.command.0'"),
    (
        {"type": "local_shell_call", "action": {"type": "x", "command": []}},
        "'action.type'",
    ),
    ({"type": "web_search_call", "action": []}, "'action' of web_search_call"),
]


@pytest.mark.parametrize(("data", "complaint"), MALFORMED)
def test_a_malformed_item_is_refused_by_the_name_of_its_field(
    data: object, complaint: str
) -> None:
    with pytest.raises(MalformedItem, match=r"malformed item") as error:
        parse_item(data)
    assert complaint in str(error.value)
