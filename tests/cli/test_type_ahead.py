"""What is typed while the program is loaded, in a terminal."""

import signal
import sys
import termios
import time
from collections.abc import Generator

import pytest

from tests.frontends.tui.terminals import Start, starting
from tests.frontends.tui.test_approval import says
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer


@pytest.fixture
def start(place: Workplace) -> Generator[Start]:
    with starting(place) as start:
        yield start


def wait_until_taken(program: PtyProgram) -> None:
    """Until every key comes as it is."""
    deadline = time.monotonic() + 20
    while program.modes()[0] & termios.ICRNL:
        assert time.monotonic() < deadline
    program.settle(0)
    assert b"\x1b[?1004h" not in program.raw, "it is too late: the program is loaded"


def test_a_line_typed_before_the_first_frame_is_sent_and_never_echoed(
    start: Start,
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        wait_until_taken(program)
        program.type("one two\r")
        program.wait_for("Understood.")
        assert program.scrollback[0].startswith("codex-py")
        assert server.requests[0].body["input"][-1]["content"][0]["text"] == "one two"


def test_several_lines_typed_before_the_first_frame_are_a_draft(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        wait_until_taken(program)
        program.type("one\rtwo\r")
        program.wait_for("\u203a one\n  two")
        program.settle(0.5)
        assert server.requests == []
        program.press("enter")
        program.wait_for("Understood.")
        assert server.requests[0].body["input"][-1]["content"][0]["text"] == "one\ntwo"


def test_text_that_the_terminal_has_echoed_before_the_start_is_in_the_composer_alone(
    start: Start,
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        # As a rule this is echoed; on a busy machine it may come too late for that.
        program.type("typed early")
        program.wait_for("\u203a typed early\n")
        assert program.scrollback[0].startswith("codex-py")
        program.press("enter")
        program.wait_for("Understood.")


def test_an_enter_that_the_terminal_has_echoed_before_the_start_counts(
    start: Start,
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = start(server)
        program.type("typed early\r")
        program.wait_for("Understood.")
        assert (
            server.requests[0].body["input"][-1]["content"][0]["text"] == "typed early"
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(start: Start, number: signal.Signals) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        wait_until_taken(program)
        if number is signal.SIGINT:
            program.press("c-c")
        else:
            program.process.send_signal(number)
        assert program.wait() == 128 + number
        assert program.modes() == program.initial_modes


def test_ctrl_c_as_the_keyboard_is_taken_gives_it_back(place: Workplace) -> None:
    script = (
        "import os, signal, termios\n"
        "from codex_py.cli.start import start\n"
        "take = termios.tcsetattr\n"
        "def set_and_interrupt(*args):\n"
        "    take(*args)\n"
        "    termios.tcsetattr = take\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "termios.tcsetattr = set_and_interrupt\n"
        "start([], as_apply_patch=False)\n"
    )
    command = [sys.executable, "-c", script]
    with PtyProgram(command, place.cwd, environment(place.home, {})) as program:
        assert program.wait() == 130
        assert program.modes() == program.initial_modes


@pytest.mark.parametrize(
    "words", [["--help"], ["-s", "nonsense"], ["-c", "a.b=1", "features"]]
)
def test_a_command_without_a_session_leaves_the_terminal_as_it_was(
    start: Start, words: list[str]
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, *words)
        assert program.wait() in {0, 2, 78}
        assert program.modes() == program.initial_modes


def test_in_the_background_it_does_not_touch_the_terminal(place: Workplace) -> None:
    command = ["/bin/bash", "-mc", f"{sys.executable} -m codex_py --help & wait $!"]
    with PtyProgram(command, place.cwd, environment(place.home, {})) as program:
        assert program.wait() == 0
