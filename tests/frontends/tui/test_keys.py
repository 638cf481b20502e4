"""What keys and the terminal's own answers do to the program: while it works, asks, lists and waits."""

import pytest

from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.frontends.tui.terminals import IDLE, Start
from tests.frontends.tui.test_approval import QUESTION, asks, says
from tests.support.images import PNG
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

UNKNOWN = (
    *("\x1b,", "\x1bp", "\x1b\u00fc", "\x1by", "\x1bn", "\x1b1"),
    *(
        "\x1b[1;3A",
        "\x1b[1;3B",
        "\x1b[1;7A",
        "\x1b[1;4C",
        "\x1b\x01",
        "\x1b\x1b[A",
        "\x1b[1;4P",
    ),
    *(
        "\x1b[27;5;9~",
        "\x1b[27;6;67~",
        "\x1b[120;9u",
        "\x1b[121;3u",
        "\x1b[99;6u",
        "\x1b[97;5:3u",
    ),
    *(
        "\x1b]11;rgb:0000/0000/0000\x1b\\",
        "\x1b]11;rgb:0000/0000/0000\x07",
        "\x1b[?62;22;52c",
    ),
    *(
        "\x1b[I",
        "\x1b[O",
        "\x1bP>|kitty(0.35)\x1b\\",
        "\x1b_Gi=1;OK\x1b\\",
        "\x1b[?5u",
        "\x1b[201~",
    ),
    *("\x1b[12;40R", "\x1b[<64;85;12M", "\x1b[24;2~", "\x1bO5z", "\x1b[1;13A"),
)


def press_what_is_unknown(program: PtyProgram, *, known: tuple[str, ...] = ()) -> None:
    for sequence in UNKNOWN:
        if sequence not in known:
            program.type(sequence)
            program.settle(0.01)
    # In two reads, too.
    for sequence in ("\x1b[27;5;9~", "\x1b]11;rgb:0000/0000/0000\x1b\\"):
        program.type(sequence[:4])
        program.settle(0.1)
        program.type(sequence[4:])
    program.settle(0.2)


def test_unknown_keys_do_nothing_while_it_works(start: Start) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *ev_message("Done."), ev_completed()]]
    ) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        press_what_is_unknown(program, known=("\x1b1",))
        program.wait_for("Ask codex-py to do anything")
        program.type("typed")
        program.wait_for("\u203a typed\n")
        pause.until.set()
        program.wait_for("Done.")
        assert "interrupted" not in program.text


@pytest.mark.parametrize("text", ["fail500", "xy", "/cost"])
def test_text_right_behind_esc_is_typed_and_the_turn_is_stopped(
    start: Start, text: str
) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        # In one read it begins as Alt and a letter do, and Alt-F moves by a word.
        program.type(f"\x1b{text}")
        program.wait_for("Conversation interrupted")
        program.wait_for(f"\u203a {text}\n")


def test_alt_with_a_letter_and_text_behind_it_is_no_esc_where_the_terminal_tells_them_apart(
    start: Start,
) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *ev_message("Done."), ev_completed()]]
    ) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.type("\x1b[112;3uxy\x1bp\x1bp")
        program.wait_for("\u203a xy\n")
        # In a draft it moves the cursor, however fast one types.
        program.type("\x1bbz")
        program.wait_for("\u203a zxy\n")
        pause.until.set()
        program.wait_for("Done.")
        assert "interrupted" not in program.text


def test_unknown_keys_answer_no_question(start: Start, place: Workplace) -> None:
    with ScriptedServer([asks("touch made"), says("Made.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        press_what_is_unknown(program)
        program.wait_for(QUESTION)
        assert not (place.cwd / "made").exists()
        program.type("y")
        program.wait_for("Made.")


def test_unknown_keys_do_nothing_in_a_list_and_when_idle(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        press_what_is_unknown(program, known=("\x1b1",))
        program.wait_for("Ask codex-py to do anything")
        program.type("/theme")
        program.press("enter")
        program.wait_for("Background")
        press_what_is_unknown(program)
        program.wait_for("type to search")
        program.press("esc")
        program.wait_for("Ask codex-py to do anything")
        assert "again to go back" not in program.text


@pytest.mark.parametrize("escape", ["\x1b", "\x1b[27u", "\x1b[27;1:1u"])
def test_esc_alone_interrupts_and_twice_goes_back(start: Start, escape: str) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.type(escape)
        program.wait_for("Conversation interrupted")
        # Another Esc right behind it was meant to stop the turn too.
        program.type(escape)
        program.wait_for("Stopped")
        program.type("x\x7f")
        program.type(escape)
        program.wait_for("Press Esc again to go back")
        program.type(escape)
        program.wait_for("Go back")


def test_keys_of_the_kitty_protocol_are_those_of_other_terminals(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type(
            "one\x1b[13;2utwo\x1b[13;5uthree four\x1b[127;5ufive\x1b[97;5u>\x1b[101;5u"
        )
        program.wait_for("\u203a one\n  two\n  >three five")
        program.type("\x1b[99;5u")
        program.wait_for("Ask codex-py to do anything")
        program.type("go\x1b[57414u")
        program.wait_for("Understood.")
        program.type("\x1b[100;5u")
        assert program.wait() == 0
    assert server.requests[-1].body["input"][-1]["content"][0]["text"] == "go"


def test_ctrl_c_with_a_draft_never_leaves_and_up_brings_it_back(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.press("c-c")
        program.wait_for("Press Ctrl-C again to leave")
        program.type("a draft")
        program.wait_for("\u203a a draft\n\n  " + IDLE)
        program.press("c-c")
        program.wait_for("Ask codex-py to do anything")
        program.type("another")
        program.press("up")
        program.wait_for("\u203a a draft\n")
        program.type("?")
        program.press("up", "up")
        program.wait_for("\u203a a draft\n")
        program.press("up", "down", "down")
        program.wait_for("\u203a a draft?\n")
        program.press("c-c", "c-c")
        program.wait_for("Press Ctrl-C again to leave")
        program.press("c-c")
        assert program.wait() == 0


def test_ctrl_c_pressed_twice_to_stop_a_turn_does_not_leave(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        for _ in range(3):
            program.press("c-c")
            program.settle(0.05)
        program.wait_for("Conversation interrupted")
        assert program.process.poll() is None


def test_ctrl_c_after_an_interrupt_says_at_once_how_to_leave(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.press("c-c")
        program.wait_for("Conversation interrupted")
        program.press("c-c")
        program.wait_for("Press Ctrl-C again to leave")


def test_ctrl_c_clears_a_draft_before_it_interrupts(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.type("also this")
        program.wait_for("\u203a also this")
        program.press("c-c")
        program.wait_for("Ask codex-py to do anything")
        program.wait_for("Working")
        program.press("up")
        program.wait_for("\u203a also this")
        program.press("c-c", "c-c")
        program.wait_for("Conversation interrupted")


def test_ctrl_d_leaves_a_running_turn_when_pressed_twice(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        program.press("c-d")
        program.wait_for("press Ctrl-D again to leave")
        program.type("x")
        program.press("backspace")
        program.wait_until(lambda: "Ctrl-D again" not in program.text)
        program.press("c-d")
        program.wait_for("press Ctrl-D again to leave")
        program.press("c-d")
        assert program.wait() == 0


def test_a_draft_that_is_replaced_comes_back_with_its_image(
    start: Start, place: Workplace
) -> None:
    (place.cwd / "a.png").write_bytes(PNG)
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("Begin.")
        program.press("enter")
        program.wait_for("Understood.")
        program.type("look at ")
        program.paste(f"{place.cwd}/a.png")
        program.wait_for("[Image #1]")
        program.press("c-r")
        program.wait_for("> Begin.")
        program.press("enter")
        program.wait_for("\u203a Begin.\n\n  " + IDLE)
        program.press("up")
        program.wait_for("look at [Image #1]")
        program.press("backspace", "backspace")
        program.wait_until(
            lambda: "[Image" not in program.text, what="the label removed whole"
        )
