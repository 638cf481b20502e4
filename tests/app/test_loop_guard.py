"""Tests `app/features/loop_guard.py`."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.agents import AgentServer, calls, says, waits
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

DONE = [ev_created(), *ev_message("done"), ev_completed()]


def response(number: int, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    events = [
        event
        for index, (name, arguments) in enumerate(calls)
        for event in ev_function_call(
            f"c{number}_{index}", name, arguments, index=index
        )
    ]
    return [ev_created(), *events, ev_completed()]


def command(text: str) -> tuple[str, dict[str, Any]]:
    return "exec_command", {"cmd": text}


def told(server: ScriptedServer) -> list[int]:
    """The requests, from 1, by which the model had been told so often."""
    return [str(request.input).count("<loop_guard>") for request in server.requests]


def run(
    place: Workplace, replies: list[Any], *arguments: str
) -> tuple[Outcome, list[int]]:
    with ScriptedServer([*replies, DONE]) as server:
        return place.run(server, *arguments, "go"), told(server)


def test_the_same_call_is_told_after_three_times_and_ends_the_turn_after_ten(
    place: Workplace,
) -> None:
    # Its output differs in the time that it took, and in an id.
    outcome, notes = run(place, [response(n, command("echo hi")) for n in range(12)])
    assert (outcome.code, outcome.error["code"]) == (53, "loop")
    assert notes == [0, 0, 0, *[1] * 7]
    assert len(outcome.items) == 10
    # The session goes on.
    with ScriptedServer([DONE], check_prefix=False) as server:
        place.configure(server)
        assert place.rerun("resume", "--last", "another way").code == 0


def test_it_can_be_switched_off(place: Workplace) -> None:
    replies = [response(n, command("echo hi")) for n in range(12)]
    outcome, notes = run(place, replies, "-c", "budget.loop_guard=false")
    assert (outcome.code, sum(notes)) == (0, 0)


def test_nine_times_are_allowed(place: Workplace) -> None:
    outcome, _ = run(place, [response(n, command("echo hi")) for n in range(9)])
    assert outcome.code == 0


@pytest.mark.parametrize(
    "responses",
    [
        [[command(f"echo hi #{n}")] for n in range(12)],
        [[command("wc -l < log; echo >> log")]] * 12,
        [[command("echo hi"), command(f"echo {n}")] for n in range(12)],
        [[command(f"echo {n % 2}")] for n in range(12)],
    ],
    ids=["arguments", "output", "beside", "in turn"],
)
def test_calls_that_differ_are_no_loop(
    place: Workplace, responses: list[list[tuple[str, dict[str, Any]]]]
) -> None:
    (place.cwd / "log").touch()
    outcome, notes = run(
        place, [response(n, *each) for n, each in enumerate(responses)]
    )
    assert (outcome.code, sum(notes)) == (0, 0)


def test_waiting_is_no_loop_while_there_is_something_to_wait_for(
    place: Workplace,
) -> None:
    def wait(number: int) -> Callable[[RecordedRequest], Any]:
        def reply(request: RecordedRequest) -> Any:
            found = re.search(r"session ID (\d+)", request.output("c0_0"))
            assert found is not None
            arguments = {
                "session_id": int(found[1]),
                "chars": "x",
                "yield_time_ms": 250,
            }
            return response(number, ("write_stdin", arguments))

        return reply

    start = response(
        0,
        (
            "exec_command",
            {"cmd": "stty -echo; sleep 60", "tty": True, "yield_time_ms": 250},
        ),
    )
    _, notes = run(place, [start, *(wait(n) for n in range(1, 4))])
    assert sum(notes) == 0
    dead = {"session_id": 1, "chars": ""}
    outcome, _ = run(place, [response(n, ("write_stdin", dead)) for n in range(12)])
    assert outcome.error["code"] == "loop"


def test_calls_side_by_side_are_compared_together(place: Workplace) -> None:
    both = [command("echo one"), command("echo two")]
    outcome, notes = run(place, [response(n, *both) for n in range(12)])
    assert (outcome.error["code"], len(notes)) == ("loop", 10)
    outcome, notes = run(place, [response(1, *[command("echo one")] * 12)])
    assert (outcome.code, sum(notes)) == (0, 0)


def test_a_call_that_fails_or_is_unknown_counts_too(place: Workplace) -> None:
    outcome, _ = run(place, [response(n, ("no_such_tool", {})) for n in range(12)])
    assert outcome.error["code"] == "loop"


def test_a_subagent_that_repeats_itself_is_stopped_alone(place: Workplace) -> None:
    server = AgentServer(
        [calls("spawn_agent", message="look"), waits(), says("done")],
        [response(n, command("echo hi")) for n in range(12)],
    )
    with server:
        outcome = place.run(server, "go")
    assert outcome.code == 0
    assert "10 times in a row" in str(server.of_parent()[-1].input)
