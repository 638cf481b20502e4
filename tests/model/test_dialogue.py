"""What every wire but the Responses API translates from."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codex_py.model.dialogue import (
    MISSING_RESULT,
    Dialogue,
    DialogueCall,
    DialogueText,
    InputMessage,
    ModelTurn,
    Turn,
)
from codex_py.model.provider_data import Maker
from codex_py.protocol.messages import EncodedItem, encode_json

HERE = Maker("here", "here")


def encoded(*items: dict[str, Any]) -> list[EncodedItem]:
    return [EncodedItem(encode_json(item)) for item in items]


def dialogue(*items: dict[str, Any], maker: Maker = HERE) -> list[Turn]:
    return list(Dialogue(maker).of(encoded(*items), "m"))


def told(text: str, role: str = "user") -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part]}


def call(call_id: str, **extra: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "f",
        "arguments": "{}",
        **extra,
    }


def output(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def model_turn(turn: Turn) -> ModelTurn:
    assert isinstance(turn, ModelTurn)
    return turn


def test_the_calls_of_a_response_and_their_results_are_one_turn() -> None:
    _, turn, after = dialogue(
        told("go"),
        said("two"),
        call("a"),
        call("b"),
        output("b", "B"),
        output("a", "A"),
        said("!"),
    )
    turn = model_turn(turn)
    assert [type(block) for block in turn.blocks] == [
        DialogueText,
        DialogueCall,
        DialogueCall,
    ]
    assert [result.text for result in turn.complete_results()] == ["A", "B"]
    assert model_turn(after).blocks == [DialogueText("!")]


def test_a_message_between_a_call_and_its_result_comes_after_the_result() -> None:
    turn, note = dialogue(call("a"), told("a note", "developer"), output("a"))
    assert model_turn(turn).complete_results()[0].text == "done"
    assert isinstance(note, InputMessage)
    assert (note.role, note.text) == ("developer", "a note")


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_is_left_out() -> (
    None
):
    turn, prompt = dialogue(output("x"), call("a"), told("stop"))
    assert [result.text for result in model_turn(turn).complete_results()] == [
        MISSING_RESULT
    ]
    assert isinstance(prompt, InputMessage)


def test_ids_that_come_again_are_paired_by_place() -> None:
    turns = dialogue(call("f:0"), output("f:0", "1"), call("f:0"), output("f:0", "2"))
    assert [model_turn(t).complete_results()[0].text for t in turns] == ["1", "2"]


def test_data_of_another_provider_or_model_is_not_given_out() -> None:
    data = {"provider": "here", "model": "m", "signature": "s"}
    thought: dict[str, Any] = {
        "type": "reasoning",
        "summary": [],
        "provider_data": data,
    }
    away = Maker("here", "elsewhere")
    (own,) = dialogue(thought, maker=away)
    (other_model,) = dialogue(
        {**thought, "provider_data": {**data, "model": "x"}}, maker=away
    )
    (unmarked,) = dialogue({"type": "reasoning", "summary": []}, maker=away)
    found = [model_turn(turn).blocks[0] for turn in (own, other_model, unmarked)]
    assert [getattr(block, "data", "") for block in found] == [data, None, None]


def test_a_longer_history_keeps_what_is_translated_and_another_one_does_not() -> None:
    reader = Dialogue(HERE)
    items = encoded(told("go"), said("yes"))
    first = reader.of(items, "m")
    assert reader.of([*items, *encoded(told("more"))], "m")[:2] == first
    assert reader.of([*items], "m")[0] is not first[0]


ITEMS = st.one_of(
    st.sampled_from(["user", "developer"]).map(lambda role: told("t", role)),
    st.just(said("s")),
    st.sampled_from("ab").map(call),
    st.sampled_from("ab").map(output),
    st.just({"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]}),
)


@given(st.lists(ITEMS, max_size=12), st.integers(0, 12))
def test_any_history_gives_the_same_dialogue_in_one_piece_or_in_two(
    history: list[dict[str, Any]], cut: int
) -> None:
    items = encoded(*history)
    reader = Dialogue(HERE)
    reader.of(items[:cut], "m")
    turns = reader.of(items, "m")
    assert turns == Dialogue(HERE).of(items, "m")
    calls = [one for turn in turns if isinstance(turn, ModelTurn) for one in turn.calls]
    assert len(calls) == sum(item["type"] == "function_call" for item in history)
    assert all(len(t.complete_results()) == len(t.calls) for t in map_turns(turns))
    assert json.dumps([type(turn).__name__ for turn in turns]).count(
        'ModelTurn", "ModelTurn'
    ) <= len(calls)


def map_turns(turns: Any) -> list[ModelTurn]:
    return [turn for turn in turns if isinstance(turn, ModelTurn)]
