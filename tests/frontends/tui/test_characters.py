import pytest
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.characters import alone, ascii_only
from codex_py.testing import Pause, ev_completed, ev_created, ev_function_call, ev_message
from codex_py.testing.events import ev_text_deltas
from tests.frontends.tui.terminals import IDLE, Start
from tests.support.server import ScriptedServer

SEQUENCES = "\U0001f469\u200d\U0001f4bb \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea \u2764\ufe0f"


@pytest.mark.parametrize("text", [SEQUENCES, "漢字…→ \u00e9 e\u0301 \ufb01 ½ ✔ \u2500\x1b[0m"])
def test_what_stands_for_a_character_is_as_wide(text: str) -> None:
    assert [get_cwidth(alone(char)) for char in text] == [get_cwidth(char) for char in text]
    shown = ascii_only(text.replace("\x1b[0m", ""))
    assert shown.isascii()
    assert len(shown) == get_cwidth(text.replace("\x1b[0m", ""))


def test_words_that_say_the_same_stand_for_what_ascii_lacks() -> None:
    assert ascii_only("\u201cÇa\u201d \u2013 it\u2019s → 漢字 ✔…") == '"Ca" - it\'s > ???? x~'


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
        assert not any(char in program.raw.decode() for char in "\u200d\ufe0f\U0001f3fd\U0001f1e9")
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
            *ev_text_deltas(["| a | b |\n|---|---|\n| \u201cc\u201d | d… |\n\n- [x] it"]),
            Pause(),
        ],
        [*ev_message("Done."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, LC_ALL="C", columns=60)
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
        program.type("And then this as well, with words enough to be cut at the edge\t")
        program.settle()
        program.press("c-t")
        program.wait_until(lambda: program.is_covered)
        program.settle()
        program.press("esc")
        program.wait_until(lambda: not program.is_covered)
        program.press("esc")
        program.wait_for("interrupted")
    assert program.raw.isascii(), {char for char in program.raw.decode() if not char.isascii()}
