"""What MCP servers ask the user, and how long the user waits for them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.questions import choices, parsed, problem
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.frontends.tui.terminals import Start
from tests.support.mcp import odd_command
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("All done."), ev_completed()]
ASKS = [*ev_function_call("call_1", "mcp__asks__asks", {}), ev_completed()]


def server_option(name: str, command: Sequence[str]) -> list[str]:
    program, *args = command
    table = f"{{command = {json.dumps(program)}, args = {json.dumps(args)}}}"
    return ["-c", f"mcp_servers.{name}={table}"]


def test_a_form_is_filled_in_and_sent(start: Start, place: Workplace) -> None:
    option = server_option("asks", odd_command("asks", place.home / "messages"))
    with ScriptedServer([ASKS, DONE]) as server:
        program = start(server, *option, "Go.")
        program.wait_for("Would you like to call the following tool?")
        program.type("y")
        program.wait_for("The MCP server asks asks")
        program.wait_for("Who?")
        program.type("Ada")
        program.press("enter")
        program.wait_for("Yes, send it")
        program.wait_for("name: Ada")
        program.settle(0.8)
        program.type("y")
        program.wait_for("All done.")
    answer = json.loads(server.requests[-1].body["input"][-1]["output"][-1]["text"])
    assert (answer["action"], answer["content"]) == ("accept", {"name": "Ada"})


@pytest.mark.parametrize("keys", [["esc"], ["A", "c-a", "c-d", "c-d"]])
def test_esc_declines_and_so_does_ctrl_d_in_an_empty_field(
    start: Start, place: Workplace, keys: list[str]
) -> None:
    option = server_option("asks", odd_command("asks", place.home / "messages"))
    with ScriptedServer([ASKS, DONE]) as server:
        program = start(server, *option, "Go.")
        program.wait_for("Would you like to call the following tool?")
        program.type("y")
        program.wait_for("The MCP server asks asks")
        # Nobody can have read the question yet, so a key pressed at once does nothing.
        program.settle(0.8)
        for key in keys:
            program.type(key) if key == "A" else program.press(key)
        program.wait_for("All done.")
    answer = json.loads(server.requests[-1].body["input"][-1]["output"][-1]["text"])
    assert answer["action"] == "decline"


def test_a_server_that_does_not_start_can_be_gone_on_without(start: Start) -> None:
    option = server_option("slow", ["/bin/sleep", "417"])
    with ScriptedServer([DONE]) as server:
        program = start(server, *option, "Go.")
        program.wait_for("Starting MCP servers: slow")
        program.press("esc")
        program.wait_for("All done.")


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("", {"type": "string"}, "this has to be filled in"),
        ("x", {"type": "integer"}, "a whole number is wanted"),
        ("1.5", {"type": "integer"}, "a whole number is wanted"),
        ("nan", {"type": "number"}, "a number is wanted"),
        ("7", {"type": "integer", "maximum": 5}, "at most 5"),
        ("ab", {"type": "string", "minLength": 3}, "at least 3 characters"),
        ("a.b", {"type": "string", "format": "email"}, "this is no email"),
        ("a@b.c", {"type": "string", "format": "email"}, ""),
        ("3", {"type": "integer", "minimum": 3}, ""),
    ],
)
def test_an_answer_that_does_not_fit_a_field_is_reported(
    text: str, field: dict[str, Any], expected: str
) -> None:
    assert problem(text, field, needed=True) == expected


def test_an_answer_gets_the_type_of_its_field() -> None:
    assert [
        parsed("3", {"type": kind}) for kind in ("integer", "number", "string")
    ] == [
        3,
        3.0,
        "3",
    ]


def test_a_field_that_may_be_nothing_takes_a_text() -> None:
    assert choices({"anyOf": [{"type": "string"}, {"type": "null"}]}) is None
    assert choices({"anyOf": [{"const": 1, "title": "One"}, 2]}) == [
        MenuOption("One", 1)
    ]
    assert choices({"type": "array", "items": {"enum": ["a"]}}) == [
        MenuOption("a", "a")
    ]
