"""Tools that a server does not accept, from outside.

Tests `app/features/tool_refusals.py`.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.errors import CodexError
from codex_py.protocol.extension import Extension, OfferedTool, Thread
from codex_py.protocol.tools import FunctionSpec
from codex_py.testing import RecordedRequest, Reply, ev_completed, ev_message
from codex_py.testing.events import ev_created
from tests.support.program import Workplace
from tests.support.wires import AnyWire

DONE = [ev_created(), *ev_message("done"), ev_completed()]
NAMES = ("aa", "bb", "ee", "cc", "dd")
BAD = {"type": "object", "properties": {"bad": {"type": "array"}}}
GOOD = {"type": "object", "properties": {"good": {"type": "string"}}}
NATIVE = ("responses", "functions", "chat", "anthropic")

Says = Callable[[int], object]


def feature(_: Thread) -> Extension:
    """Tools of a package: `ee` has a schema that servers do not like."""
    specs = [FunctionSpec(name, "", BAD if name == "ee" else GOOD) for name in NAMES]
    return Extension(tools=[OfferedTool(spec.name, _never, spec) for spec in specs])


def _never() -> Any:
    raise AssertionError


def tools_of(request: RecordedRequest) -> list[dict[str, Any]]:
    return [tool.get("function", tool) for tool in request.fields["tools"]]


def foreign(request: RecordedRequest) -> dict[str, Any]:
    """The schemas of the package's tools as they were sent."""
    sent = {tool.get("name"): tool for tool in tools_of(request)}
    return {
        name: sent[name].get("parameters") or sent[name].get("input_schema")
        for name in NAMES
        if name in sent
    }


def strict_server(says: Says, status: int = 400) -> Callable[[RecordedRequest], Any]:
    """A server that refuses every request with the bad schema."""

    def answer(request: RecordedRequest) -> Any:
        for place, tool in enumerate(tools_of(request)):
            schema = tool.get("parameters") or tool.get("input_schema")
            if schema == BAD:
                return Reply(status=status, body=json.dumps(says(place)).encode())
        return DONE

    return answer


def error(message: str) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error"}}


INDEXED: Sequence[Says] = (
    lambda n: error(f"tools.{n}.custom.input_schema: JSON schema is invalid."),
    lambda n: error(
        f"Invalid 'tools[{n}].function.parameters': array schema missing items"
    ),
    lambda _: error("Invalid schema for function 'ee': array schema missing items"),
    lambda n: error(
        f"litellm.BadRequestError: {json.dumps(error(f'tools.{n}.x: bad'))}"
    ),
    lambda n: {
        "detail": [{"loc": ["body", "tools", n, "function"], "msg": "Invalid schema"}]
    },
    lambda n: {
        "error": {"message": "Invalid schema", "param": f"tools[{n}].parameters"}
    },
    lambda n: {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {
                "raw": json.dumps(error(f"tools.{n}.custom: schema is invalid"))
            },
        }
    },
)
CASES = [
    (wire, number)
    for wire in NATIVE
    for number in range(len(INDEXED))
    # The scripted server gives a failure of Messages its own envelope, which has the message alone.
    if wire != "anthropic" or number < 4
]


@pytest.mark.parametrize(("wire", "number"), CASES)
def test_the_tool_that_is_named_is_changed_and_no_other(
    place: Workplace, wire: str, number: int
) -> None:
    answer = strict_server(INDEXED[number])
    with AnyWire(place) as wires:
        wires.prompt(wire, "go", answer, answer, extensions=[feature])
        first, second = wires.requests
        assert wires.last["type"] == "turn.completed"
        before, after = foreign(first), foreign(second)
        assert after == {**before, "ee": {"type": "object", "properties": {}}}
        assert [w.partition(":")[0] for w in wires.warnings] == [
            f"provider {wire} refuses the tool `ee`, its schema is now part of its description"
        ]


UNNAMED = (
    error(
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema"
    ),
    error('JSON schema conversion failed:\nUnrecognized schema: {"type":null}'),
    error("Invalid JSON schema"),
    [
        error(
            "* GenerateContentRequest.function_declarations: parameters.items: missing field."
        )
    ],
)


@pytest.mark.parametrize("wire", NATIVE)
@pytest.mark.parametrize("body", UNNAMED)
def test_without_a_named_tool_all_foreign_schemas_become_text_once(
    place: Workplace, wire: str, body: object
) -> None:
    answer = strict_server(lambda _: body)
    with AnyWire(place) as wires:
        wires.prompt(wire, "go", answer, answer, extensions=[feature])
        first, second = wires.requests
        assert wires.last["type"] == "turn.completed"
        assert set(map(str, foreign(second).values())) == {
            str({"type": "object", "properties": {}})
        }
        own = [
            [t for t in tools_of(r) if t.get("name") not in NAMES]
            for r in (first, second)
        ]
        assert own[0] == own[1]
        assert len(wires.warnings) == 1


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_goes_on_refusing_schemas_ends_the_turn(
    place: Workplace, status: int
) -> None:
    reply = Reply(status=status, body=json.dumps(UNNAMED[1]).encode())
    with AnyWire(place) as wires:
        wires.prompt("chat", "go", reply, reply, extensions=[feature])
        assert len(wires.requests) == 2
        assert wires.last["type"] == "turn.failed"


def test_the_words_about_another_field_change_no_tool(place: Workplace) -> None:
    reply = Reply(
        status=400, body=json.dumps(error("temperature: no such value")).encode()
    )
    with AnyWire(place) as wires:
        wires.prompt("chat", "go", reply, extensions=[feature])
        assert len(wires.requests) == 1


MANY = ("aa", *(f"t{number:02}" for number in range(15)))


def many_tools(_: Thread) -> Extension:
    """`aa` has a schema that servers do not like, and the fifteen others have none."""
    specs = [FunctionSpec(name, "", BAD if name == "aa" else GOOD) for name in MANY]
    return Extension(tools=[OfferedTool(spec.name, _never, spec) for spec in specs])


MISPLACED: Sequence[Says] = (
    lambda n: error(f"tools.{n + 1}.custom.input_schema: JSON schema is invalid"),
    lambda n: error(f"Invalid 'tools[{n + 1}].function.parameters': no items"),
    lambda n: error(f"tools.{n + 3}.custom.input_schema: JSON schema is invalid"),
    lambda n: error(f"Invalid schema of tool number {n + 1}"),
    lambda _: error("tools[0].function.parameters: array schema missing items"),
    lambda _: error("GenerateContentRequest.tools[0]: array items missing field"),
    lambda n: error(f"tools.{n + 1}: not acceptable"),
)


@pytest.mark.parametrize("wire", NATIVE)
@pytest.mark.parametrize("says", MISPLACED)
def test_a_place_that_points_to_a_healthy_tool_costs_no_tool(
    place: Workplace, wire: str, says: Says
) -> None:
    answer = strict_server(says)
    with AnyWire(place) as wires:
        wires.prompt(wire, "go", *[answer] * 4, extensions=[many_tools])
        assert wires.last["type"] == "turn.completed"
        assert len(wires.requests) <= 4
        first, last = wires.requests[0], wires.requests[-1]
        sent = [[tool.get("name") for tool in tools_of(r)] for r in (first, last)]
        assert sent[0] == sent[1]
        own = [
            [tool for tool in tools_of(request) if tool.get("name") not in MANY]
            for request in (first, last)
        ]
        assert own[0] == own[1]


@pytest.mark.parametrize("says", [*MISPLACED, *INDEXED[:2]])
def test_a_server_that_refuses_every_tool_is_asked_a_few_times_only(
    place: Workplace, says: Says
) -> None:
    reply = Reply(status=400, body=json.dumps(says(14)).encode())
    with AnyWire(place) as wires:
        wires.prompt("chat", "go", *[reply] * 12, extensions=[many_tools])
        assert len(wires.requests) <= 10
        assert wires.last["type"] == "turn.failed"


def test_a_tool_whose_name_is_refused_at_its_place_is_left_out(
    place: Workplace,
) -> None:
    def answer(request: RecordedRequest) -> Any:
        for number, tool in enumerate(tools_of(request)):
            if tool.get("name") == "ee":
                said = error(f"Invalid 'tools[{number}].function.name'")
                return Reply(status=400, body=json.dumps(said).encode())
        return DONE

    with AnyWire(place) as wires:
        wires.prompt("chat", "go", *[answer] * 3, extensions=[feature])
        assert wires.last["type"] == "turn.completed"
        assert set(foreign(wires.requests[-1])) == {*NAMES} - {"ee"}
        assert list(foreign(wires.requests[-1]).values()) == [GOOD] * 4


NAMING_WORDS = (
    "Tool '{}' is not supported",
    "'{}' is a reserved tool name",
    "Function name {} is not allowed",
    "tools: the name `{}` is already in use by the provider",
    "Invalid tool: {}: unknown builtin",
)


def refuses_name(name: str, words: str) -> Callable[[RecordedRequest], Any]:
    """A server that refuses every request with a tool of this name."""

    def answer(request: RecordedRequest) -> Any:
        if any(tool.get("name") == name for tool in tools_of(request)):
            body = json.dumps(error(words.format(name))).encode()
            return Reply(status=400, body=body)
        return DONE

    return answer


@pytest.mark.parametrize("words", NAMING_WORDS)
@pytest.mark.parametrize("wire", NATIVE)
def test_an_own_tool_that_is_refused_by_its_name_is_left_out(
    place: Workplace, wire: str, words: str
) -> None:
    answer = refuses_name("update_plan", words)
    with AnyWire(place) as wires:
        wires.prompt(wire, "go", *[answer] * 3)
        assert wires.last["type"] == "turn.completed"
        first, *_, last = wires.requests
        names = [[tool.get("name") for tool in tools_of(r)] for r in (first, last)]
        assert names[1] == [name for name in names[0] if name != "update_plan"]
        assert "it is left out" in wires.warnings[-1]


@pytest.mark.parametrize("name", ["exec_command", "write_stdin"])
def test_an_agent_without_commands_is_none(place: Workplace, name: str) -> None:
    answer = refuses_name(name, NAMING_WORDS[0])
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", *[answer] * 3)
        assert len(wires.requests) == 2
        assert wires.last["type"] == "turn.failed"
        assert name in wires.last["error"]["message"]


UNKNOWN_WORDS = (
    "Object fields require at least one of: 'properties' or 'anyOf' with a list of possible"
    " properties. (parameter: tools)",
    "参数 tools 的 schema 不合法",
    "参数tools的schema不合法",
    "'type' must be one of string, number in function definition",
    "tool definition rejected: array needs items",
    "function: 'enum' of a parameter has to be a list",
    "This tool has anyOf at its top, which we do not take",
)


@pytest.mark.parametrize("words", UNKNOWN_WORDS)
def test_unknown_words_about_the_schema_of_a_tool_are_understood(
    place: Workplace, words: str
) -> None:
    answer = strict_server(lambda _: error(words))
    with AnyWire(place) as wires:
        wires.prompt("chat", "go", answer, answer, extensions=[feature])
        assert wires.last["type"] == "turn.completed"
        assert len(wires.requests) == 2
        assert set(foreign(wires.requests[-1])) == {*NAMES}


@pytest.mark.parametrize(
    "words",
    [
        "messages[2].tool_calls[0].function.arguments: expected an object with fields",
        "messages with role 'tool' need a 'type' field",
        "tool_choice: object with properties expected",
        "temperature has to be a number",
        "the rate limit of tools with schemas is reached",
    ],
)
def test_words_about_a_call_or_another_field_change_no_schema(
    place: Workplace, words: str
) -> None:
    reply = Reply(status=400, body=json.dumps(error(words)).encode())
    with AnyWire(place) as wires:
        wires.prompt("chat", "go", reply, extensions=[feature])
        assert len(wires.requests) == 1


def test_a_guess_that_does_not_help_is_taken_back(place: Workplace) -> None:
    async def work(session: Session) -> None:
        with suppress(CodexError):
            await session.run_turn("go")
        await session.run_turn("again")

    reply = Reply(status=400, body=json.dumps(error(UNKNOWN_WORDS[5])).encode())
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, reply, reply, DONE, extensions=[feature])
        assert wires.last["type"] == "turn.completed"
        assert foreign(wires.requests[-1]) == foreign(wires.requests[0])
