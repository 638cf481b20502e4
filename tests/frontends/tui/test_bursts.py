"""Text that the terminal sends as if it were typed, because it does not mark what is pasted."""

from collections.abc import Callable

import pytest

from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.frontends.tui.terminals import IDLE, Start
from tests.frontends.tui.test_approval import QUESTION, asks, says
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

BURSTS = [
    ("name\tage\tcity", "\u203a name    age    city\n"),
    ("def f():\r\treturn 1\r\rdone", "\u203a def f():\n      return 1\n\n  done\n"),
    ("all:\r\tgcc -o x x.c\r\t./x\r", "\u203a all:\n      gcc -o x x.c\n      ./x\n"),
    ("/mo\tx", "\u203a /mo    x\n"),
    ("\tindented line", "\u203a     indented line\n"),
    ("!touch made\r!touch more\r", "\u203a !touch made\n  !touch more\n"),
    ("/quit\r/new\r", "\u203a /quit\n  /new\n"),
    ("see @wor\tnow", "\u203a see @wor    now\n"),
    ("?\rwhat", "\u203a ?\n  what\n"),
    ("? what", "\u203a ? what\n"),
    ("y\ry\r1\r", "\u203a y\n  y\n  1\n"),
]


def begun(start: Start, server: ScriptedServer, *args: str) -> PtyProgram:
    program = start(server, *args)
    program.wait_for(IDLE)
    program.settle()
    return program


def assert_is_draft(program: PtyProgram, shown: str) -> None:
    program.wait_until(lambda: shown in f"{program.text}\n", what=shown)
    program.settle(0.4)
    assert shown in f"{program.text}\n"


@pytest.mark.parametrize(("burst", "shown"), BURSTS)
def test_a_burst_is_a_draft(
    start: Start, place: Workplace, burst: str, shown: str
) -> None:
    (place.cwd / "word.txt").touch()
    with ScriptedServer([]) as server:
        program = begun(start, server)
        program.type(burst)
        assert_is_draft(program, shown)
        assert not (place.cwd / "made").exists()
        assert server.requests == []


@pytest.mark.parametrize(("burst", "shown"), BURSTS)
def test_a_burst_is_a_draft_while_it_works(
    start: Start, burst: str, shown: str
) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *ev_message("Done."), ev_completed()]]
    ) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.type(burst)
        assert_is_draft(program, shown)
        pause.until.set()
        program.wait_for("Done.")
        assert_is_draft(program, shown)
        assert len(server.requests) == 1


@pytest.mark.parametrize(("burst", "shown"), BURSTS)
def test_a_burst_answers_no_question(
    start: Start, place: Workplace, burst: str, shown: str
) -> None:
    with ScriptedServer([asks("touch made")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.settle()
        program.type(burst)
        assert_is_draft(program, shown)
        program.wait_for("Approve: touch made")
        assert not (place.cwd / "made").exists()
        assert len(server.requests) == 1


def typed_before(text: str) -> Callable[[PtyProgram], None]:
    def work(program: PtyProgram) -> None:
        for letter in text:
            program.type(letter)
            program.settle(0.02)

    return work


@pytest.mark.parametrize(
    ("before", "burst", "draft"),
    [
        ("/mo", "\tx\ty", "/mo    x    y"),
        ("/", "new\rx", "/new\n  x"),
        ("@w", "o\t\tx", "@wo        x"),
    ],
)
def test_a_burst_takes_nothing_that_a_list_offers(
    start: Start, place: Workplace, before: str, burst: str, draft: str
) -> None:
    (place.cwd / "word.txt").touch()
    with ScriptedServer([]) as server:
        program = begun(start, server)
        typed_before(before)(program)
        program.wait_for("> ")
        program.type(burst)
        assert_is_draft(program, f"\u203a {draft}\n")


@pytest.mark.parametrize("size", [16, 100, 1000])
def test_a_burst_in_pieces_is_one_draft(start: Start, size: int) -> None:
    text = "".join(f"\tline {n} of it\r" for n in range(200))
    with ScriptedServer([[*ev_message("Understood."), ev_completed()]]) as server:
        program = begun(start, server)
        for place in range(0, len(text), size):
            program.type(text[place : place + size])
            program.read_for(0.002)
        program.wait_for("line 199 of it")
        program.settle(0.4)
        assert server.requests == []
        program.press("enter")
        program.wait_for("Understood.")
        told = server.requests[-1].body["input"][-1]["content"][0]["text"]
    assert told == text.replace("\r", "\n").strip()


def test_a_burst_in_a_search_is_searched_for(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server, "one and two")
        program.wait_for("Understood.")
        program.wait_until(lambda: program.title == "work")
        program.press("c-r")
        program.wait_for("Earlier prompts")
        program.type("one\tand\rtwo\r")
        program.wait_for("/ one and two")
        program.settle(0.3)
        assert "Earlier prompts" in program.text


def test_a_burst_with_a_tab_or_lines_is_text_for_vi_too(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = begun(start, server, "-c", "tui.vim_mode_default=true")
        program.type("one\ttwo\rx")
        assert_is_draft(program, "\u203a one    two\n  x\n")
        program.press("esc")
        program.wait_for("NORMAL")
        program.type("0dwd\tG\r")
        assert_is_draft(program, "\u203a one    two\n  0dwd    G\n  x\n")


def test_a_burst_answers_no_question_of_the_start(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.settle()
        program.type("y\ry\r")
        assert_is_draft(program, "\u203a y\n  y\n")
        assert "trusted" not in (place.home / "config.toml").read_text("utf-8")


@pytest.mark.parametrize("line", ["hello", "hello there, and more"])
def test_a_line_that_is_typed_ahead_with_its_enter_is_sent(
    start: Start, line: str
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begun(start, server)
        program.type(f"{line}\r")
        program.wait_for("Understood.")


def test_more_input_right_behind_a_line_keeps_it_from_being_sent(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = begun(start, server)
        program.type("hello there\r")
        program.read_for(0.03)
        program.type("more")
        assert_is_draft(program, "\u203a hello there\n  more\n")
