"""Also tests `frontends/tui/commands/undoing.py` and `frontends/tui/session_picker.py`."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.frontends.tui.test_approval import says
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

ANSWER = [*ev_message("Hello **you**."), ev_completed()]
AGAIN = [*ev_message("Still here."), ev_completed()]


def test_a_conversation_stays_where_another_cannot_be_opened(start: Start) -> None:
    with ScriptedServer([ANSWER, AGAIN]) as server:
        program = start(server, "Hello?")
        program.wait_for("Hello you.")
        program.wait_until(
            lambda: not program.title.startswith("\u2022"), what="the turn's end"
        )
        program.type("/resume nobody")
        program.press("enter")
        program.wait_for("no session found with the id or name 'nobody'")
        program.type("And now?")
        program.press("enter")
        program.wait_for("Still here.")
        first, second = server.requests
        assert second.input[: len(first.input)] == first.input


@pytest.mark.parametrize("command", ["resume", "fork"])
def test_a_session_that_is_not_there_opens_no_terminal(
    start: Start, command: str
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, command, "nobody")
        assert program.wait() == 2
    assert program.text.startswith(
        "Error: no session found with the id or name 'nobody'; "
    )
    assert IDLE not in program.text


def test_a_prompt_without_a_conversation_is_given_back(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "resume", "--last")
        program.wait_for("no session to resume")
        program.type("Hello?")
        program.press("enter")
        program.wait_for("not sent: there is no conversation; /new begins one")
        assert "\u203a Hello?" in program.lines
        program.press("c-c")
        program.type("/new")
        program.press("enter")
        program.wait_for(IDLE)
        program.press("up", "up")
        program.wait_for("\u203a Hello?")
        program.press("enter")
        program.wait_for("Hello you.")


@pytest.mark.parametrize("key", ["esc", "c-c", "c-d"])
def test_a_list_that_is_left_says_nothing_of_a_conversation(
    start: Start, key: str
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/resume\r")
        program.wait_for("Resume a session")
        program.press(key)
        program.wait_until(lambda: "Resume a session" not in program.text)
        program.settle(0.3)
        assert "open already" not in program.text


def test_a_resumed_conversation_has_used_no_tokens_in_a_turn_before_it_has_one(
    start: Start, place: Workplace
) -> None:
    replies = [says(f"Answer {n}.") for n in range(4)]
    with ScriptedServer(replies) as server:
        first = start(server, "A short one")
        first.wait_for("Answer 0.")
        leave(first)
        program = start(server, "One", columns=120)
        program.wait_for("Answer 1.")
        for n in (2, 3):
            program.type(f"Again {n}\r")
            program.wait_for(f"Answer {n}.")
        program.wait_until(lambda: not program.title.startswith("\u2022"))
        program.type("/resume\r")
        program.wait_for("A short one")
        program.press("enter")
        program.wait_for("Answer 0.")
        program.wait_until(lambda: "Resume a session" not in program.text)
        program.press("esc", "esc")
        program.wait_for("Go back")
        program.press("enter")
        program.wait_until(lambda: "\u203a A short one" in program.lines[-3])
        program.settle(0.3)
        assert not re.search(r"-\d+(\.\d)?k? tokens", program.text)


@pytest.mark.parametrize("leaves_with", ["c-d", "/new\r"])
def test_no_command_resumes_a_conversation_whose_file_is_gone(
    start: Start, place: Workplace, leaves_with: str
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server, "Remember this")
        program.wait_for("Understood.")
        program.wait_until(lambda: not program.title.startswith("\u2022"))
        for path in (place.home / "sessions").rglob("*.jsonl"):
            path.unlink()
        if leaves_with == "c-d":
            program.press("c-d")
            assert program.wait() == 0
            assert "Token usage" in program.text
        else:
            program.type(leaves_with)
            program.wait_for("Another conversation from here on.")
            program.settle(0.3)
        assert "resume" not in program.text


def test_a_fork_is_marked_among_the_sessions_to_resume(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([ANSWER]) as server:
        first: str = place.run(server, "Hello?").events[0]["thread_id"]
        place.rerun("fork", first)
        program = start(server, "resume")
        program.wait_for("Resume a session")
        program.wait_for(f"> Hello? (fork of {first[:13]}…)  just now")
        program.wait_for("  Hello?  just now")


@pytest.mark.parametrize(("columns", "rows"), [(60, 16), (80, 24), (140, 40)])
def test_sessions_are_sorted_archived_and_found_in_all_folders(
    start: Start, place: Workplace, columns: int, rows: int
) -> None:
    with ScriptedServer([ANSWER, ANSWER, ANSWER]) as server:
        first: str = place.run(server, "First?").events[0]["thread_id"]
        place.rerun("Second?")
        place.rerun("resume", first, "Again")
        other = place.cwd.parent / "elsewhere"
        other.mkdir()
        place.rerun("-C", str(other), "Third?")
        file = next((place.home / "sessions").rglob(f"*{first}.jsonl"))
        program = start(server, "resume", columns=columns, rows=rows)
        program.wait_for("> First?   just now")
        program.wait_for("Tab all folders · ^S created · ^A archived · ^X archive")
        assert "Third?" not in program.text
        program.press("c-s")
        program.wait_for("> Second?  just now")
        program.wait_for("(this folder, created, active)")
        program.press("tab")
        program.wait_for("> Third?   just now · elsewhere")
        program.press("tab")
        program.wait_until(lambda: "Third?" not in program.text)
        program.press("c-x")
        program.wait_until(lambda: "> Second?" not in program.text)
        program.press("c-a")
        program.wait_for("created, archived)")
        program.wait_for("> Second?")
        program.press("c-x")
        program.wait_for("nothing found")
        program.press("c-a")
        program.wait_for("> Second?")
        program.press("c-x")
        program.wait_for("> First?")
        program.press("c-a")
        program.wait_for("> Second?")
        noon = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
        os.utime(file, (noon, noon))
        program.press("c-a", "c-s")
        program.wait_for("First?  2026-01-02")
        program.press("c-s", "c-a")
        program.wait_for("> Second?")
        # It is brought back.
        program.press("enter")
        program.wait_for("\u203a Second?")


def test_nothing_is_forked_before_anything_was_said(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/fork")
        program.press("enter")
        program.wait_for("there is nothing to copy")
        program.type("Hello?")
        program.press("enter")
        program.wait_for("Hello you.")


def test_a_conversation_in_use_can_be_forked_by_its_id(start: Start) -> None:
    with ScriptedServer([ANSWER, AGAIN]) as server:
        start(server, "Hello?").wait_for("Hello you.")
        program = start(server, "resume", "--last", columns=200)
        program.wait_for("or fork the session")
        found = re.search(r"session (\S+) is in use", program.text)
        assert found is not None
        program.type(f"/fork {found[1]}\r")
        program.wait_for("Hello you.")
        program.type("And now?\r")
        program.wait_for("Still here.")


def test_a_new_conversation_keeps_what_was_chosen_and_names_the_one_before(
    start: Start,
) -> None:
    with ScriptedServer([ANSWER, AGAIN]) as server:
        program = start(server, "Hello?")
        program.wait_for("Hello you.")
        program.type("/model gpt-5.5-codex high")
        program.press("enter")
        program.wait_for("Model: gpt-5.5-codex high")
        program.type("/new")
        program.press("enter")
        program.wait_for("Another conversation from here on.")
        assert re.search(
            r"\u2500{80}\n.* To go back:\n  /resume [0-9a-f-]{36}", program.text
        )
        program.type("And now?")
        program.press("enter")
        program.wait_for("Still here.")
        first, second = server.requests
        assert (first.body["model"], second.body["model"]) == (
            "gpt-5.5",
            "gpt-5.5-codex",
        )
        assert second.body["reasoning"]["effort"] == "high"
        assert second.body["prompt_cache_key"] != first.body["prompt_cache_key"]


def test_a_resumed_conversation_says_which_model_it_goes_on_with(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        first = start(server, "-m", "gpt-5.5-codex", "Hello?")
        first.wait_for("Hello you.")
        leave(first)
        program = start(server, "resume", "--last", columns=120)
        program.wait_for(
            "recorded with model `gpt-5.5-codex` but is resuming with `gpt-5.5`"
        )


def test_other_permissions_keep_the_folders_of_the_command_line(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "--add-dir", str(tmp_path / "more"))
        program.wait_for(IDLE)
        program.type("/permissions")
        program.press("enter")
        program.wait_for("Never ask")
        program.press("down", "enter")
        program.wait_for("Permissions: Never ask")
        program.type("Hello?")
        program.press("enter")
        program.wait_for("Hello you.")
        assert str(tmp_path / "more") in str(server.requests[-1].body["input"][-2:])


def test_a_conversation_moves_to_a_model_of_another_provider(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server, ScriptedServer([AGAIN]) as other:
        url = f'model_providers.anthropic.base_url="{other.base_url}"'
        program = start(server, "-c", url, "Hello?", ANTHROPIC_API_KEY="k" * 20)
        program.wait_for("Hello you.")
        program.type("/model groq/gpt-oss-120b low")
        program.press("enter")
        program.wait_for("Missing environment variable: `GROQ_API_KEY`")
        program.type("/model anthropic/claude-opus-5-5 low")
        program.press("enter")
        program.wait_for("Model: anthropic/claude-opus-5-5 low")
        program.type("And now?")
        program.press("enter")
        program.wait_for("Still here.")
        text = "\n".join(program.lines)
    body = other.requests[0].body
    assert (body["model"], body["output_config"]) == (
        "claude-opus-5-5",
        {"effort": "low"},
    )
    assert [message["role"] for message in body["messages"]][-3:] == [
        "user",
        "assistant",
        "user",
    ]
    # What was said is not shown a second time.
    assert text.count("Hello you.") == 1


def test_a_conversation_is_archived_after_a_yes(start: Start, place: Workplace) -> None:
    with ScriptedServer([ANSWER, AGAIN]) as server:
        program = start(server, "Hello?")
        program.wait_for("Hello you.")
        (path,) = (place.home / "sessions").rglob("rollout-*")
        program.type("/archive")
        program.press("enter")
        program.wait_for("Archive this conversation?")
        program.type("y")
        program.wait_for("Archived session ")
        assert not path.exists()
        assert (place.home / "archived_sessions" / path.name).exists()
        program.type("And now?")
        program.press("enter")
        program.wait_for("Still here.")
        first, second = server.requests
        assert second.body["prompt_cache_key"] != first.body["prompt_cache_key"]


def test_a_conversation_is_deleted_after_a_yes(start: Start, place: Workplace) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/delete")
        program.press("enter")
        program.wait_for("Delete this conversation for good?")
        program.press("up", "enter")
        program.wait_for("this conversation is not saved")
        program.type("Hello?")
        program.press("enter")
        program.wait_for("Hello you.")
        (path,) = place.home.rglob("rollout-*")
        program.type("/delete")
        program.press("enter")
        program.wait_for("Delete this conversation for good?")
        program.press("up", "enter")
        program.wait_for("Deleted session ")
        assert path not in place.home.rglob("rollout-*")


def test_an_undo_asks_before_it_overwrites_an_edit(
    start: Start, place: Workplace
) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "echo theirs > a.txt"})
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, "-s", "danger-full-access", "Write it.", columns=240)
        program.wait_for("Hello you.")
        program.wait_until(lambda: program.title == "work")
        (place.cwd / "a.txt").write_text("mine\n", encoding="utf-8")
        program.type("/undo\r")
        program.wait_for("Do it all the same?")
        assert "Not done: turn 1 edited since: " in program.text
        assert re.search(
            r"\u2022 Edited since .*\n.* Edited a.txt .*\n.*\n.*\d [+]mine",
            program.text,
        )
        program.type("n")
        program.wait_for("Ask codex-py")
        assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "mine\n"
        program.type("/undo\r")
        program.wait_for("Do it all the same?")
        program.type("y")
        program.wait_for("Undid turn 1: a.txt")
        assert not (place.cwd / "a.txt").exists()
        program.type("/redo\r")
        program.wait_for("Made again turn 1: a.txt")
        # What the undo replaced.
        assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "mine\n"


def test_an_undo_asks_before_it_reaches_into_another_conversation(
    start: Start, place: Workplace
) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "echo theirs > a.txt"})
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, "-s", "danger-full-access", "Write it.", columns=240)
        program.wait_for("Hello you.")
        program.wait_until(lambda: program.title == "work")
        program.type("/new\r")
        program.wait_for("/resume")
        program.type("/undo\r")
        program.wait_for("It belongs to another conversation")
        program.type("n")
        program.wait_for("Ask codex-py")
        assert (place.cwd / "a.txt").exists()
        program.type("/undo\r")
        program.wait_for("It belongs to another conversation")
        program.type("y")
        program.wait_until(
            lambda: (
                re.search(r"Undid turn 1 of session \S+: a.txt", program.text)
                is not None
            )
        )
        assert not (place.cwd / "a.txt").exists()


def test_an_undo_asks_about_what_may_be_the_users(
    start: Start, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codex_py.patch.undo.copies.run_times._LONG_NS", -1)
    turn = TurnRecorder(place.home, place.cwd, os.environ, "another")
    turn.copy()
    turn.begin_life()
    (place.cwd / "new").touch()
    turn.end_life()
    turn.end_turn(1, is_new=True)
    with ScriptedServer([]) as server:
        program = start(server, columns=240)
        program.wait_for("Ask codex-py")
        for answer in "ny":
            program.type("/undo\r")
            program.wait_for("It belongs to another conversation")
            program.type("y")
            program.wait_for("or somebody else while it ran, changed")
            program.type(answer)
            program.wait_for("Ask codex-py")
            if answer == "n":
                assert (place.cwd / "new").exists()
        program.wait_for("Undid turn 1 of session another: new")
        assert not (place.cwd / "new").exists()


def test_an_undo_waits_for_the_one_before(start: Start, place: Workplace) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "touch $(seq 500)"})
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, "-s", "danger-full-access", "Write it.", columns=240)
        program.wait_for("Hello you.")
        program.wait_until(lambda: program.title == "work")
        for command in ("/undo", "/redo", "/undo"):
            program.type(command)
            program.wait_for(f"\u203a {command}")
            program.press("enter")
            program.wait_for("Ask codex-py")
        program.wait_until(lambda: program.text.count("Undid turn 1") == 2)
        assert program.text.count("Made again turn 1") == 1
        assert list(place.cwd.iterdir()) == []
