from pathlib import Path
from typing import Any

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.terminals import IDLE, Start
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

_FULL = ("-s", "danger-full-access")


def _runs(number: int, command: str) -> list[Any]:
    return [
        *ev_function_call(f"call_{number}", "exec_command", {"cmd": command}),
        ev_completed(),
    ]


def _says(text: str) -> list[Any]:
    return [*ev_message(text), ev_completed()]


def _two_turns() -> list[list[Any]]:
    first = [_runs(1, "echo one > a.txt"), _says("Made it.")]
    return [*first, _runs(2, "echo two >> a.txt; echo new > b.txt"), _says("Went on.")]


def _send(program: PtyProgram, text: str, answer: str) -> None:
    program.type(text)
    program.wait_for(f"\u203a {text}")
    program.press("enter")
    program.wait_for(answer)
    program.wait_until(lambda: program.title == "work", what="the turn's end")


def _begin(program: PtyProgram) -> None:
    program.wait_for(IDLE)
    _send(program, "Begin.", "Made it.")
    _send(program, "Go on.", "Went on.")


def _open_list(program: PtyProgram) -> None:
    program.press("esc")
    program.wait_for("Press Esc again to go back")
    program.press("esc")
    program.wait_for("Go back to a prompt")


def _files(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text("utf-8") for each in folder.iterdir()}


def test_a_prompt_is_gone_back_to_with_the_files_and_both_are_told_before(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([*_two_turns(), _says("Again.")], check_prefix=False) as server:
        program = start(server, *_FULL, columns=100)
        _begin(program)
        _open_list(program)
        program.wait_until(lambda: "1 file +1 \u2212" in program.text)
        assert "2 files +2 \u22120" in program.text
        program.press("enter")
        program.wait_for("Go back to 'Go on.'?")
        assert "Files: a.txt, b.txt" in program.text
        program.press("enter")
        program.wait_for("Went back 1 prompt.")
        program.wait_for("\u203a Go on.\n\n  " + IDLE)
        assert _files(place.cwd) == {"a.txt": "one\n"}
        program.press("enter")
        program.wait_for("Again.")
        first, last = server.requests[1], server.requests[-1]
        assert last.input[: len(first.input)] == first.input
        assert "Went on." not in str(last.input)
        program.wait_until(lambda: program.title == "work")
        program.type("/redo\r")
        program.wait_for("Made again")
        assert _files(place.cwd) == {"a.txt": "one\ntwo\n", "b.txt": "new\n"}


def test_the_conversation_stays_if_files_are_refused(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([*_two_turns(), _says("Third.")], check_prefix=False) as server:
        program = start(server, *_FULL, columns=140, rows=40)
        _begin(program)
        (place.cwd / "a.txt").write_text("mine\n", encoding="utf-8")
        program.type("/rewind\r")
        program.wait_for("Go back to a prompt")
        program.press("up", "enter")
        program.wait_for("Go back to 'Begin.'?")
        assert "Only if you agree: edited since: " in program.text
        program.press("enter")
        program.wait_for("Do it all the same?")
        program.press("enter")
        program.wait_for("Ask codex-py to do anything")
        assert _files(place.cwd) == {"a.txt": "mine\n", "b.txt": "new\n"}
        assert "Went back" not in program.text
        _send(program, "Third?", "Third.")
        assert "Went on." in str(server.requests[-1].input)


def test_the_conversation_and_the_files_go_back_alone(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([*_two_turns(), _says("Third.")], check_prefix=False) as server:
        program = start(server, *_FULL, columns=100)
        _begin(program)
        program.type("/rewind\r")
        program.wait_for("Go back to a prompt")
        program.press("up", "enter")
        program.wait_for("Go back to 'Begin.'?")
        program.type("f")
        program.wait_for("Brought files back")
        program.wait_for("Ask codex-py to do anything")
        assert _files(place.cwd) == {}
        program.type("/redo\r")
        program.wait_for("Made again")
        program.type("/rewind\r")
        program.wait_for("Go back to a prompt")
        program.press("up", "enter")
        program.wait_for("Go back to 'Begin.'?")
        program.type("c")
        program.wait_for("Went back 2 prompts.")
        assert _files(place.cwd) == {"a.txt": "one\ntwo\n", "b.txt": "new\n"}
        program.wait_for("\u203a Begin.\n\n  " + IDLE)
        program.press("enter")
        program.wait_for("Third.")
        assert "Made it." not in str(server.requests[-1].input)


def test_a_fork_goes_back_to_what_was_changed_before_it(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer(_two_turns()) as server:
        first: str = place.run(server, "Begin.").events[0]["thread_id"]
        place.rerun("resume", first, "Go on.")
        program = start(server, *_FULL, "fork", first, columns=100)
        program.wait_for("Went on.")
        _open_list(program)
        program.press("up", "enter")
        program.wait_for("Files: a.txt, b.txt")
        program.press("enter")
        program.wait_for("the conversation that this one is a copy of")
        program.type("y")
        program.wait_for("Went back 2 prompts.")
        assert _files(place.cwd) == {}


def test_before_a_compaction_only_the_files_go_back(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer(
        [*_two_turns()[:2], _says("A summary."), *_two_turns()[2:]], check_prefix=False
    ) as server:
        program = start(server, *_FULL, columns=120)
        program.wait_for(IDLE)
        _send(program, "Begin.", "Made it.")
        _send(program, "/compact", "ompacted")
        _send(program, "Go on.", "Went on.")
        _open_list(program)
        program.wait_for("before the compaction")
        program.press("up", "enter")
        program.wait_for("the conversation cannot go back to it")
        assert "conversation only" not in program.text
        program.press("enter")
        program.wait_for("Brought files back")
        assert _files(place.cwd) == {}
        assert "Went back" not in program.text


def test_esc_pressed_in_a_hurry_stops_and_opens_nothing(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        for _ in range(4):
            program.press("esc")
            program.wait_for("Stopped")
        assert "Go back" not in program.text


def test_esc_twice_empties_the_composer_and_up_brings_it_back(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("a draft")
        program.wait_for("\u203a a draft")
        program.press("esc")
        program.wait_for("Press Esc again to empty the prompt")
        program.press("esc")
        program.wait_for("Ask codex-py to do anything")
        program.press("up")
        program.wait_for("\u203a a draft")
