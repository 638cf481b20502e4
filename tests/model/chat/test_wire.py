"""Requests of Chat Completions.

Also tests `model/freeform.py` and `model/profile.py`.
"""

import json
from typing import Any

import pytest

from codex_py.model.chat.wire import ChatWire
from codex_py.model.profile import Profile
from codex_py.model.provider_data import Maker
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import Prompt, ToolChoice
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, HostedSpec

HOME = Maker("p", "p")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = [
    FunctionSpec("shell", "Runs.", SCHEMA),
    FreeformSpec("apply_patch", "Patches.", "start: x"),
    HostedSpec("web_search"),
]
IMAGE = {
    "type": "input_image",
    "image_url": "data:image/png;base64,x",
    "detail": "original",
}


def told(text: str, role: str = "user") -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"type": "message", "role": "assistant", "content": [part]}


def call(call_id: str, arguments: str = "{}", **extra: Any) -> dict[str, Any]:
    fields = {"call_id": call_id, "name": "shell", "arguments": arguments}
    return {"type": "function_call", **fields, **extra}


def output(call_id: str, value: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def body(
    *items: dict[str, Any], profile: Profile | None = None, **fields: Any
) -> dict[str, Any]:
    encoded = [EncodedItem(encode_json(item)) for item in items]
    prompt = Prompt(model="m", input=encoded, cache_key="t", **fields)
    return json.loads(ChatWire(maker=HOME, profile=profile).body(prompt))


def messages(
    *items: dict[str, Any], profile: Profile | None = None
) -> list[dict[str, Any]]:
    return body(*items, profile=profile)["messages"]


def test_all_that_leads_the_history_is_the_one_system_message() -> None:
    sent = body(
        told("rules", "developer"),
        told("go"),
        told("note", "developer"),
        instructions="Be.",
    )
    assert sent["messages"] == [
        {"role": "system", "content": "Be.\n\nrules"},
        {"role": "user", "content": "go\n\nnote"},
    ]


def test_a_request_has_what_every_server_knows_and_no_more() -> None:
    assert body(told("go")) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "go"}],
    }


def test_a_response_is_one_message_and_its_results_follow() -> None:
    _, assistant, first, second, user = messages(
        told("go"),
        said("two"),
        call("a"),
        call("b"),
        output("b"),
        output("a", "A"),
        told("more"),
    )
    assert [entry["id"] for entry in assistant["tool_calls"]] == ["a", "b"]
    assert assistant["content"] == "two"
    assert first == {"role": "tool", "tool_call_id": "a", "content": "A"}
    assert (second["tool_call_id"], user["content"]) == ("b", "more")


def test_freeform_tools_and_calls_are_functions() -> None:
    custom = {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "apply_patch",
        "input": "x",
    }
    answer = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
    sent = body(told("go"), custom, answer, tools=TOOLS)
    assert [tool["function"]["name"] for tool in sent["tools"]] == [
        "shell",
        "apply_patch",
    ]
    assert "start: x" in sent["tools"][1]["function"]["description"]
    function = sent["messages"][1]["tool_calls"][0]["function"]
    assert function == {"name": "apply_patch", "arguments": '{"input":"x"}'}


def test_images_of_results_come_after_all_results() -> None:
    parts = [{"type": "input_text", "text": "see"}, IMAGE]
    sent = messages(call("a"), call("b"), output("a", parts), output("b"), told("and?"))
    assert [message["role"] for message in sent] == [
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    image, text = sent[3]["content"]
    assert image == {"type": "image_url", "image_url": {"url": IMAGE["image_url"]}}
    assert text == {"type": "text", "text": "and?"}
    text_only = messages(
        call("a"), output("a", parts), profile=Profile(text_content_only=True)
    )
    assert "left out" in text_only[1]["content"]


@pytest.mark.parametrize(
    "arguments",
    [
        "{bad",
        "[]",
        "null",
        "7",
        '"text"',
        "true",
        '[{"a":1}]',
        '{"a":NaN}',
        '{"a":[1,{"b":-Infinity}]}',
        '{"a":1e999}',
        "{} {}",
    ],
)
def test_arguments_that_are_no_object_are_wrapped(arguments: str) -> None:
    assistant, _ = messages(call("a", arguments), output("a"))
    sent = assistant["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"_raw": arguments}


@pytest.mark.parametrize(
    ("arguments", "sent"), [("", "{}"), ("  ", "{}"), (' {"a": 1}', ' {"a": 1}')]
)
def test_arguments_that_are_an_object_go_as_they_are(arguments: str, sent: str) -> None:
    assistant, _ = messages(call("a", arguments), output("a"))
    assert assistant["tool_calls"][0]["function"]["arguments"] == sent


def thought(**data: Any) -> dict[str, Any]:
    mark = {"provider": "p", "model": "m", **data}
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "summary": summary, "provider_data": mark}


@pytest.mark.parametrize(
    ("profile", "item", "expected"),
    [
        (Profile(), thought(field="reasoning"), {"reasoning": "hm"}),
        (Profile(), thought(field="think"), {"content": "<think>hm</think>\n\nyes"}),
        (Profile(), {**thought(), "provider_data": {"provider": "other"}}, {}),
        (Profile(replay_reasoning="never"), thought(field="reasoning"), {}),
        (Profile(replay_reasoning="required"), told("go"), {"reasoning_content": " "}),
        (
            Profile(),
            thought(field="r", details=[{"n": 1}]),
            {"r": "hm", "reasoning_details": [{"n": 1}]},
        ),
    ],
)
def test_reasoning_goes_back_as_it_came_to_the_model_that_made_it(
    profile: Profile, item: dict[str, Any], expected: dict[str, Any]
) -> None:
    sent = messages(item, said("yes"), profile=profile)[-1]
    assert sent == {"role": "assistant", "content": "yes", **expected}


def test_data_that_was_attached_to_a_call_goes_back_with_it() -> None:
    mark = {"provider": "p", "model": "m", "extra_content": {"x": 1}}
    assistant, _ = messages(call("a", provider_data=mark), output("a"))
    assert assistant["tool_calls"][0]["extra_content"] == {"x": 1}


@pytest.mark.parametrize(
    ("profile", "choice", "expected"),
    [
        (Profile(), ToolChoice(), None),
        (Profile(), ToolChoice("none"), "none"),
        (Profile(), ToolChoice("required"), "required"),
        (
            Profile(),
            ToolChoice("required", ("shell",)),
            {"type": "function", "function": {"name": "shell"}},
        ),
        (
            Profile(),
            ToolChoice("auto", ("shell",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "shell"}}],
                },
            },
        ),
        (Profile(tool_choice="any"), ToolChoice("required", ("shell",)), "any"),
        (Profile(tool_choice="ignored"), ToolChoice("required"), None),
    ],
)
def test_the_choice_of_a_tool_is_said_as_the_server_understands_it(
    profile: Profile, choice: ToolChoice, expected: Any
) -> None:
    sent = body(told("go"), profile=profile, tools=TOOLS, tool_choice=choice)
    assert sent.get("tool_choice") == expected


def test_quirks_are_settings() -> None:
    profile = Profile(
        max_tokens_field="max_tokens",
        reasoning="object",
        stream_usage=False,
        name_on_tool_message=True,
        assistant_after_tool=True,
        tool_ids="mistral",
        extra_body={"tool_stream": True},
    )
    sent = body(
        call("call_1"),
        output("call_1"),
        told("go"),
        profile=profile,
        max_output_tokens=5,
        reasoning={"effort": "low", "summary": "auto"},
    )
    assert (sent["max_tokens"], sent["reasoning"]) == (5, {"effort": "low"})
    assert sent["tool_stream"]
    assert "stream_options" not in sent
    assistant, tool, between, user = sent["messages"]
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"]
    assert len(tool["tool_call_id"]) == 9
    assert (tool["name"], between["role"], user["role"]) == (
        "shell",
        "assistant",
        "user",
    )


def test_a_longer_history_begins_with_the_bytes_of_the_shorter_one() -> None:
    wire = ChatWire(maker=HOME)
    items = [EncodedItem(encode_json(i)) for i in (told("go"), call("a"), output("a"))]
    short = wire.body(Prompt(model="m", input=items, cache_key="t"))
    items = [*items, EncodedItem(encode_json(said("yes")))]
    assert wire.body(Prompt(model="m", input=items, cache_key="t")).startswith(
        short[:-2]
    )


def test_an_id_that_comes_again_in_a_later_turn_is_another_one() -> None:
    once = (call("a"), output("a"))
    first = messages(*once)
    sent = messages(*once, *once, *once)
    ids = [m["tool_calls"][0]["id"] for m in sent if m["role"] == "assistant"]
    assert ids[0] == "a"
    assert len({*ids}) == 3
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ids
    # Each request of a thread begins with the one before.
    assert sent[: len(first)] == first
