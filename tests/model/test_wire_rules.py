"""Whatever a history is like, the request that a wire makes of it is one that the real service does not refuse."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.chat.wire import ChatWire
from codex_py.model.profile import Profile
from codex_py.model.provider_data import Maker
from codex_py.model.text.format import session_tag
from codex_py.model.text.wire import TextToolsWire
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import Prompt, ToolChoice, Wire
from codex_py.protocol.tools import FreeformSpec, FunctionSpec
from codex_py.testing import prefix_problem
from tests.support.rules.anthropic import check_anthropic
from tests.support.rules.chat import check_chat
from tests.support.rules.text import check_text
from tests.support.rules.thread import anthropic_prefix, chat_prefix
from tests.support.searches import share

Item = dict[str, Any]

thorough = settings(max_examples=share(100), deadline=None, database=None)
HERE = Maker("here", "elsewhere")
TOOLS = (
    FunctionSpec(
        "run", "Runs.", {"type": "object", "properties": {"cmd": {"type": "string"}}}
    ),
    FreeformSpec("apply_patch", "Patches.", "start: x"),
)
TEXTS = st.sampled_from(["", " \n", "one", "two\n\nlines ", "é\ud800", '{"a": 1}'])
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
IDS = st.sampled_from(["c1", "c2", "functions.run:0", "ü", "x" * 70])
NAMES = st.sampled_from(["run", "apply_patch", "no.such/tool", "", "n" * 80])
OWN: Item = {"provider": "here", "model": "m"}


def text(value: str) -> Item:
    return {"type": "input_text", "text": value}


def said(value: str) -> Item:
    part = {"type": "output_text", "text": value}
    return {"type": "message", "role": "assistant", "content": [part]}


def told(role: str, value: str, *, has_image: bool) -> Item:
    images = [IMAGE] if has_image and role == "user" else []
    return {"type": "message", "role": role, "content": [text(value), *images]}


def thought(value: str, kind: str) -> Item:
    summary = [{"type": "summary_text", "text": value}] if value else []
    data: Item | None = {
        "signed": {**OWN, "signature": f"sig {value}"},
        "redacted": {**OWN, "redacted": "sealed"},
        "chat": {**OWN, "field": "reasoning"},
        "other model": {**OWN, "model": "n", "signature": "sig"},
        "other provider": None,
    }[kind]
    return {"type": "reasoning", "summary": summary, "provider_data": data}


def call(call_id: str, name: str, arguments: str, kind: str) -> Item:
    if kind == "local_shell_call":
        return {"type": kind, "call_id": call_id, "action": {"command": ["ls"]}}
    field = "arguments" if kind == "function_call" else "input"
    return {"type": kind, "call_id": call_id, "name": name, field: arguments}


def answered(calls: Sequence[Item], output: Any, notes: Sequence[Item]) -> list[Item]:
    outputs = [
        {"type": "function_call_output", "call_id": each["call_id"], "output": output}
        for each in calls
    ]
    return [*calls, *notes, *outputs]


GO = told("user", "go", has_image=False)
KINDS = ["signed", "redacted", "chat", "other model", "other provider"]
TOLD = st.builds(
    told,
    st.sampled_from(["user", "developer", "system"]),
    TEXTS,
    has_image=st.booleans(),
)
CALLS = st.lists(
    st.builds(
        call,
        IDS,
        NAMES,
        st.sampled_from(
            ["", "{}", '{"cmd": "ls"}', '{"cmd":', "[1]", "*** Begin Patch"]
        ),
        st.sampled_from(["function_call", "custom_tool_call", "local_shell_call"]),
    ),
    min_size=1,
    max_size=3,
)
OUTPUTS = st.one_of(
    TEXTS, st.just([text("seen"), IMAGE]), st.just([IMAGE]), st.just([])
)
SERVER_TOOL: Item = {
    "type": "web_search_call",
    "provider_data": {
        **OWN,
        "blocks": [{"type": "server_tool_use", "id": "s", "input": {}}],
    },
}
STEPS = st.one_of(
    TOLD.map(lambda item: [item]),
    TEXTS.map(lambda value: [said(value)]),
    st.builds(thought, TEXTS, st.sampled_from(KINDS)).map(lambda item: [item]),
    st.builds(answered, CALLS, OUTPUTS, st.lists(TOLD, max_size=2)),
    st.just([SERVER_TOOL]),
    st.just([GO]),
    st.just([{"type": "something_new", "id": "x"}]),
)
LOST = st.sampled_from(
    [
        {"type": "function_call", "call_id": "c8", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "lost"},
    ]
)
HISTORIES = st.lists(STEPS, max_size=8)
PROFILES = st.sampled_from(
    [
        Profile(),
        Profile(thinking="budget", replay_reasoning="required", tool_ids="mistral"),
        Profile(
            text_content_only=True, assistant_after_tool=True, tool_ids="anthropic"
        ),
        Profile(openai_fields=True, replay_reasoning="never", cache_marks=False),
    ]
)
CHOICES = st.sampled_from(
    [
        ToolChoice(),
        ToolChoice("none"),
        ToolChoice("required"),
        ToolChoice("required", ("run",)),
    ]
)


def encoded(items: Sequence[Item]) -> list[EncodedItem]:
    return [EncodedItem(encode_json(item)) for item in items]


def prompt(items: list[EncodedItem], **fields: Any) -> Prompt:
    return Prompt("m", items, "thread", reasoning={"effort": "high"}, **fields)


def signatures(items: Sequence[Item]) -> dict[str, str]:
    sent = [json.loads(item) for item in encoded(items)]
    thoughts = [each for each in sent if each["type"] == "reasoning"]
    known = {"sealed": ""}
    for each in thoughts:
        data: Item = each["provider_data"] or {}
        if data.get("model") == "m" and "signature" in data:
            known[data["signature"]] = "".join(part["text"] for part in each["summary"])
    return known


def check(wire: Wire, body: Item, items: Sequence[Item]) -> None:
    if wire.path == "/messages":
        check_anthropic(body, wire.headers, signatures(items))
    else:
        check_chat(body, system_first=True)
    if isinstance(wire, TextToolsWire):
        check_text(body["messages"], session_tag("t"))


def wires(profile: Profile) -> list[Wire]:
    chat = ChatWire(maker=HERE, profile=profile)
    anthropic = AnthropicWire(maker=HERE, profile=profile)
    inner = ChatWire(maker=HERE, profile=profile)
    return [chat, anthropic, TextToolsWire(inner, session_id="t", maker=HERE)]


@thorough
@given(
    st.lists(STEPS | LOST.map(lambda item: [item]), max_size=8),
    PROFILES,
    CHOICES,
    st.booleans(),
)
def test_any_history_keeps_the_rules(
    steps: list[list[Item]], profile: Profile, choice: ToolChoice, has_tools: bool
) -> None:
    items = [item for step in [*steps, [GO]] for item in step]
    fields: Item = {"tools": TOOLS, "tool_choice": choice} if has_tools else {}
    for wire in wires(profile):
        body = json.loads(
            wire.body(prompt(encoded(items), instructions="Be brief.", **fields))
        )
        check(wire, body, items)


@thorough
@given(HISTORIES, PROFILES)
def test_each_request_of_a_history_that_grows_begins_with_the_one_before(
    steps: list[list[Item]], profile: Profile
) -> None:
    for wire in wires(profile):
        prefix = anthropic_prefix if wire.path == "/messages" else chat_prefix
        items = encoded([told("developer", "Be kind.", has_image=False)])
        before: list[Any] = []
        for step in [[GO], *steps, [GO]]:
            items += encoded(step)
            if step != [GO] and step[-1]["type"] != "function_call_output":
                # The model goes on, or nobody has asked for anything.
                continue
            sent = prefix(json.loads(wire.body(prompt(items, tools=TOOLS))))
            problem = prefix_problem(before, sent)
            assert problem is None, problem
            before = sent
