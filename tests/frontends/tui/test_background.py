"""The terminal is asked for its background; it may answer at once, late, in pieces, or never."""

from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

ASKED = b"\x1b]11;?\x1b\\"
ANSWERS = [[*ev_message(f"Answer {n}."), ev_completed()] for n in range(2)]


def ask(program: PtyProgram, prompt: str, answer: str) -> bytes:
    """What is sent to the terminal of the prompt and the answer."""
    seen = len(program.raw)
    program.type(prompt)
    program.wait_for(f"\u203a {prompt}")
    program.settle(0.3)
    program.press("enter")
    program.wait_for(answer)
    return program.raw[seen:]


@pytest.mark.parametrize(
    ("reads", "band"),
    [
        (["\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"], b"48;5;236m\x1b[K"),
        (["\x1b]11;rgb:ffff/ffff", "/ffff\x07"], b"48;5;254m\x1b[K"),
    ],
)
def test_the_colours_suit_the_background_that_the_terminal_reports(
    start: Start, reads: list[str], band: bytes
) -> None:
    with ScriptedServer(ANSWERS[:1]) as server:
        program = start(server)
        program.wait_until(lambda: ASKED in program.raw)
        for read in reads:
            program.type(read)
            program.settle(0.05)
        program.wait_for(IDLE)
        assert "rgb" not in program.text
        assert band in ask(program, "hello", "Answer 0.")
        leave(program)


def test_an_answer_that_comes_late_counts_for_what_comes_next_and_is_not_typed(
    start: Start,
) -> None:
    with ScriptedServer(ANSWERS) as server:
        program = start(server)
        program.wait_for(IDLE)
        assert b"48;5;" not in ask(program, "first", "Answer 0.")
        program.type("a draft\x1b]11;rgb:0000/0000/0000\x07 of mine")
        program.wait_for("\u203a a draft of mine")
        program.settle(0.3)
        program.press("c-c")
        program.wait_for("Ask codex-py")
        assert b"48;5;" in ask(program, "second", "Answer 1.")
        leave(program)


@pytest.mark.parametrize(
    "env",
    [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"COLORFGBG": "0;15"}, {"TERM": "xterm"}],
)
def test_a_terminal_that_could_not_use_the_answer_does_not_ask(
    start: Start, env: dict[str, Any]
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, **env)
        program.wait_for(IDLE)
        program.press("c-d")
        assert program.wait() == 0
        assert ASKED not in program.raw


def test_a_theme_with_a_mistake_is_told_of_and_nothing_is_drawn(
    start: Start, place: Workplace
) -> None:
    path = place.home / "codex-py" / "theme.toml"
    path.parent.mkdir()
    path.write_text('user = "blod"\n', encoding="utf-8")
    with ScriptedServer([]) as server:
        program = start(server)
        assert program.wait() == 78
        assert "theme.toml: 'user' is not like" in program.text.replace("\n", "")
        assert "Ask codex-py" not in program.text
