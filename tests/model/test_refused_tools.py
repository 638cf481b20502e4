"""A server names the tool that it does not accept, by its name or by its place in what it got."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from codex_py.app.features.tool_refusals import ToolRefusals
from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.chat.wire import ChatWire
from codex_py.model.client import Wire
from codex_py.model.failures import http_failure
from codex_py.model.profile import Profile
from codex_py.model.refused_tools import refused_tool
from codex_py.model.responses.wire import ResponsesWire
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.stream import Prompt
from codex_py.protocol.tools import (
    AGENTS_NAMESPACE,
    FreeformSpec,
    FunctionSpec,
    HostedSpec,
    ToolSpec,
)
from codex_py.tools.offered import own_spec

Sayings = Mapping[str, Callable[[str, str, int], str]]

WIRES: Mapping[str, Callable[[], Wire]] = {
    "responses": ResponsesWire,
    "flat responses": lambda: ResponsesWire(profile=Profile(tool_namespaces=False)),
    "functions": lambda: ResponsesWire(profile=Profile(function_tools_only=True)),
    "chat": ChatWire,
    "anthropic": AnthropicWire,
}

SAYINGS: Sayings = {
    "name": lambda name, _, __: (
        f"Invalid schema for function '{name}': array schema missing items"
    ),
    "brackets": lambda _, at, __: (
        f"Invalid 'tools{at}.function.parameters': array schema missing items"
    ),
    "dots": lambda _, at, __: (
        f"tools{_dotted(at)}.custom.input_schema: JSON schema is invalid"
    ),
    "param": lambda _, at, __: "Invalid schema. param: tools" + at + ".parameters",
    "gemini": lambda _, __, n: (
        f"* GenerateContentRequest.tools[0].function_declarations[{n}].parameters.items: missing field."
    ),
    "aws": lambda _, at, __: (
        "Value at 'toolConfig.tools"
        + _from_one(at)
        + ".member.toolSpec.inputSchema' is invalid"
    ),
    "path": lambda _, at, __: (
        "tools"
        + _dotted(at).replace(".", " -> ")
        + " -> function -> parameters: invalid schema"
    ),
}
"""How servers name a tool: by its name, its place in the list, or its place among the functions."""


def _dotted(at: str) -> str:
    return at.replace("[", ".").replace("]", "")


def _from_one(at: str) -> str:
    first, _, rest = _dotted(at).removeprefix(".").partition(".")
    return f".{int(first) + 1}" + (f".{rest}" if rest else "")


def good(name: str) -> FunctionSpec:
    return FunctionSpec(
        name, "", {"type": "object", "properties": {"a": {"type": "string"}}}
    )


def bad(name: str) -> FunctionSpec:
    return FunctionSpec(
        name, "", {"type": "object", "properties": {"bad": {"type": "array"}}}
    )


AGENT_SPECS: Sequence[ToolSpec] = [
    FunctionSpec(name, "", {"type": "object", "properties": {}}, AGENTS_NAMESPACE)
    for name in ("spawn_agent", "send_input", "wait_agent")
]
OWN: Sequence[Sequence[ToolSpec]] = [
    [own_spec("exec_command")],
    [own_spec("update_plan"), own_spec("view_image")],
    [FreeformSpec("apply_patch", "", "start: x")],
    [HostedSpec("web_search")],
    AGENT_SPECS,
]


def mixtures() -> Iterator[tuple[Sequence[ToolSpec], str]]:
    """Tools in any order, one of them bad, and the name of that one."""
    for seed in range(12):
        random = Random(seed)
        count = random.randint(1, 30)
        place = random.randrange(count)
        names = [f"mcp__s{n % 3}__t{n}" for n in range(count)]
        groups = [
            [bad(name) if n == place else good(name)] for n, name in enumerate(names)
        ]
        groups += [
            list(group) for group in random.sample(OWN, random.randint(0, len(OWN)))
        ]
        random.shuffle(groups)
        yield [spec for group in groups for spec in group], names[place]


def sent_tools(body: bytes) -> list[dict[str, Any]]:
    return json.loads(body).get("tools", [])


def refusal(
    body: bytes, says: Callable[[str, str, int], str], offending: str
) -> str | None:
    """What a server that does not like a tool says of a request; None if it takes it."""
    functions = 0
    for place, entry in enumerate(sent_tools(body)):
        inner = entry.get("tools")
        for number, tool in enumerate(inner or [entry]):
            about = tool.get("function", tool)
            name = about.get("name")
            at = f"[{place}].tools[{number}]" if inner else f"[{place}]"
            if name and offending in json.dumps(about):
                return says(name, at, functions)
            functions += name is not None
    return None


def ends_with(
    wire: Wire,
    tools: Sequence[ToolSpec],
    says: Callable[[str, str, int], str],
    offending: str,
) -> tuple[int, Sequence[ToolSpec]]:
    """How many requests it takes until the server is content, and what it gets then."""
    refusals, count = ToolRefusals(), 0
    while True:
        count += 1
        offered = refusals.offered(tools)
        body = wire.body(
            Prompt("m", [message("user", [input_text("go")])], "t", tools=offered)
        )
        words = refusal(body, says, offending)
        if words is None:
            return count, offered
        error = http_failure(
            400, {}, json.dumps({"error": {"message": words}}).encode(), "http://x"
        )
        error.refused_tool = refused_tool(error.words, body)
        assert refusals.change_named(error, tools), words


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize("name", WIRES)
def test_the_one_bad_tool_is_changed_and_no_healthy_one(name: str, saying: str) -> None:
    for tools, culprit in mixtures():
        count, offered = ends_with(WIRES[name](), tools, SAYINGS[saying], '"bad":')
        assert count == 2
        assert [spec.name for spec in offered] == [spec.name for spec in tools]
        changed = [
            old.name for old, new in zip(tools, offered, strict=True) if old != new
        ]
        assert changed == [culprit]


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize("name", WIRES)
def test_a_tool_that_is_refused_in_any_form_is_left_out_alone(
    name: str, saying: str
) -> None:
    for tools, culprit in mixtures():
        count, offered = ends_with(
            WIRES[name](), tools, SAYINGS[saying], f'"{culprit}"'
        )
        assert count == 3
        assert [spec for spec in tools if spec.name != culprit] == list(offered)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Invalid schema for function 'get': no", "get"),
        ("tools.0.custom.name: bad", "get"),
        ("body.tools.1.function.parameters: bad", "mcp__a__b"),
        ("the tool at index 1 is invalid", "mcp__a__b"),
        ("Tool 'mcp__a__b' has a schema that is not supported", "mcp__a__b"),
        ("tool definition mcp__a__b-c is bad", "mcp__a__b-c"),
        ("tools[99].parameters: bad", None),
        ("you get nothing: function calls are bad", None),
        ("Unknown parameter: 'tools'", None),
        ("no word about them", None),
    ],
)
def test_a_tool_is_named_by_whole_words_alone(words: str, name: str | None) -> None:
    tools = [{"name": "get"}, {"name": "mcp__a__b"}, {"name": "mcp__a__b-c"}]
    body = json.dumps({"tools": tools}).encode()
    assert refused_tool(words, body) == name


RESPONSES_CALL = {
    "type": "function_call",
    "name": "get",
    "arguments": '{"a": {"b": [1]}}',
    "call_id": "call_1",
}
CHAT_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get", "arguments": "{}"},
}
CHAT_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
MESSAGES_CALL = {"type": "tool_use", "id": "1", "name": "get", "input": {"a": "tool"}}
MCP_CALL = {**RESPONSES_CALL, "name": "mcp__a__b"}
QUOTED = (
    RESPONSES_CALL,
    CHAT_CALL,
    CHAT_MESSAGE,
    MESSAGES_CALL,
    MCP_CALL,
    {"type": "custom_tool_call", "name": "get", "input": "x"},
)


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_call_that_is_quoted_is_no_refusal_of_its_tool(quoted: object) -> None:
    tools = [{"name": "get"}, {"name": "mcp__a__b"}, {"name": "mcp__a__b-c"}]
    body = json.dumps({"tools": tools}).encode()
    text = json.dumps(quoted)
    for words in (
        f"the input does not begin with the last one: item 4 was {quoted!r}, is {{}}",
        f"Invalid input: {text}",
        f"Input should be a valid string, got {text} at messages[3]",
        f"Conversation is invalid: {text[: len(text) - 4]}",
        json.dumps({"error": {"message": f"cannot read {text}"}}),
        f"validation error in [{text}, {text}]",
        f"two at once: {quoted!r} and {text}",
    ):
        assert refused_tool(words, body) is None, words


@pytest.mark.parametrize(
    "words",
    [
        "Function call 'get' has invalid arguments",
        "The tool call `get` has no output",
        "No tool output found for function call mcp__a__b",
        "messages.5.content.0.tool_use.name: 'get' is too short",
        "missing tool_result for `mcp__a__b`",
        "the custom_tool_call_output of 'get' is empty",
        "unexpected item 'get'",
        "'mcp__a__b' is unexpected here",
    ],
)
def test_words_about_a_call_are_no_refusal_of_its_tool(words: str) -> None:
    tools = [{"name": "get"}, {"name": "mcp__a__b"}, {"name": "mcp__a__b-c"}]
    body = json.dumps({"tools": tools}).encode()
    assert refused_tool(words, body) is None


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "get", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "get", "parameters": {}}},
        {"name": "get", "description": "", "input_schema": {"properties": {}}},
    ],
)
def test_a_tool_that_is_quoted_is_refused(tool: object) -> None:
    body = json.dumps({"tools": [{"name": "put"}, {"name": "get"}]}).encode()
    for words in (
        f"invalid tool {tool!r}",
        f"cannot read {json.dumps(tool)}: schema error",
        f"a tool call failed before, and now the function 'get' is invalid: {RESPONSES_CALL}",
        json.dumps({"error": {"message": f"schema: {tool!r}"}}),
    ):
        assert refused_tool(words, body) == "get", words


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"tools":7}', b'{"tools":[1,{}]}']
)
def test_any_request_is_looked_into(body: bytes) -> None:
    assert refused_tool("tools[0] and tools[1].tools[2]", body) is None
