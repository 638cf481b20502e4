"""Prompts and turns of the real program in a terminal, from the start to the exit."""

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.images import PNG
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def test_a_prompt_is_answered_and_the_program_left(start: Start) -> None:
    with ScriptedServer([[*ev_message("It is **done**."), ev_completed()]]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("Do it.")
        program.press("enter")
        program.wait_for("It is done.")
        leave(program)
        assert program.scrollback[-2] == "To continue this session, run:"
        assert program.scrollback[-1].startswith("  codex-py resume 0")
    assert program.modes() == program.initial_modes


def test_a_prompt_on_the_command_line_is_sent_at_once(start: Start) -> None:
    with ScriptedServer([[*ev_message("Hello."), ev_completed()]]) as server:
        program = start(server, "Say hello.")
        program.wait_for("Hello.")
        assert "\u203a Say hello." in program.lines


@pytest.mark.parametrize("prompt", [["What is it?"], []])
def test_images_of_the_command_line_belong_to_the_first_prompt(
    start: Start, place: Workplace, prompt: list[str]
) -> None:
    (place.cwd / "a.png").write_bytes(PNG)
    with ScriptedServer([[*ev_message("A picture."), ev_completed()]]) as server:
        program = start(server, *prompt, "-i", "a.png")
        program.wait_for("[Image #1]")
        if not prompt:
            program.type("What is it?")
            program.press("enter")
        program.wait_for("A picture.")
        leave(program)
    label, image, _, text = server.requests[0].body["input"][-1]["content"]
    assert label["text"] == f'<image name=[Image #1] path="{place.cwd}/a.png">'
    assert image["image_url"].startswith("data:image/png;base64,")
    assert text["text"] == "[Image #1] What is it?"


def test_a_steered_prompt_goes_out_with_the_next_request(
    start: Start, place: Workplace
) -> None:
    script = "echo begun; until test -e go; do sleep 0.05; done"
    call = ev_function_call("call_1", "exec_command", {"cmd": script})
    replies = [[*call, ev_completed()], [*ev_message("As you like."), ev_completed()]]
    with ScriptedServer(replies) as server:
        program = start(server, "-s", "danger-full-access", "Begin.")
        program.wait_for("Running")
        program.type("And be quick.")
        program.press("enter")
        program.wait_for("  \u203a And be quick.")
        (place.cwd / "go").touch()
        program.wait_for("As you like.")
        leave(program)
    last = server.requests[-1].body["input"][-1]
    assert last["content"] == [{"type": "input_text", "text": "And be quick."}]


def test_escape_ends_the_turn_and_the_program_goes_on(start: Start) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "sleep 600"})
    replies = [[*call, ev_completed()], [*ev_message("Still here."), ev_completed()]]
    with ScriptedServer(replies) as server:
        program = start(server, "-s", "danger-full-access", "Begin.")
        program.wait_for("Running")
        program.press("esc")
        program.wait_for("interrupted")
        program.type("Go on.")
        program.press("enter")
        program.wait_for("Still here.")
        # Before its end, Ctrl-C would interrupt the turn.
        program.wait_for("Worked for")
        program.press("c-c", "c-c")
        assert program.wait() == 0
