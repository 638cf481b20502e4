"""The lists below the composer and those to pick from: how many there are, and what is said of each.

Tests `frontends/tui/fitting.py`, `frontends/tui/menu.py` and `frontends/tui/picker.py`.
"""

import re

import pytest
from prompt_toolkit.layout import Window

from codex_py.cli.commands import find_command
from codex_py.frontends.tui.commands.elsewhere import ELSEWHERE
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.page import Page
from codex_py.frontends.tui.picker import Picker
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.drawing import panel_text, window_text
from tests.frontends.tui.shown import PLAIN
from tests.frontends.tui.terminals import IDLE, Start
from tests.support.server import ScriptedServer

SIZES = pytest.mark.parametrize(
    ("columns", "rows", "seen"), [(60, 16, 5), (80, 24, 12), (140, 40, 12)]
)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
ANSWER = [*ev_message("Hello you."), ev_completed()]


@SIZES
def test_a_list_says_how_many_there_are(
    start: Start, columns: int, rows: int, seen: int
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, columns=columns, rows=rows)
        program.wait_for(IDLE)
        program.type("/")
        program.wait_for("  1/")
        listed = [line for line in program.lines if line.strip("> ").startswith("/")]
        assert len(listed) >= seen
        program.press("up")
        program.wait_until(lambda: "  1/" not in program.text)
        place = next(
            line for line in program.lines if line.strip().partition("/")[0].isdigit()
        )
        number, _, count = place.strip().partition("/")
        assert number == count


def test_it_is_said_that_nothing_was_found_and_enter_sends_all_the_same(
    start: Start,
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/zzz")
        program.wait_for("nothing found")
        program.press("enter")
        program.wait_for("no command /zzz. (Up brings it back)")
        program.wait_for("Ask codex-py")
        assert "nothing found" not in program.text
        program.type("it costs $5")
        program.settle()
        assert "nothing found" not in program.text
        program.type(" @zzz")
        program.wait_for("nothing found")
        program.press("enter")
        program.wait_for("Hello you.")
        assert "nothing found" not in program.text


@pytest.mark.parametrize(
    "text",
    [
        *("see @Zzzq", "@Zzzq", "/zzzq", "$zzzq", "do $zzzq", '("@zzzq', "one\n@zzzq"),
        *('@"zz qq', 'see @"zz'),
    ],
)
def test_tab_sends_no_name_that_is_not_found(start: Start, text: str) -> None:
    pause = Pause()
    with ScriptedServer([ANSWER, [ev_created(), pause, *ANSWER]]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type(text)
        program.settle(0.4)
        program.press("tab")
        program.settle(0.4)
        assert server.requests == []
        program.press("esc", "tab")
        program.settle(0.4)
        assert server.requests == []
        program.press("c-c")
        program.wait_for("Ask codex-py")
        program.type("Begin.")
        program.settle(0.2)
        # Where no name is written it sends, as in Codex.
        program.press("tab")
        program.wait_for("Hello you.")
        program.wait_until(lambda: program.title == "work")
        program.type("Again.\r")
        program.wait_for("Working")
        program.type(text)
        program.settle(0.4)
        program.press("tab")
        program.settle(0.4)
        assert f"\u203a {text.splitlines()[0]}" in program.lines
        pause.until.set()
        program.wait_until(lambda: program.title == "work")
        assert len(server.requests) == 2


@pytest.mark.parametrize("word", ["quit", "exit", "Exit", ":q", ":wq"])
def test_a_word_that_leaves_other_programs_leaves(start: Start, word: str) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type(f"{word}\r")
        assert program.wait() == 0
        assert server.requests == []


def test_a_word_that_leaves_ends_no_work(start: Start) -> None:
    pause = Pause()
    with ScriptedServer([[ev_created(), pause, *ANSWER], ANSWER]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.type("exit\r")
        program.wait_for("the agent works: /quit leaves all the same")
        program.wait_for("\u203a exit")
        pause.until.set()
        program.wait_for("Hello you.")
        program.wait_until(lambda: program.title == "work")
        # Part of a sentence it is none.
        program.type(" now\r")
        program.wait_until(lambda: len(server.requests) == 2)


def test_text_after_an_unknown_command_is_not_part_of_its_name(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/qiut\r")
        program.wait_for("no command /qiut. Did you mean /quit? (Up brings it back)")
        program.press("up")
        program.wait_for("\u203a /qiut")
        program.press("c-c")
        program.type("/foo\r")
        program.wait_for("no command /foo.")
        program.type("hello\r")
        program.wait_for("Hello you.")
        assert server.requests[-1].body["input"][-1]["content"][0]["text"] == "hello"


def test_a_command_of_another_agent_is_answered_with_what_does_the_same(
    start: Start,
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/usage\r")
        program.wait_for("no command /usage. Use /cost. (Up brings it back)")


def test_advice_for_slash_commands_names_only_what_there_is(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server, columns=100, rows=80)
        program.wait_for(IDLE)
        program.type("/help\r")
        program.wait_for("/quit")
        listed = set(re.findall(r"(?<![\w`])/([a-z-]+)", program.text))
    assert listed.isdisjoint(ELSEWHERE)
    for advice in ELSEWHERE.values():
        assert set(re.findall(r"(?<![\w`])/([a-z-]+)", advice)) <= listed | {"editors"}
        for command in re.findall(r"`codex-py ([a-z]+)", advice):
            assert find_command(command), command


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_models_say_what_they_are_for_and_what_they_cost(
    start: Start, columns: int
) -> None:
    with ScriptedServer([]) as server:
        price = "model_prices.gpt-6-astra={input=2.5,output=10}"
        program = start(server, "-c", price, columns=columns)
        program.wait_for(IDLE)
        program.type("/model")
        program.press("enter")
        program.wait_for("> gpt-5.5")
        program.type("astra")
        program.wait_for("> gpt-6-astra  ")
        told = "the hardest work · $2.5 in, $10 out per M · 272k window"
        program.wait_until(lambda: told in " ".join(program.text.split()))
        program.press("enter")
        program.wait_for("the model's own")
        assert "ultra" in program.text
        program.press("esc")


def test_an_unknown_model_is_used_if_the_user_insists(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/model gpt-5.5 hihg")
        program.press("enter")
        program.wait_for(
            "gpt-5.5 is known to have the efforts low, medium, high, xhigh, and not 'hihg'"
        )
        program.type("/model nonsense high")
        program.press("enter")
        program.wait_for("Nothing is known here of the model nonsense.")
        program.type("yes")
        program.press("enter")
        program.settle()
        program.press("esc")
        program.wait_until(lambda: "> No" not in program.text)
        assert "Model: nonsense" not in program.text
        program.press("c-c")
        program.wait_for("Ask codex-py")
        program.type("/model nonsense high")
        program.press("enter")
        program.wait_for("> No")
        program.press("up", "enter")
        program.wait_for("Model: nonsense high")


@pytest.mark.parametrize(("columns", "rows"), [(60, 16), (80, 24), (140, 40)])
def test_model_and_permissions_change_within_a_turn(
    start: Start, columns: int, rows: int
) -> None:
    pause = Pause()
    call = ev_function_call("call_1", "update_plan", {"plan": []})
    replies = [[ev_created(), pause, *call, ev_completed()], ANSWER]
    with ScriptedServer(replies) as server:
        program = start(server, "Go.", columns=columns, rows=rows)
        program.wait_for("Working")
        program.type("/model gpt-5.4 high")
        program.press("enter")
        program.wait_for("Model: gpt-5.4 high, from the next step on")
        program.type("/permissions")
        program.press("enter")
        program.wait_for("> Ask for approval")
        program.press("up", "enter")
        program.wait_for("Let the agent do all that you may, without asking?")
        # No typed word gives it.
        program.type("y")
        program.wait_until(lambda: "without asking?" not in program.text)
        program.press("c-c")
        program.wait_for("Ask codex-py")
        assert "danger-full-access" not in program.text
        program.type("/permissions")
        program.press("enter")
        program.wait_for("> Ask for approval")
        program.press("down", "down", "enter")
        program.wait_for("Permissions: Read only, from the next step on")
        pause.until.set()
        program.wait_for("Hello you.")
    first, second = (request.body for request in server.requests)
    assert (first["model"], second["model"]) == ("gpt-5.5", "gpt-5.4")
    assert second["reasoning"]["effort"] == "high"
    told = [str(item) for item in second["input"][len(first["input"]) :]]
    assert any("<model_switch>" in item for item in told)
    assert any("read-only" in item for item in told)


def test_a_model_of_another_provider_waits_for_the_end_of_the_turn(
    start: Start,
) -> None:
    pause = Pause()
    with ScriptedServer([[ev_created(), pause, *ANSWER]]) as server:
        program = start(server, "Go.")
        program.wait_for("Working")
        program.type("/model anthropic/claude-opus-5 high")
        program.press("enter")
        program.wait_for("choose it when the")
        pause.until.set()
        program.wait_for("Hello you.")


def test_rows_that_are_too_wide_end_in_an_ellipsis() -> None:
    told: Fragments = [
        ("bold", "• Trying again"),
        ("class:quiet", " in 5s (try 5, 1s; Esc stops)"),
    ]
    page = Page(Window(), lambda: [told], lambda: [[("", "漢字" * 20)]])
    first, *_, last = (
        _STYLES.sub("", window_text(40, PLAIN, page)).rstrip("\n").splitlines()
    )
    assert first == "• Trying again in 5s (try 5, 1s; Esc st…"
    assert last == f"{'漢字' * 9}漢…"


def test_the_title_of_a_list_that_is_too_wide_ends_in_an_ellipsis() -> None:
    title = "Resume a session (this folder, last used, active)"
    shown = panel_text(40, PLAIN, lambda: Picker(title, [MenuOption("one", 1)]))
    assert "  Resume a session (this folder, last u…\n" in _STYLES.sub("", shown)
