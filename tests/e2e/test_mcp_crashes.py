"""An MCP server that is killed between two calls of a session, through the real program."""

import json
import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.testing import RecordedRequest, ev_completed, ev_function_call, ev_message
from tests.support.lifeline import Lifeline
from tests.support.mcp import odd_command, peer_program
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


def run_and_kill(
    place: Workplace,
    argv: Sequence[str],
    call: tuple[str, dict[str, Any]],
    *,
    starts: int,
) -> tuple[Outcome, list[Any]]:
    """Have the model call a tool three times, and kill its server before the second and the third time.

    Args:
        starts: how often the server can be started; from then on it exits with 7.

    Returns:
        The outcome, and the answers to the calls.
    """
    started = place.home / "started"
    name, arguments = call

    def calls(number: int) -> list[Any]:
        item = ev_function_call(f"call_{number}", f"mcp__killed__{name}", arguments)
        return [*item, ev_completed()]

    def first(_: RecordedRequest) -> list[Any]:
        line.wait_until_up()
        return calls(0)

    def kill_and_call(request: RecordedRequest) -> list[Any]:
        processes = started.read_text(encoding="utf-8").split()
        if len(processes) <= starts:
            os.kill(int(processes[-1]), signal.SIGKILL)
            # It is started again before anything is asked of it.
            line.wait_until_up()
        return calls(sum(item["type"] == "function_call" for item in request.input))

    script = [first, kill_and_call, kill_and_call, DONE]
    with Lifeline(place.home) as line, ScriptedServer(script) as server:
        begin = f'echo $$ >>"$0"; {line.hold} [ $(wc -l <"$0") -le {starts} ] || exit 7; exec "$@"'
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                "[mcp_servers.killed]\ncommand = 'sh'\n"
                f"args = {json.dumps(['-c', begin, str(started), *argv])}\n"
                "startup_timeout_sec = 120\ndefault_tools_approval_mode = 'approve'\n"
            )
        outcome = place.rerun()
        assert outcome.code == 0, outcome
        last = server.requests[-1]
        return outcome, [last.output(f"call_{number}") for number in range(3)]


def test_the_calls_after_a_kill_work(place: Workplace) -> None:
    argv = odd_command("echo", place.home / "messages")
    outcome, answers = run_and_kill(place, argv, ("echo", {"a": 1}), starts=3)
    assert (outcome.messages, outcome.err) == (["done"], "")
    assert [item["type"] for item in outcome.items] == ["mcp_tool_call"] * 3 + [
        "agent_message"
    ]
    assert [answer[1]["text"] for answer in answers] == ['{"a": 1}'] * 3


def test_a_server_that_does_not_come_back_is_told_to_the_model_and_the_user(
    place: Workplace,
) -> None:
    argv = odd_command("echo", place.home / "messages")
    outcome, answers = run_and_kill(place, argv, ("echo", {}), starts=1)
    assert (outcome.messages, outcome.err) == (["done"], "")
    sentence, hint = (
        "MCP server `killed` exited with code 7",
        "`codex-py mcp test killed` says more.",
    )
    errors = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert errors == [f"{sentence}\n{hint}"]
    assert answers[0][1]["text"] == "{}"
    assert [answer.count(sentence) for answer in answers[1:]] == [1, 1]
    results = [item for item in outcome.items if item["type"] == "mcp_tool_call"]
    assert [item["status"] for item in results] == ["completed", "failed", "failed"]


@pytest.mark.parametrize(
    ("program", "call", "expected"),
    [
        ("mcp-server-time", ("get_current_time", {"timezone": "UTC"}), "is_dst"),
        ("mcp-server-everything", ("echo", {"message": "hi"}), "Echo: hi"),
    ],
)
def test_the_calls_after_a_kill_of_a_server_of_others_work(
    place: Workplace, program: str, call: tuple[str, dict[str, Any]], expected: str
) -> None:
    outcome, answers = run_and_kill(place, [peer_program(program)], call, starts=3)
    assert outcome.messages == ["done"]
    assert [expected in json.dumps(answer) for answer in answers] == [True] * 3
