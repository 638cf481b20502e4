"""Models that write their calls as text, from outside."""

from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from codex_py.testing.events import ev_created
from tests.support.program import Workplace
from tests.support.wires import AnyWire

PROVIDERS = ("text", "text over anthropic")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    return Workplace(home, cwd)


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def calls(command: str, call_id: str = "c1") -> list[Any]:
    call = ev_function_call(call_id, "exec_command", {"cmd": command})
    return [ev_created(), *call, ev_completed()]


WRONG = says("<tool>\n{}\n</tool>")
DONE = says("done")


def last_message(wires: AnyWire, request: int) -> str:
    return str(wires.requests[request].fields["messages"][-1])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_blocks_of_a_message_run(place: Workplace, provider: str) -> None:
    block = '<tool name="exec_command">\n{{"cmd": "echo {} >> log"}}\n</tool>\n'
    with AnyWire(place) as wires:
        both = says("I write twice.\n" + block.format("one") + block.format("two"))
        wires.prompt(provider, "go", both, DONE)
    assert sorted((place.cwd / "log").read_text(encoding="utf-8").split()) == ["one", "two"]
    texts = [e["item"]["text"] for e in wires.events if e.get("item", {}).get("text")]
    assert texts == ["I write twice.", "done"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_mistake_is_explained_and_the_turn_goes_on(place: Workplace, provider: str) -> None:
    with AnyWire(place) as wires:
        wires.prompt(provider, "go", WRONG, calls("echo one >> log"), DONE)
    assert wires.last["type"] == "turn.completed"
    assert (place.cwd / "log").read_text(encoding="utf-8") == "one\n"
    assert 'A <tool> block has no name="…", so it was not run.' in last_message(wires, 1)


def test_three_mistakes_in_a_row_end_the_turn(place: Workplace) -> None:
    with AnyWire(place) as wires:
        wires.prompt("text", "go", WRONG, WRONG, WRONG)
    assert wires.last["type"] == "turn.failed"
    assert wires.last["error"]["code"] == "tool_format"
    assert "wrongly 3 times in a row" in wires.last["error"]["message"]


def test_a_message_without_a_mistake_starts_the_count_again(place: Workplace) -> None:
    with AnyWire(place) as wires:
        # A call alone is shown as no message.
        wires.prompt("text", "go", WRONG, WRONG, calls("true"), WRONG, WRONG, DONE)
    assert wires.last["type"] == "turn.completed"


def test_the_count_does_not_go_over_to_the_next_turn(place: Workplace) -> None:
    with AnyWire(place) as wires:
        thread = wires.prompt("text", "one", WRONG, WRONG, DONE)
        wires.prompt("text", "two", WRONG, DONE, resume=thread)
    assert wires.last["type"] == "turn.completed"


def test_markup_that_leaks_from_a_server_is_a_call(place: Workplace) -> None:
    leaked = says(
        '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "echo x > log"}}\n</tool_call>'
    )
    with AnyWire(place) as wires:
        wires.prompt("text", "go", leaked, DONE)
    assert (place.cwd / "log").read_text(encoding="utf-8") == "x\n"


def test_a_failed_call_is_told_with_its_code(place: Workplace) -> None:
    wrong = '<tool name="no_such_tool">\n{}\n</tool>'
    with AnyWire(place) as wires:
        wires.prompt("text", "go", says(wrong), DONE)
    assert "[ERROR:UnknownTool] unsupported call: no_such_tool" in last_message(wires, 1)
