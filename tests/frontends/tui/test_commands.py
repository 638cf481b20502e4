"""Commands and keys of the program that change nothing in the conversation.

Tests `frontends/tui/commands/program.py`, `frontends/tui/commands/registry.py`,
`frontends/tui/commands/settings.py` and `frontends/tui/session_half.py`.
"""

import base64
import json
import os
import sys
import tomllib

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
    ev_text_deltas,
)
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

FREE = ("-s", "danger-full-access")
ANSWER = [*ev_message("Hello **you**."), ev_completed()]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_question_mark_in_an_empty_composer_shows_the_keys(
    start: Start, columns: int
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, columns=columns, rows=50)
        program.wait_for(IDLE)
        program.type("?")
        program.wait_for("Esc Esc")
        program.press("esc")
        program.wait_for(IDLE)
        program.type("what?")
        program.wait_for("\u203a what?")
        assert all(len(line) <= columns for line in program.lines)


def test_the_status_line_keeps_what_matters_in_a_narrow_terminal(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "Hello?", columns=50)
        program.wait_for("Hello you.")
        program.wait_for("left")
        assert program.lines[-1].startswith("  gpt-5.5 \u00b7 ")
        assert len(program.lines[-1]) <= 50


def test_the_theme_is_written_where_the_rest_of_the_file_stays(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        before = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
        program.type("/theme light")
        program.press("enter")
        program.wait_for("light background")
    after = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
    assert after == {**before, "tui": {"theme": "light"}}


def test_full_access_is_confirmed_and_enter_alone_says_no(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        for keys, outcome in (
            (["enter"], "Ask codex-py"),
            (["up", "enter"], "Permissions: Full"),
        ):
            program.type("/permissions")
            program.press("enter")
            program.wait_for("> Ask for approval")
            program.press("up", "enter")
            program.wait_for("Let the agent do all that you may, without asking?")
            program.press(*keys)
            program.wait_for(outcome)
            assert ("Permissions: Full" in program.text) == ("up" in keys)


def test_a_slash_before_a_search_is_not_searched_for(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/theme")
        program.press("enter")
        program.wait_for("/ type to search")
        program.type("/ligh")
        program.wait_for("/ ligh")
        program.wait_for("> light")
        program.press("enter")
        program.wait_for("light background")


def test_background_commands_are_listed_and_stopped(start: Start) -> None:
    call = {"cmd": "sleep 418", "yield_time_ms": 250}
    replies = [
        [*ev_function_call("call_1", "exec_command", call), ev_completed()],
        [*ev_message("It runs."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, *FREE, "Run it.")
        program.wait_for("It runs.")
        program.wait_for("1 command running in the background")
        program.type("/ps")
        program.press("enter")
        program.wait_for("> sleep 418")
        program.wait_for("(no output yet)")
        program.press("esc")
        program.wait_for("Ask codex-py")
        program.type("/stop")
        program.press("enter")
        program.wait_for("Stopped 1 command.")
        program.wait_for("• Ran sleep 418 · stopped")
        program.wait_until(lambda: "in the background" not in program.text)


def test_the_farewell_names_the_commands_that_leaving_ends(start: Start) -> None:
    call = {"cmd": "sleep 419", "yield_time_ms": 250}
    replies = [
        [*ev_function_call("call_1", "exec_command", call), ev_completed()],
        [*ev_message("It runs."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, *FREE, "Run it.")
        program.wait_for("1 command running in the background")
        leave(program)
    assert "\nCommands that were ended: sleep 419\n" in program.text


@pytest.mark.parametrize(("columns", "rows"), [(60, 16), (80, 24), (140, 40)])
def test_the_command_that_runs_goes_to_the_background(
    start: Start, columns: int, rows: int
) -> None:
    call = {"cmd": "echo ready; sleep 418", "yield_time_ms": 30000}
    replies = [
        [*ev_function_call("call_1", "exec_command", call), ev_completed()],
        [*ev_message("It runs."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, *FREE, "Run it.", columns=columns, rows=rows)
        program.wait_for("ready")
        program.type("a draft")
        program.wait_for("a draft")
        # There it moves the cursor.
        program.press("c-b")
        program.settle()
        assert len(server.requests) == 1
        program.press("c-c")
        program.wait_for("Ask codex-py")
        program.press("c-b")
        program.wait_for("It runs.")
        program.wait_for("• In the background echo ready; sleep 418 · since")
        program.press("c-b")
        program.wait_for("the agent waits for no command")
        assert "Process running with session ID" in str(
            server.requests[1].body["input"]
        )
        program.type("/stop")
        program.press("enter")
        program.wait_for("stopped")
        program.wait_until(lambda: "In the background" not in program.text)


def test_a_goal_is_set_shown_and_cleared(start: Start) -> None:
    done = ev_function_call("c1", "update_goal", {"status": "complete"})
    replies = [
        ANSWER,
        [*done, ev_completed()],
        [*ev_message("Reached."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, "--enable", "goals")
        program.wait_until(lambda: program.title == "work")
        for typed, shown in (
            ("/goal make it", "Reached."),
            ("/goal", "The goal is complete: make it"),
            ("/goal clear", "There is no goal."),
        ):
            program.type(typed)
            program.press("enter")
            program.wait_for(shown)


def test_goals_are_listed_where_they_are_on(start: Start) -> None:
    with ScriptedServer([]) as server:
        for options in ([], ["--enable", "goals"]):
            program = start(server, *options)
            program.wait_until(lambda program=program: program.title == "work")
            program.type("/")
            program.wait_for("/model")
            program.type("go")
            program.wait_until(lambda program=program: "/model" not in program.text)
            assert ("work until it is reached" in program.text) is bool(options)


def test_an_answer_is_copied_by_its_number_from_the_end(start: Start) -> None:
    with ScriptedServer([ANSWER, [*ev_message("Again."), ev_completed()]]) as server:
        program = start(server, "One?")
        program.wait_for("Hello you.")
        program.type("Two?\r")
        program.wait_for("Again.")
        for number, text in (
            ("", b"Again."),
            ("1", b"Again."),
            ("2", b"Hello **you**."),
        ):
            sent = b"\x1b]52;c;" + base64.b64encode(text) + b"\x07"
            before = program.raw.count(sent)
            program.type(f"/copy {number}\r")
            program.wait_until(
                lambda n=before, s=sent: program.raw.count(s) == n + 1, what=number
            )
        for count, number in enumerate(("3", "0", "-1", "x"), 1):
            program.type(f"/copy {number}\r")
            program.wait_until(lambda n=count: program.text.count("write /copy N") == n)


def test_the_cost_is_told_by_turns(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "One?")
        program.wait_for("Hello you.")
        program.type("/cost")
        program.press("enter")
        program.wait_for("total")
    row = next(
        line
        for line in program.text.splitlines()
        if line.endswith("One?") and "%" in line
    )
    assert row.split()[:4] == ["1", "100", "50", "50%"]


@pytest.mark.parametrize(
    ("settings", "focus", "sent"),
    [
        ('notification_method = "osc9"', "focus-out", b"\x1b]9;Hello **you**.\x07"),
        (
            'notification_method = "osc777"',
            "focus-out",
            b"\x1b]777;notify;codex-py;Hello",
        ),
        ("", "focus-out", b"\x07\x1b"),
        ('notification_method = "osc9"', "focus-in", None),
        ('notification_method = "osc9"\nnotifications = false', "focus-out", None),
    ],
)
def test_the_end_of_a_turn_is_told_to_who_looks_elsewhere(
    start: Start, place: Workplace, settings: str, focus: str, sent: bytes | None
) -> None:
    pause = Pause()
    stream = [
        ev_created(),
        *ev_text_deltas(["Hel"]),
        pause,
        *ev_message("Hello **you**."),
    ]
    with ScriptedServer([[*stream, ev_completed()]]) as server:
        table = [f"tui.{line}" for line in settings.splitlines()]
        options = [part for line in table for part in ("-c", line)]
        program = start(server, *options, "Hello?")
        program.wait_for("Hel")
        program.press(focus)
        program.type("x")
        program.wait_for("\u203a x")
        before = len(program.raw)
        pause.until.set()
        program.wait_until(lambda: "Working" not in program.text)
        program.settle()
        told = program.raw[before:]
    if sent is None:
        assert b"\x1b]9;" not in told
    else:
        assert sent in told


def test_the_title_says_what_goes_on_and_is_given_back(start: Start) -> None:
    pause = Pause()
    stream = [
        ev_created(),
        *ev_text_deltas(["Hel"]),
        pause,
        *ev_message("Hello."),
        ev_completed(),
    ]
    with ScriptedServer([stream]) as server:
        program = start(server, "Hello?")
        program.wait_for("Hel")
        assert program.title == "\u2022 work"
        pause.until.set()
        program.wait_until(lambda: program.title == "work")
        leave(program)
    assert program.raw.count(b"\x1b[22;0t") == program.raw.count(b"\x1b[23;0t") == 1


def test_notify_is_started_with_what_was_said(start: Start, place: Workplace) -> None:
    told = place.cwd / "told.json"
    os.mkfifo(told)
    script = "import sys; open('told.json', 'w', encoding='utf-8').write(sys.argv[1])"
    with ScriptedServer([ANSWER]) as server:
        argv = json.dumps([sys.executable, "-c", script])
        program = start(server, "-c", f"notify={argv}", "Hello?")
        program.wait_for("Hello you.")
        # A pipe for a file: it is read when it was written.
        message = json.loads(told.read_text(encoding="utf-8"))
    assert message.pop("thread-id") != message.pop("turn-id")
    assert message == {
        "type": "agent-turn-complete",
        "cwd": str(place.cwd),
        "client": "codex-tui",
        "input-messages": ["Hello?"],
        "last-assistant-message": "Hello **you**.",
    }


def test_stop_ends_what_a_command_of_the_users_has_left(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/stop")
        program.press("enter")
        program.wait_for("No command is running.")
        program.type("!sleep 417 & echo on")
        program.press("enter")
        program.wait_for("You ran sleep 417")
        program.wait_for("Ask codex-py")
        program.type("/stop")
        program.press("enter")
        program.wait_for("Stopped 1 command.")


def test_stop_ends_commands_while_the_agent_works(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Think.")
        program.wait_for("Working")
        program.type("!sleep 416 & echo on")
        program.press("enter")
        program.wait_for("You ran sleep 416")
        program.wait_for("Ask codex-py")
        program.type("/stop")
        program.press("enter")
        program.wait_for("Stopped 1 command.")
        program.wait_for("Working")


def test_a_prompt_of_the_programs_own_is_shown_as_its_command(start: Start) -> None:
    with ScriptedServer([[*ev_message("Written."), ev_completed()]]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/init")
        program.press("enter")
        program.wait_for("Written.")
        assert "\u203a /init" in program.lines
        assert "AGENTS.md" in str(server.requests[0].input)
        assert "Look first" not in program.text
