"""Calls with broken arguments that a strict server refuses in the history, from outside."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import ev_created
from tests.support.program import Workplace
from tests.support.wires import AnyWire

DONE = [ev_created(), *ev_message("done"), ev_completed()]
WIRES = ("responses", "functions")
BROKEN = (
    '{"cmd": "echo',
    "[]",
    "null",
    "not json",
    '{"cmd": NaN}',
    '{"a":1}{"b":2}',
    "7",
)
REFUSALS = (
    (400, "Invalid 'input[2].arguments': the arguments of a call must be valid JSON"),
    (400, "Unterminated string starting at: line 1 column 9 (char 8)"),
    (422, "Expecting value: line 1 column 1 (char 0)"),
    (
        400,
        'The "function.arguments" parameter of the code model must be in JSON format.',
    ),
    (
        500,
        "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
    ),
    (400, "Can only get item pairs from a mapping."),
    (400, "invalid character '}' looking for beginning of value"),
    (400, "Extra data: line 1 column 8 (char 7)"),
)


def calls(arguments: str, call_id: str = "c1") -> list[Any]:
    call = ev_function_call(call_id, "exec_command", arguments)
    return [ev_created(), *call, ev_completed()]


def strict(message: str, status: int = 400) -> Callable[[RecordedRequest], Any]:
    """A server that refuses a history with arguments that are no JSON object."""

    def answer(request: RecordedRequest) -> Any:
        if all(map(is_object, sent_arguments(request))):
            return DONE
        error = {"message": message, "type": "invalid_request_error"}
        return Reply(status=status, body=json.dumps({"error": error}).encode())

    return answer


def sent_arguments(request: RecordedRequest) -> list[str]:
    items = request.body["input"]
    return [item["arguments"] for item in items if item["type"] == "function_call"]


def refusals(wires: AnyWire) -> list[str]:
    return [text for text in wires.warnings if text.startswith("provider")]


def is_object(arguments: str) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return isinstance(json.loads(arguments, parse_constant=refuse), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("arguments", BROKEN)
def test_refused_arguments_are_sent_as_an_object(
    place: Workplace, wire: str, arguments: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go")
        await session.run_turn("again")

    answer = strict(REFUSALS[0][1])
    with AnyWire(place, check_prefix=False) as wires:
        wires.session(wire, work, calls(arguments), answer, answer, answer)
        assert [e["type"] for e in wires.events].count("turn.completed") == 2
        sent = [sent_arguments(request) for request in wires.requests]
        assert sent[:2] == [[], [arguments]]
        assert [json.loads(each) for each in sent[2]] == [{"_raw": arguments}]
        assert sent[3] == sent[2]
        (warning,) = refusals(wires)
        assert "refuses the arguments of a call" in warning
        kept = [i for i in wires.history if i["type"] == "function_call"]
        assert [item["arguments"] for item in kept] == [arguments]


@pytest.mark.parametrize(("status", "message"), REFUSALS)
def test_a_refusal_of_arguments_is_known_by_its_words(
    place: Workplace, status: int, message: str
) -> None:
    answer = strict(message, status)
    with AnyWire(place, check_prefix=False) as wires:
        wires.prompt("responses", "go", calls(BROKEN[0]), answer, answer)
        assert wires.last["type"] == "turn.completed"


def test_a_later_call_with_broken_arguments_is_not_refused_again(
    place: Workplace,
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go")
        await session.run_turn("again")

    answer = strict(REFUSALS[0][1])
    with AnyWire(place, check_prefix=False) as wires:
        more = calls(BROKEN[1], "c2")
        wires.session("responses", work, calls(BROKEN[0]), answer, answer, more, answer)
        assert wires.last["type"] == "turn.completed"
        assert len(wires.requests) == 5
        assert len(refusals(wires)) == 1


def test_a_session_with_broken_arguments_on_file_is_resumed(place: Workplace) -> None:
    answer = strict(REFUSALS[0][1])
    with AnyWire(place, check_prefix=False) as wires:
        thread = wires.prompt("responses", "go", calls(BROKEN[0]), DONE)
        wires.prompt("responses", "again", answer, answer, resume=thread)
        assert wires.last["type"] == "turn.completed"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ('{"cmd": "true"}', 400, REFUSALS[0][1]),
        (BROKEN[0], 401, "the arguments of your key are wrong"),
        (BROKEN[0], 400, "temperature must be below 2"),
    ],
)
def test_other_refusals_change_no_arguments(
    place: Workplace, arguments: str, status: int, message: str
) -> None:
    error = json.dumps({"error": {"message": message}}).encode()
    with AnyWire(place) as wires:
        refusal = Reply(status=status, body=error)
        wires.prompt("responses", "go", calls(arguments), refusal)
        assert wires.last["type"] == "turn.failed"
        assert len(wires.requests) == 2


def test_a_server_that_goes_on_refusing_arguments_ends_the_turn(
    place: Workplace,
) -> None:
    error = json.dumps({"error": {"message": REFUSALS[0][1]}}).encode()
    refusal = Reply(status=400, body=error)
    with AnyWire(place, check_prefix=False) as wires:
        wires.prompt("responses", "go", calls(BROKEN[0]), refusal, refusal)
        assert wires.last["type"] == "turn.failed"
        assert len(wires.requests) == 3
