"""Items of one provider, sent to another."""

import json
from typing import Any

import pytest

from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.chat.wire import ChatWire
from codex_py.model.provider_data import Maker, OwnItems
from codex_py.model.responses.wire import ResponsesWire
from codex_py.model.text.wire import TextToolsWire
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import Prompt

REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "opaque",
}
CALL: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c",
    "name": "f",
    "arguments": "{}",
}


def sent(
    maker: Maker, *items: dict[str, Any], functions_only: bool = False
) -> list[Any]:
    own = OwnItems(maker, functions_only=functions_only)
    return [
        json.loads(item)
        for item in own.of([EncodedItem(encode_json(i)) for i in items])
    ]


def test_the_first_provider_gets_its_items_back_as_they_are() -> None:
    item = EncodedItem(encode_json(REASONING))
    assert OwnItems(Maker("a", "a"), functions_only=False).of([item]) == [item]


def test_another_provider_gets_neither_its_reasoning_nor_its_ids() -> None:
    (call,) = sent(Maker("b", "a"), REASONING, CALL)
    assert call == {k: v for k, v in CALL.items() if k != "id"}


def test_data_of_a_provider_goes_back_to_that_provider_alone() -> None:
    away = Maker("b", "a")
    made = [away.marked(REASONING), away.marked(CALL)]
    assert sent(away, *made) == [REASONING, CALL]
    assert sent(Maker("a", "a"), *made) == [
        {k: v for k, v in CALL.items() if k != "id"}
    ]


def test_no_provider_data_is_ever_sent() -> None:
    here = Maker("a", "a")
    marked = here.marked(CALL, "m", signature="s")
    assert marked["provider_data"] == {"provider": "a", "model": "m", "signature": "s"}
    assert sent(here, marked) == [CALL]


def test_a_server_without_freeform_tools_is_sent_their_calls_as_functions() -> None:
    call = {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "apply_patch",
        "input": "*** x",
    }
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
    assert sent(Maker("a", "a"), call, output, functions_only=True) == [
        {
            "type": "function_call",
            "call_id": "c",
            "name": "apply_patch",
            "arguments": '{"input":"*** x"}',
        },
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ]


@pytest.mark.parametrize(
    "value", [None, 5, "x", [], ["x"], [5, {}], {"a": 1}, [{"type": "text"}]]
)
@pytest.mark.parametrize(
    "name",
    ["provider", "model", "field", "details", "signature", "redacted", "blocks", "all"],
)
def test_a_session_file_with_other_data_than_was_written_can_be_sent(
    name: str, value: Any
) -> None:
    data = value if name == "all" else {"provider": "p", "model": "m", name: value}
    summary = [{"type": "summary_text", "text": "hm"}]
    history = [
        {**item, "provider_data": data}
        for item in (
            {"type": "reasoning", "summary": summary},
            {"type": "web_search_call", "status": "completed"},
            CALL,
        )
    ]
    prompt = Prompt(
        "m", [EncodedItem(encode_json(item)) for item in history], cache_key="t"
    )
    home = Maker("p", "p")
    wires = [kind(maker=home) for kind in (AnthropicWire, ChatWire, ResponsesWire)]
    for wire in (
        *wires,
        TextToolsWire(ChatWire(maker=home), session_id="t", maker=home),
    ):
        json.loads(wire.body(prompt))
