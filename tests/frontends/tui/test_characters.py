import pytest
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.characters import alone, ascii_only
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Choice
from codex_py.frontends.tui.theme import Theme
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import ev_text_deltas
from tests.frontends.tui.drawing import panel_text
from tests.frontends.tui.terminals import IDLE, Start
from tests.frontends.tui.test_approval import QUESTION, asks
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

SEQUENCES = (
    "\U0001f469\u200d\U0001f4bb \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea \u2764\ufe0f"
)


@pytest.mark.parametrize(
    "text", [SEQUENCES, "漢字…→ \u00e9 e\u0301 \ufb01 ½ ✔ \u2500\x1b[0m"]
)
def test_a_replacement_is_as_wide_as_its_character(text: str) -> None:
    assert [get_cwidth(alone(char)) for char in text] == [
        get_cwidth(char) for char in text
    ]
    shown = ascii_only(text.replace("\x1b[0m", ""))
    assert shown.isascii()
    assert len(shown) == get_cwidth(text.replace("\x1b[0m", ""))


def test_words_that_say_the_same_stand_for_what_ascii_lacks() -> None:
    assert (
        ascii_only("\u201cÇa\u201d \u2013 it\u2019s → 漢字 ✔…")
        == '"?a" - it\'s > ???? x~'
    )


def test_sequences_of_emoji_fall_apart_where_rows_are_drawn_anew_and_stay_whole_above(
    start: Start,
) -> None:
    stream = [ev_created(), *ev_text_deltas([f"Live {SEQUENCES} "]), Pause()]
    with ScriptedServer([stream]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type(f"Look: {SEQUENCES}")
        program.wait_for("Look: \U0001f469")
        program.settle()
        assert not any(
            char in program.raw.decode() for char in "\u200d\ufe0f\U0001f3fd\U0001f1e9"
        )
        above = len(program.raw)
        program.press("enter")
        program.wait_for("Live \U0001f469")
        program.settle()
        shown = program.raw[above:].decode()
        assert shown.count(SEQUENCES) == 1
        assert shown.count("\u200d") == SEQUENCES.count("\u200d")


def test_a_terminal_that_knows_no_unicode_is_sent_none(start: Start) -> None:
    plan = {"plan": [{"step": f"{n} \u00e9", "status": "pending"} for n in range(9)]}
    replies = [
        [*ev_function_call("call_1", "update_plan", plan), ev_completed()],
        [
            ev_created(),
            *ev_text_deltas(
                ["| a | b |\n|---|---|\n| \u201cc\u201d | d… |\n\n- [x] it"]
            ),
            Pause(),
        ],
        [*ev_message("Done."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, LC_ALL="de_DE.ISO-8859-1", columns=60)
        program.wait_for(IDLE)
        program.type("/")
        program.wait_for("/model")
        program.press("backspace")
        for command in ("/permissions", "/resume"):
            program.type(f"{command}\r")
            program.wait_for("Esc leaves")
            program.press("esc")
            program.wait_until(lambda: "Esc leaves" not in program.text)
        program.type("Do it, \u00e9.\r")
        program.wait_for("Plan")
        program.wait_for("to interrupt")
        program.type("And then this as well, with words enough to be cut at the edge")
        program.settle(0.3)
        program.press("tab")
        program.settle()
        program.press("c-t")
        program.wait_until(lambda: program.is_covered)
        program.settle()
        program.press("esc")
        program.wait_until(lambda: not program.is_covered)
        program.press("esc")
        program.wait_for("interrupted")
    assert program.raw.isascii(), {
        char for char in program.raw.decode() if not char.isascii()
    }


UTF8 = [("C", ""), ("POSIX", "C.UTF-8"), ("", "C"), ("", ""), ("C.UTF-8", "")]
"""Of `LC_ALL` and `LANG`."""
OTHERS = ["de_DE.ISO-8859-1", "ru_RU.KOI8-R"]
COMMAND = "rm -rf /etc/\u30c7\u30fc\u30bf/\u00e9 /etc/\u0430\u0431\u0432 '\u201c\u2022\u2026\u201d'"
IN_ASCII = r"rm -rf /etc/\u30c7\u30fc\u30bf/\xe9 /etc/\u0430\u0431\u0432 '\u201c\u2022\u2026\u201d'"
ADDED = "*** Begin Patch\n*** Add File: \u00e9/\u0431.txt\n+\u017elut\u00fd \u30c7\n*** End Patch"


def assert_shows(program: PtyProgram, text: str) -> None:
    """Also where it goes on in the next row."""
    joined = "".join(text.split())
    program.wait_until(lambda: joined in "".join(program.text.split()), what=text)


@pytest.mark.parametrize(("all_", "lang"), UTF8)
def test_a_question_shows_every_letter_where_no_character_set_is_named(
    start: Start, all_: str, lang: str
) -> None:
    with ScriptedServer([asks(COMMAND)]) as server:
        program = start(server, "Go.", columns=100, LC_ALL=all_, LANG=lang)
        program.wait_for(QUESTION)
        program.wait_for(f"$ {COMMAND}")
        program.type("\u017elut\u00fd \u30c7")
        program.wait_for("\u203a \u017elut\u00fd \u30c7")


@pytest.mark.parametrize("locale", OTHERS)
def test_a_question_has_escapes_for_letters_that_the_terminal_lacks(
    start: Start, locale: str
) -> None:
    patch = [*ev_custom_tool_call("call_2", "apply_patch", ADDED), ev_completed()]
    with ScriptedServer([asks(COMMAND, justification="\u00fcber"), patch]) as server:
        program = start(server, "-a", "untrusted", "Go.", LC_ALL=locale)
        program.wait_for(QUESTION)
        assert_shows(program, f"$ {IN_ASCII}")
        assert_shows(program, r"The model says: \xfcber")
        program.press("c-t")
        program.wait_until(lambda: program.is_covered)
        assert_shows(program, f"$ {IN_ASCII}")
        program.press("esc")
        program.wait_for(QUESTION)
        program.type("n")
        program.wait_for("Conversation interrupted")
        program.wait_until(lambda: program.title == "work")
        program.type("And?\r")
        program.wait_for("Would you like to make the following edits?")
        assert_shows(program, r"\xe9/\u0431.txt")
        assert_shows(program, r"+\u017elut\xfd \u30c7")
        program.press("esc")
        program.wait_until(lambda: "Would you like" not in program.text)
        program.type("\u30c7")
        program.settle()
    assert program.raw.isascii()


def test_questions_of_servers_and_models_have_escapes_too() -> None:
    theme = Theme(unicode=False)
    options = [MenuOption("\u00e9t\u00e9", 1), MenuOption("\u30c7", 2)]
    text = panel_text(
        60, theme, lambda: Choice([("", "Pick \u0430\u0431")], options, cancelled=0)
    )
    assert r"Pick \u0430\u0431" in text
    assert r"\xe9t\xe9" in text
    assert r"\u30c7" in text
