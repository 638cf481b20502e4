"""Requests of the Anthropic API.

Also tests `model/freeform.py`.
"""

import json
from typing import Any

import pytest

from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.profile import Profile
from codex_py.model.provider_data import Maker
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import Prompt, ToolChoice
from codex_py.protocol.tools import FreeformSpec, FunctionSpec

HOME = Maker("p", "p")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = [
    FunctionSpec("shell", "Runs.", SCHEMA),
    FreeformSpec("apply_patch", "Patches.", "g"),
]
MARK = {"cache_control": {"type": "ephemeral"}}


def told(text: str, role: str = "user") -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part]}


def thought(signature: str = "s", **mark: Any) -> dict[str, Any]:
    data = {"provider": "p", "model": "m", "signature": signature, **mark}
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "summary": summary, "provider_data": data}


def call(call_id: str, arguments: str = "{}", name: str = "shell") -> dict[str, Any]:
    fields = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", **fields}


def output(call_id: str, value: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def body(
    *items: dict[str, Any], profile: Profile | None = None, **fields: Any
) -> dict[str, Any]:
    encoded = [EncodedItem(encode_json(item)) for item in items]
    prompt = Prompt(model="m", input=encoded, cache_key="t", **fields)
    return json.loads(AnthropicWire(maker=HOME, profile=profile).body(prompt))


def messages(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return body(*items, profile=Profile(cache_marks=False))["messages"]


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_four_places_are_marked_for_the_cache() -> None:
    items = (
        told("rules", "developer"),
        told("go"),
        thought(),
        said("ok"),
        told("more"),
    )
    sent = body(*items, tools=TOOLS, instructions="Be.")
    assert sent["system"] == [block("Be."), {**block("rules"), **MARK}]
    assert [MARK.items() <= tool.items() for tool in sent["tools"]] == [False, True]
    assert [MARK.items() <= m["content"][-1].items() for m in sent["messages"]] == [
        False,
        True,
        True,
    ]
    assert json.dumps(sent).count("cache_control") == 4


def test_results_come_first_in_the_next_message_of_the_user() -> None:
    note = told("a note", "developer")
    _, assistant, user = messages(
        told("go"),
        said("two"),
        call("a"),
        call("b"),
        note,
        output("b"),
        output("a"),
        told("more"),
    )
    assert [b["type"] for b in assistant["content"]] == ["text", "tool_use", "tool_use"]
    kinds = [
        (b["type"], b.get("tool_use_id") or b.get("text")) for b in user["content"]
    ]
    assert kinds == [
        ("tool_result", "a"),
        ("tool_result", "b"),
        ("text", "a note"),
        ("text", "more"),
    ]


def test_roles_alternate_and_the_user_begins() -> None:
    sent = messages(said("hi "), told("a"), told("b"), said("c"), said("d  "))
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "assistant"]
    assert sent[-1]["content"] == [block("c"), block("d")]


def test_a_failure_has_its_flag_and_its_code() -> None:
    *_, user = messages(
        told("go"), call("a"), output("a", "[ERROR:ENOENT] no such file")
    )
    (result,) = user["content"]
    assert (result["is_error"], result["content"]) == (
        True,
        "[ERROR:ENOENT] no such file",
    )


def test_images_are_content_of_results() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    *_, user = messages(told("go"), call("a"), output("a", [image]))
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert user["content"][0]["content"] == [{"type": "image", "source": source}]


def test_thinking_goes_back_unchanged_to_the_model_that_signed_it_and_to_no_other() -> (
    None
):
    items = (told("go"), thought(), said("ok"), told("more"))
    assert messages(*items)[1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "s",
    }
    other = (told("go"), thought(model="x"), said("ok"), told("more"))
    assert messages(*other)[1]["content"] == [block("ok")]
    redacted = thought(signature="", redacted="zz")
    assert messages(told("go"), redacted, said("ok"))[1]["content"][0]["data"] == "zz"


def test_thinking_is_asked_for_as_the_model_knows_it() -> None:
    effort: dict[str, Any] = {"reasoning": {"effort": "high"}}
    adaptive = body(told("go"), **effort)
    assert adaptive["thinking"] == {"type": "adaptive"}
    assert adaptive["output_config"] == {"effort": "high"}
    budget = body(told("go"), profile=Profile(thinking="budget"), **effort)
    assert budget["thinking"] == {"type": "enabled", "budget_tokens": 20_000}
    assert "thinking" not in body(
        told("go"), profile=Profile(thinking="none"), **effort
    )


def test_a_turn_that_another_model_began_goes_on_without_thinking() -> None:
    effort: dict[str, Any] = {"reasoning": {"effort": "high"}, "tools": TOOLS}
    begun = (told("go"), call("a"), output("a"))
    assert "thinking" not in body(*begun, **effort)
    assert "thinking" in body(told("go"), thought(), call("a"), output("a"), **effort)
    assert "thinking" in body(*begun, said("ok"), told("more"), **effort)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice("none"), {"type": "none"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("required", ("shell",)), {"type": "tool", "name": "shell"}),
        (ToolChoice("auto", ("shell",)), {"type": "auto"}),
    ],
)
def test_the_choice_of_a_tool_is_sent_in_anthropics_form(
    choice: ToolChoice, expected: dict[str, Any]
) -> None:
    effort = {"effort": "high"}
    sent = body(told("go"), tools=TOOLS, tool_choice=choice, reasoning=effort)
    assert sent["tool_choice"] == expected
    # Thinking allows no other choice than auto and none.
    assert ("thinking" in sent) == (choice.mode != "required")


def test_parallel_calls_are_switched_off_if_they_are_not_wanted() -> None:
    sent = body(told("go"), tools=TOOLS, parallel_tool_calls=False)
    assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_a_history_with_calls_defines_tools_even_if_none_may_be_called() -> None:
    sent = body(told("go"), call("a"), output("a"))
    assert [tool["name"] for tool in sent["tools"]] == ["shell"]
    assert sent["tool_choice"] == {"type": "none"}


def test_names_ids_and_arguments_of_others_become_legal() -> None:
    twice = (call("f:0", "[1]", "a.b"), output("f:0")) * 2
    _, first, _, second, _ = messages(told("go"), *twice)
    uses = [first["content"][0], second["content"][0]]
    assert uses[0]["name"] == "a_b"
    assert uses[0]["input"] == {"_raw": "[1]"}
    assert len({use["id"] for use in uses}) == 2
    assert all(use["id"].replace("_", "").isalnum() for use in uses)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"cmd":NaN}',
        '{"cmd":Infinity}',
        '{"cmd":-Infinity}',
        '{"cmd":1e999}',
        '{"cmd":-1E+400}',
        '{"cmd":"echo hi","x":[NaN]}',
        '{"cmd":{"deep":[{"er":1e309}]}}',
    ],
)
def test_numbers_that_json_does_not_have_are_sent_as_text(arguments: str) -> None:
    _, assistant, _ = messages(told("go"), call("a", arguments), output("a"))
    assert assistant["content"][0]["input"] == {"_raw": arguments}


@pytest.mark.parametrize("arguments", ['{"a":1e308}', '{"a":[0.5,-0.0]}', '{"a":null}'])
def test_numbers_that_json_has_stay_numbers(arguments: str) -> None:
    _, assistant, _ = messages(told("go"), call("a", arguments), output("a"))
    assert assistant["content"][0]["input"] == json.loads(arguments)


def test_blank_text_is_left_out() -> None:
    sent = messages(
        told("go"), said("  "), call("a"), output("a", ""), told(" "), said("x")
    )
    assert [b["type"] for b in sent[1]["content"]] == ["tool_use"]
    assert sent[2]["content"][0]["content"] == "(no output)"
