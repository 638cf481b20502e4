"""Items of one provider, sent to another."""

import json
from typing import Any

from codex_py.model.provider_data import Maker, OwnItems
from codex_py.protocol.messages import EncodedItem, encode_json

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


def sent(maker: Maker, *items: dict[str, Any], functions_only: bool = False) -> list[Any]:
    own = OwnItems(maker, functions_only=functions_only)
    return [json.loads(item) for item in own.of([EncodedItem(encode_json(i)) for i in items])]


def test_the_first_provider_gets_its_items_back_as_they_are() -> None:
    item = EncodedItem(encode_json(REASONING))
    assert OwnItems(Maker("a", "a"), functions_only=False).of([item]) == [item]


def test_another_provider_gets_neither_its_reasoning_nor_its_ids() -> None:
    (call,) = sent(Maker("b", "a"), REASONING, CALL)
    assert call == {k: v for k, v in CALL.items() if k != "id"}


def test_what_another_provider_made_comes_back_to_it_alone() -> None:
    away = Maker("b", "a")
    made = [away.marked(REASONING), away.marked(CALL)]
    assert sent(away, *made) == [REASONING, CALL]
    assert sent(Maker("a", "a"), *made) == [{k: v for k, v in CALL.items() if k != "id"}]


def test_no_provider_data_is_ever_sent() -> None:
    here = Maker("a", "a")
    marked = here.marked(CALL, "m", signature="s")
    assert marked["provider_data"] == {"provider": "a", "model": "m", "signature": "s"}
    assert sent(here, marked) == [CALL]


def test_a_server_without_freeform_tools_is_sent_their_calls_as_functions() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** x"}
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
