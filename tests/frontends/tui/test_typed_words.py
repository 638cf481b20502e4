"""A word that is typed while a panel is open goes to the prompt; no letter of it answers.

Tests `frontends/tui/panels.py`.
"""

from collections.abc import Callable

import pytest

from codex_py.frontends.tui.commands.hooks import HOOKS
from codex_py.frontends.tui.commands.program import PROGRAM, PROMPTS
from codex_py.frontends.tui.commands.review import REVIEW
from codex_py.frontends.tui.commands.rewind import REWIND
from codex_py.frontends.tui.commands.sessions import SESSIONS
from codex_py.frontends.tui.commands.settings import SETTINGS
from codex_py.frontends.tui.commands.undoing import UNDOING
from codex_py.testing import ev_completed, ev_function_call
from codex_py.testing.events import Event
from tests.frontends.tui.terminals import IDLE, Start
from tests.frontends.tui.test_approval import QUESTION, asks, says
from tests.frontends.tui.test_hooks import states, write_hooks
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.searches import sample
from tests.support.server import ScriptedServer

EMPTY = "Ask codex-py to do anything"
ASKS = "text goes to your prompt"
ASKING = {"permissions", "delete", "archive", "review", "undo", "redo", "hooks"}
WITHOUT_A_PANEL = {"new", "clear", "compact", "init", "quit", "transcript", "vim"}
"""These begin something, or leave."""


def burst(program: PtyProgram) -> None:
    program.type("why")


def slowly(program: PtyProgram) -> None:
    for letter in "why":
        program.type(letter)
        program.settle(0.37)


def with_a_rest(program: PtyProgram) -> None:
    program.type("wh")
    program.settle(1.2)
    program.type("y")
    program.settle(1.2)


SPEEDS = [burst, slowly, with_a_rest]


def wait_for_draft(program: PtyProgram, text: str) -> None:
    program.wait_until(lambda: f"\u203a {text}" in program.lines, what=text)


def run(program: PtyProgram, command: str) -> None:
    # With a blank, nothing is completed.
    program.type(f"/{command} ")
    program.wait_for(f"\u203a /{command}")
    program.press("enter")
    # One that is refused stays.
    program.settle(0.5)


def runs(command: str) -> list[Event]:
    return [
        *ev_function_call("call_1", "exec_command", {"cmd": command}),
        ev_completed(),
    ]


@pytest.mark.parametrize("type_why", sample(SPEEDS))
def test_a_word_answers_no_panel_of_any_command(
    start: Start, place: Workplace, type_why: Callable[[PtyProgram], None]
) -> None:
    with ScriptedServer() as server:
        server.add(
            runs("echo 1 > one"),
            says("Made one."),
            runs("echo 2 > two"),
            says("Made two."),
        )
        program = start(
            server, "-s", "danger-full-access", "Make one.", columns=100, rows=40
        )
        program.wait_for("Made one.")
        program.wait_until(lambda: program.title == "work")
        program.type("Make two.\r")
        program.wait_for("Made two.")
        program.wait_until(lambda: program.title == "work")
        saved = set(place.home.rglob("rollout-*"))
        run(program, "undo")
        program.wait_for("Undid turn 2")
        run(program, "permissions")
        program.press("enter")
        program.wait_for("Permissions: Ask for approval")
        # Of another conversation, an undo or redo asks.
        run(program, "new")
        program.wait_for("Another conversation")
        write_hooks(place.home / "hooks.json", "true")
        asking: set[str] = set()
        for command in (
            *UNDOING,
            *REWIND,
            *SESSIONS,
            *SETTINGS,
            *PROGRAM,
            *PROMPTS,
            *REVIEW,
            *HOOKS,
        ):
            if command.name in WITHOUT_A_PANEL:
                continue
            run(program, command.name)
            if "Enter picks" in program.text:
                program.press("up", "enter")
                program.settle(0.5)
            if ASKS in program.text:
                asking.add(command.name)
                type_why(program)
                wait_for_draft(program, "why")
                program.settle()
                assert ASKS not in program.text
            while EMPTY not in program.text:
                program.press("esc" if "Esc " in program.lines[-1] else "c-c")
                program.settle()
        assert asking == ASKING
        shown = "\n".join(program.scrollback)
        assert "Full access" not in program.text
        assert not any(
            word in shown for word in ("Deleted", "Archived", "Made again", "turn 1")
        )
        assert saved <= set(place.home.rglob("rollout-*"))
        assert (place.cwd / "one").exists()
        assert not (place.cwd / "two").exists()
        assert states(place) == {}
        assert len(server.requests) == 4


@pytest.mark.parametrize("type_why", SPEEDS)
def test_a_word_answers_no_question_of_the_start(
    start: Start, place: Workplace, type_why: Callable[[PtyProgram], None]
) -> None:
    write_hooks(place.home / "hooks.json", "true")
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        for question in ("Do you trust what is in", "Hooks need review"):
            program.wait_for(question)
            program.wait_for(ASKS)
            type_why(program)
            wait_for_draft(program, "why")
            program.wait_for("(Tab to answer)")
            # In one read with more, Ctrl-C would be a part of the text.
            program.press("c-c")
            program.wait_until(
                lambda: "\u203a why" not in program.lines, what="no draft"
            )
            program.press("tab")
            program.wait_for(question)
            program.press("esc")
        program.wait_for(IDLE)
        assert states(place) == {}
        assert "trusted" not in (place.home / "config.toml").read_text("utf-8")


def test_a_word_that_begins_with_the_letter_of_an_answer_is_none(start: Start) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        program = start(server, "Hi.")
        program.wait_for("Hello.")
        run(program, "archive")
        program.type("y")
        program.settle(0.37)
        program.type("onder")
        program.wait_for("\u203a yonder\n")
        assert "Archived" not in program.text


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
@pytest.mark.parametrize("text", ["very well", "yes"])
def test_text_in_one_read_with_the_key_that_closes_a_question_is_kept(
    start: Start, place: Workplace, key: str, text: str
) -> None:
    with ScriptedServer([asks("touch made"), says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type(f"{key}{text}")
        program.wait_for("Conversation interrupted")
        wait_for_draft(program, text)
        assert not (place.cwd / "made").exists()


def test_text_behind_esc_is_kept_in_a_draft(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("one ")
        wait_for_draft(program, "one")
        # Alt-V has no meaning.
        program.type("\x1bv000z")
        wait_for_draft(program, "one v000z")


@pytest.mark.parametrize("letter", ["a", "p"])
def test_a_word_that_is_typed_slowly_allows_nothing_that_lasts(
    start: Start, place: Workplace, letter: str
) -> None:
    with ScriptedServer([asks("touch made", prefix_rule=["touch"])]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.wait_for(f"({letter})")
        program.type(letter)
        program.settle(0.37)
        program.type(" file")
        wait_for_draft(program, f"{letter} file")
        program.wait_for("(Tab to answer)")
        assert not (place.cwd / "made").exists()


def test_a_word_that_is_typed_slowly_trusts_no_folder(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("y")
        program.settle(0.37)
        program.type("ou")
        wait_for_draft(program, "you")
        program.wait_for("(Tab to answer)")
        assert "trusted" not in (place.home / "config.toml").read_text("utf-8")


def test_a_prompt_at_a_question_of_the_start_is_shown_until_it_is_sent(
    start: Start,
) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("Well, hi.")
        wait_for_draft(program, "Well, hi.")
        program.press("enter")
        program.wait_for("When the session has begun:\n  \u203a Well, hi.")
        program.wait_for("Do you trust what is in")
        program.press("esc")
        program.wait_for("Hello.")
        assert "When the session" not in program.text


@pytest.mark.parametrize("command", ["delete", "permissions"])
def test_a_question_about_something_final_is_answered_by_arrows_alone(
    start: Start, command: str
) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        program = start(server, "Hi.")
        program.wait_for("Hello.")
        for letter in "y1":
            run(program, command)
            if command == "permissions":
                program.press("up", "enter")
            program.wait_for("Only arrows and Enter answer")
            assert "(y)" not in program.text
            program.type(letter)
            program.wait_for(f"\u203a {letter}\n")
            program.press("c-c")
            program.wait_for(EMPTY)
        run(program, command)
        if command == "permissions":
            program.press("up", "enter")
        program.wait_for("> No")
        program.press("up", "enter")
        program.wait_for(
            {"delete": "Deleted", "permissions": "Permissions: Full"}[command]
        )


def test_a_text_sent_instead_of_an_answer_is_answered(start: Start) -> None:
    with ScriptedServer([says("Hello."), says("After.")]) as server:
        program = start(server, "Hi.")
        program.wait_for("Hello.")
        run(program, "archive")
        for letter in "hey":
            program.type(letter)
            program.settle(0.02)
        program.press("enter")
        program.wait_for("After.")


def test_a_word_that_a_list_does_not_find_goes_to_the_prompt(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        run(program, "resume")
        program.type("why is that")
        program.wait_for("nothing found")
        program.press("esc")
        program.wait_for("\u203a why is that\n")


def test_a_panel_that_comes_late_takes_no_letter_of_a_draft(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([runs("touch made"), says("Made.")]) as server:
        program = start(server, "-s", "danger-full-access", "Make it.")
        program.wait_for("Made.")
        program.wait_until(lambda: program.title == "work")
        run(program, "new")
        program.type("/undo ")
        program.wait_for("\u203a /undo")
        program.read_for(0.3)
        program.press("enter")
        program.settle(0.02)
        program.type("b")
        # Before or after the question.
        program.settle(1.0)
        program.type("y")
        wait_for_draft(program, "by")
        program.settle(1.0)
        assert (place.cwd / "made").exists()
