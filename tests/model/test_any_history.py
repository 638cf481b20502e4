"""Any history is sent in each API without breaking its rules, and says there what it says here."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.chat.wire import ChatWire
from codex_py.model.profile import Profile
from codex_py.model.provider_data import Maker
from codex_py.model.responses.wire import ResponsesWire
from codex_py.model.text.format import session_tag
from codex_py.model.text.wire import TextToolsWire
from codex_py.protocol.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ResponseItem,
)
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.stream import (
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ReasoningDelta,
    Wire,
)
from codex_py.protocol.tools import FreeformSpec, FunctionSpec
from codex_py.testing import (
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import Event
from codex_py.testing.rendering.anthropic import AnthropicStream
from codex_py.testing.rendering.chat import ChatStream
from codex_py.testing.rules import pairing_problem, prefix_problem
from tests.support.rules.anthropic import blocks, check_anthropic
from tests.support.rules.chat import check_chat
from tests.support.rules.shape import JsonObject
from tests.support.rules.text import check_text
from tests.support.rules.thread import anthropic_prefix, chat_prefix
from tests.support.searches import share

HERE, AWAY = Maker("here", "here"), Maker("here", "elsewhere")
TOOLS = (
    FunctionSpec(
        "shell", "Runs.", {"type": "object", "properties": {"cmd": {"type": "string"}}}
    ),
    FreeformSpec("apply_patch", "Patches.", "start: x"),
)

IMAGE = {
    "type": "input_image",
    "image_url": "data:image/png;base64,aGk=",
    "detail": "auto",
}
EXAMPLES = int(os.environ.get("WIRE_EXAMPLES", share(40)))
TEXTS = st.sampled_from(
    ["", " ", "a", "b c", "é “x”", "end ", "[ERROR:EXIT] 1", "<tool>"]
)
WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
ARGUMENTS = st.dictionaries(
    WORDS, st.one_of(WORDS, st.integers(), st.none()), max_size=3
)
BROKEN = st.sampled_from(["", "{", '"x"', "[1]", "null", '{"a": 1} x'])
NAMES = st.sampled_from(["shell", "view image", "a.b", "x" * 70])
IDS = st.sampled_from(
    ["call_1", "call_2", "functions.shell:0", "ü", "x" * 90, "call 3"]
)


def told(role: str, *parts: JsonObject) -> JsonObject:
    return {"type": "message", "role": role, "content": list(parts)}


def text_part(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def said(text: str) -> JsonObject:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


PARTS = st.lists(st.one_of(TEXTS.map(text_part), st.just(IMAGE)), max_size=3)
PROMPTS = st.one_of(
    PARTS.map(lambda parts: told("user", *parts)),
    PARTS.map(lambda parts: told("developer", *parts)),
)


@st.composite
def thoughts(draw: st.DrawFn) -> JsonObject:
    text = draw(TEXTS)
    item: JsonObject = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}] if text else [],
    }
    provider, model = draw(
        st.sampled_from([("here", "m"), ("here", "n"), ("elsewhere", "m")])
    )
    own: list[JsonObject] = [
        {"signature": f"of {text}"},
        {"redacted": "zz"},
        {"field": "reasoning"},
        {"field": "think"},
        {"details": [{"type": "reasoning.encrypted", "data": "d"}]},
    ]
    data = draw(st.one_of(st.none(), st.sampled_from(own)))
    if data is not None:
        item["provider_data"] = {"provider": provider, "model": model, **data}
    return item


@st.composite
def calls(draw: st.DrawFn) -> JsonObject:
    call_id, extra = draw(IDS), draw(st.sampled_from([{}, {"namespace": "mcp__docs"}]))
    arguments = draw(st.one_of(ARGUMENTS.map(json.dumps), BROKEN))
    return draw(
        st.sampled_from(
            [
                {
                    "type": "function_call",
                    "call_id": call_id,
                    "name": draw(NAMES),
                    "arguments": arguments,
                    **extra,
                },
                {
                    "type": "custom_tool_call",
                    "call_id": call_id,
                    "name": "apply_patch",
                    "input": draw(WORDS),
                },
                {
                    "type": "local_shell_call",
                    "call_id": call_id,
                    "action": {"type": "exec", "command": ["ls", draw(TEXTS)]},
                },
            ]
        )
    )


def answer(call: JsonObject, output: Any) -> JsonObject:
    kind = "custom_tool_call" if call["type"] == "custom_tool_call" else "function_call"
    return {"type": f"{kind}_output", "call_id": call["call_id"], "output": output}


OUTPUTS = st.one_of(TEXTS, PARTS)
SPOKEN = st.one_of(
    TEXTS.map(said),
    thoughts(),
    st.just({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
)


@st.composite
def responses(draw: st.DrawFn) -> list[JsonObject]:
    """What a model said and called, and the outputs in some order, with notes between them."""
    spoken = draw(st.lists(st.one_of(SPOKEN, calls()), max_size=5))
    called: dict[str, JsonObject] = {}
    kept: list[JsonObject] = []
    for item in spoken:
        if item.get("call_id") not in called:
            kept.append(item)
            if "call_id" in item:
                called[item["call_id"]] = item
    outputs = [
        answer(call, draw(OUTPUTS))
        for call in draw(st.permutations([*called.values()]))
    ]
    if outputs and draw(st.booleans()):
        outputs.insert(draw(st.integers(0, len(outputs))), draw(PROMPTS))
    return [*kept, *outputs]


TURNS = st.lists(
    st.one_of(
        PROMPTS.map(lambda item: [item]),
        responses().map(lambda items: [told("user", text_part("next")), *items]),
    ),
    min_size=1,
    max_size=6,
)
ANY_ITEMS = st.lists(
    st.one_of(
        PROMPTS,
        SPOKEN,
        calls(),
        st.builds(answer, calls(), OUTPUTS),
        st.just({"type": "compaction", "encrypted_content": "x"}),
    ),
    min_size=1,
    max_size=12,
)


def encoded(items: Sequence[JsonObject]) -> list[EncodedItem]:
    return [EncodedItem(encode_json(item)) for item in items]


def sent(wire: Wire, items: Sequence[EncodedItem]) -> JsonObject:
    first = EncodedItem(encode_json(told("user", text_part("go"))))
    prompt = Prompt(
        model="m", input=[first, *items], cache_key="t", tools=TOOLS, instructions="Be"
    )
    return json.loads(wire.body(prompt))


def signatures(items: Sequence[JsonObject]) -> Mapping[str, str]:
    """What the provider gave out, as its own server remembers it."""
    found = {"zz": ""}
    for item in items:
        if signature := item.get("provider_data", {}).get("signature"):
            found[signature] = "".join(part["text"] for part in item["summary"])
    return found


def check(api: str, body: JsonObject, items: Sequence[JsonObject]) -> None:
    match api:
        case "anthropic":
            check_anthropic(
                body, {"anthropic-version": "2023-06-01"}, signatures(items)
            )
        case "responses":
            assert pairing_problem(body["input"]) is None
        case _:
            check_chat(body, system_first=True)
            if api == "text":
                check_text(body["messages"], session_tag("t"))


PROFILES = {
    "chat": Profile(),
    "mistral": Profile(
        tool_ids="mistral",
        text_content_only=True,
        name_on_tool_message=True,
        assistant_after_tool=True,
        replay_reasoning="never",
    ),
    "deepseek": Profile(replay_reasoning="required", max_tokens_field="max_tokens"),
}


def make(api: str, maker: Maker = HERE) -> Wire:
    match api:
        case "anthropic":
            return AnthropicWire(maker=maker)
        case "responses":
            return ResponsesWire(maker=maker)
        case "text":
            return TextToolsWire(ChatWire(maker=maker), session_id="t", maker=maker)
        case _:
            return ChatWire(maker=maker, profile=PROFILES[api])


APIS = ["chat", "mistral", "deepseek", "anthropic", "text"]


@pytest.mark.parametrize("maker", [HERE, AWAY], ids=["own", "foreign"])
@pytest.mark.parametrize("api", APIS)
@given(items=ANY_ITEMS)
@settings(deadline=None, max_examples=EXAMPLES)
def test_whatever_the_history_is_the_request_is_legal(
    api: str, maker: Maker, items: list[JsonObject]
) -> None:
    if api != "text":
        check(api, sent(make(api, maker), encoded(items)), items)


@pytest.mark.parametrize("api", [*APIS, "responses"])
@given(turns=TURNS)
@settings(deadline=None, max_examples=EXAMPLES)
def test_each_request_begins_with_the_one_before_it(
    api: str, turns: list[list[JsonObject]]
) -> None:
    wire = make(api)
    items: list[EncodedItem] = []
    before: list[Any] = []
    plain = [item for turn in turns for item in turn]
    for turn in turns:
        items += encoded(turn)
        body = sent(wire, items)
        check(api, body, plain)
        assert body == sent(make(api), items)
        prefix = body.get("input") or (
            anthropic_prefix(body) if api == "anthropic" else chat_prefix(body)
        )
        assert prefix_problem(before, prefix) is None
        before = prefix


Carried = dict[str, str]
"""Everything of a kind that was said, in its order and without white space."""


def carried(entries: Iterator[tuple[str, str]]) -> Carried:
    found: dict[str, str] = defaultdict(str)
    for kind, text in entries:
        found[kind] += re.sub(r"\s", "", text)
    return {kind: text for kind, text in found.items() if text}


def of_items(items: Sequence[JsonObject]) -> Iterator[tuple[str, str]]:
    for item in items:
        match item["type"]:
            case "message":
                role = "said" if item["role"] == "assistant" else "told"
                for part in item["content"]:
                    yield role, part["text"]
            case "function_call":
                yield "call", json.dumps([item["name"], json.loads(item["arguments"])])
            case "custom_tool_call":
                yield "call", json.dumps([item["name"], {"input": item["input"]}])
            case _:
                yield "result", item["output"]


def of_chat(body: JsonObject) -> Iterator[tuple[str, str]]:
    kinds = {"user": "told", "assistant": "said", "tool": "result"}
    for message in body["messages"][2:]:
        yield kinds[message["role"]], message["content"] or ""
        for call in message.get("tool_calls", ()):
            function = call["function"]
            yield (
                "call",
                json.dumps([function["name"], json.loads(function["arguments"])]),
            )


def of_anthropic(body: JsonObject) -> Iterator[tuple[str, str]]:
    # The first block is the prompt that every history here begins with.
    first, *rest = body["messages"]
    for message in [{**first, "content": first["content"][1:]}, *rest]:
        for block in blocks(message["content"]):
            match block["type"]:
                case "text":
                    yield (
                        ("told" if message["role"] == "user" else "said"),
                        block["text"],
                    )
                case "tool_use":
                    yield "call", json.dumps([block["name"], block["input"]])
                case _:
                    yield "result", block["content"]


@st.composite
def plain_turns(draw: st.DrawFn) -> list[JsonObject]:
    """What every API can carry: texts, calls with arguments, and their outputs in order."""
    items: list[JsonObject] = [told("user", text_part("first"))]
    for number in range(draw(st.integers(1, 4))):
        called: list[JsonObject] = []
        for place in range(draw(st.integers(0, 3))):
            call_id, function = (
                f"call_{number}_{place}",
                {"type": "function_call", "name": "shell"},
            )
            custom = {
                "type": "custom_tool_call",
                "name": "apply_patch",
                "input": draw(WORDS),
            }
            arguments = json.dumps(draw(ARGUMENTS))
            call = draw(st.sampled_from([{**function, "arguments": arguments}, custom]))
            called.append({**call, "call_id": call_id})
        items += [said(draw(WORDS)), *called]
        items += [answer(call, f"{n} {draw(WORDS)}") for n, call in enumerate(called)]
        items.append(told("user", text_part(draw(WORDS))))
    return items


@given(plain_turns())
@settings(deadline=None, max_examples=EXAMPLES)
def test_messages_of_a_history_are_sent_in_each_api(items: list[JsonObject]) -> None:
    expected = carried(of_items(items))
    history = encoded(items)
    first, *rest = sent(make("chat"), history)["messages"][1:]
    assert first["content"].startswith("go\n\nfirst")
    merged = {"messages": [{}, {}, {**first, "content": first["content"][4:]}, *rest]}
    assert carried(of_chat(merged)) == expected
    assert carried(of_anthropic(sent(make("anthropic"), history))) == expected


@st.composite
def answers(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Reasoning, a text and calls, as (kind, name, content)."""
    found: list[tuple[str, str, str]] = []
    if draw(st.booleans()):
        found.append(("reasoning", "", "R" + draw(WORDS)))
    if draw(st.booleans()):
        found.append(("message", "", "T" + draw(WORDS)))
    function = st.tuples(
        st.just("function_call"), st.just("shell"), ARGUMENTS.map(json.dumps)
    )
    custom = st.tuples(st.just("custom_tool_call"), st.just("apply_patch"), WORDS)
    called = st.lists(
        st.one_of(function, custom), min_size=0 if found else 1, max_size=3
    )
    return [*found, *draw(called)]


def events(entries: Sequence[tuple[str, str, str]]) -> list[Event]:
    made: list[Event] = [ev_created()]
    for index, (kind, name, text) in enumerate(entries):
        match kind:
            case "reasoning":
                made += ev_reasoning(text, index=index)
            case "message":
                made += ev_message(text, index=index, pieces=3)
            case "function_call":
                made += ev_function_call(f"call_{index}", name, text, index=index)
            case _:
                made += ev_custom_tool_call(f"call_{index}", name, text, index=index)
    return [*made, ev_completed()]


def in_short(item: ResponseItem) -> tuple[str, str, str]:
    match item:
        case Message():
            return "message", "", item.text
        case Reasoning():
            return "reasoning", "", "".join(part.text for part in item.summary)
        case FunctionCall():
            return "function_call", item.name, item.arguments
        case CustomToolCall():
            return "custom_tool_call", item.name, item.input
        case _:
            raise AssertionError(item)


@pytest.mark.parametrize("api", ["chat", "anthropic"])
@given(entries=answers())
@settings(deadline=None, max_examples=EXAMPLES)
def test_an_answer_comes_back_as_the_items_that_it_was(
    api: str, entries: list[tuple[str, str, str]]
) -> None:
    response = events(entries)
    stream = (
        ChatStream({}) if api == "chat" else AnthropicStream({}, response, secret="s")
    )
    raw = b"".join(stream.render(event) for event in response)
    watched = (OutputTextDelta, ReasoningDelta)
    prompt = Prompt(model="m", input=[], cache_key="t", tools=TOOLS)
    decoder = make(api).decoder(prompt)
    read = [
        event
        for block in raw.decode().split("\n\n")
        if (data := block.partition("data: ")[2])
        for event in decoder.feed(data)
    ]
    read += decoder.end()
    items = [event.item for event in read if isinstance(event, OutputItemDone)]
    assert [in_short(item) for item in items] == entries
    shown = [event.delta for event in read if isinstance(event, watched)]
    expected = [text for kind, _, text in entries if kind in {"reasoning", "message"}]
    assert "".join(shown) == "".join(expected)
