"""`!COMMAND`: it has the terminal, and what it prints is kept.

Also tests `frontends/tui/relay.py`.
"""

import signal

import pytest

from codex_py.frontends.tui.relay import Modes, kept_output
from codex_py.frontends.tui.shell import changes_shell_alone
from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.frontends.tui.test_approval import says
from tests.frontends.tui.test_composer import prompts
from tests.frontends.tui.test_lifecycle import assert_is_restored
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

EMPTY = "\u203a Ask codex-py"


def begin(start: Start, server: ScriptedServer, **more: int) -> PtyProgram:
    program = start(server, **more)  # pyright: ignore[reportArgumentType]  # rows and columns
    program.wait_for(IDLE)
    program.wait_for("/ commands")
    return program


def run(program: PtyProgram, command: str) -> None:
    program.type(f"!{command}\r")
    program.wait_for(f"$ {command[:20]}")


def told(program: PtyProgram, server: ScriptedServer) -> str:
    """What the model is told of the last command."""
    program.wait_for(EMPTY)
    program.type("What now?\r")
    program.wait_for("Understood.")
    return prompts(server)[-2]


def test_a_command_reads_from_its_terminal(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        run(program, "read -p 'name? ' x </dev/tty; echo got $x; test -t 0 && tty")
        program.wait_for("\nname?")
        program.type("Ada L.\r")
        program.wait_for("got Ada L.")
        program.wait_for("\u2022 You ran read")
        output = told(program, server)
    assert "Output:\nname? Ada L.\ngot Ada L.\n/dev/" in output
    # Once as it was printed; the cell does not repeat it.
    assert "\n".join(program.scrollback).count("got Ada L.") == 1


def test_a_password_is_neither_shown_nor_kept(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        run(program, "read -rs -p 'Password: ' p; echo; echo ${#p}")
        program.wait_for("\nPassword:")
        program.settle()
        program.type("secret\r")
        program.wait_for("\n6\n")
        output = told(program, server)
        assert "secret" not in output
    assert b"secret" not in program.raw


def test_a_program_over_the_whole_screen_is_used_and_not_kept(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        full = r"printf 'before\n\033[?1049h\033[?25lwhole screen'; stty raw -echo; head -c1 >/dev/null;"
        program.type(
            f"!{full}" + r"stty sane; printf '\033[?25h\033[?1049lbehind\n'" + "\r"
        )
        program.wait_until(lambda: program.is_covered)
        program.wait_for("whole screen")
        program.type("q")
        program.wait_for("You ran")
        output = told(program, server)
    assert (
        "before\nbehind\n[what was shown over the whole screen is not kept]\n" in output
    )
    assert "whole screen'" in output
    assert output.count("whole screen") == 2


def test_ctrl_c_is_the_commands(start: Start, place: Workplace) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        run(
            program,
            "trap 'echo caught; exit 3' INT; echo begun; while :; do sleep 0.05; done",
        )
        program.wait_for("\nbegun")
        program.press("c-c")
        program.wait_for("caught")
        program.wait_for("exit 3 \u00b7")
        program.wait_for(EMPTY)
        run(program, "sleep 600")
        program.settle(0.3)
        # Without a job control that could continue it, nothing stops.
        program.press("c-z")
        program.settle(0.3)
        program.press("c-c")
        program.wait_for("exit 130")
        program.wait_for(EMPTY)
        leave(program)


@pytest.mark.parametrize("name", ["STOP", "TSTP", "TTIN", "TTOU"])
def test_a_command_that_has_stopped_itself_ends_with_ctrl_c(
    start: Start, name: str
) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(program, f"echo begun; kill -{name} $$; sleep 600")
        program.wait_for("\nbegun")
        program.settle(0.3)
        program.press("c-c")
        program.wait_for("exit 130")
        program.wait_for(EMPTY)
        leave(program)


@pytest.mark.parametrize("key", ["c-z", "c-\\"])
def test_a_command_that_stops_itself_at_a_key_goes_on(start: Start, key: str) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(
            program,
            "trap 'kill -STOP $$' TSTP QUIT; echo begun; read line; echo it was $line",
        )
        program.wait_for("\nbegun")
        program.press(key)
        program.settle(0.5)
        program.type("ready\r")
        program.wait_for("it was ready")
        program.wait_for(EMPTY)
        leave(program)


@pytest.mark.parametrize(
    ("typed", "draft"),
    [
        ("ahead words", "\u203a ahead words\n"),
        ("ahead words\r", "\u203a ahead words\n"),
        ("one\rtwo\rthree", "\u203a one\n  two\n  three\n"),
        ("first\r\rlast\r\r", "\u203a first\n\n  last\n"),
        ("caf\u00e9 \u4e2d\u6587", "\u203a caf\u00e9 \u4e2d\u6587\n"),
        ("lefx\x7ft\x1b[D over", "\u203a left over\n"),
        ("!touch made\r", "\u203a !touch made\n"),
    ],
)
def test_text_typed_ahead_of_the_end_of_a_command_is_the_draft(
    start: Start, place: Workplace, typed: str, draft: str
) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(program, "echo begun; while [ ! -e go ]; do sleep 0.05; done")
        program.wait_for("\nbegun")
        program.type(typed)
        program.settle(0.3)
        (place.cwd / "go").touch()
        program.wait_until(lambda: draft in f"{program.text}\n", what=draft)
        program.settle(0.4)
        assert draft in f"{program.text}\n"
        assert not (place.cwd / "made").exists()
        assert server.requests == []


def test_keys_that_a_command_has_read_or_hidden_are_no_draft(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(program, "echo begun; read line; echo it was $line")
        program.wait_for("\nbegun")
        program.type("mine\rmore")
        program.wait_for("it was mine")
        program.wait_until(lambda: "\u203a more\n" in f"{program.text}\n")
        program.press("c-c")
        program.wait_for(EMPTY)
        run(
            program,
            "stty -echo; echo hides; while [ ! -e go ]; do sleep 0.05; done",
        )
        program.wait_for("\nhides")
        program.type("secret")
        program.settle(0.3)
        (place.cwd / "go").touch()
        program.wait_for(EMPTY)
        program.settle(0.4)
        assert "secret" not in program.text


def test_a_command_is_told_of_a_new_size(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server, columns=90, rows=30)
        run(
            program,
            "stty size; trap 'stty size; exit' WINCH; while :; do sleep 0.05; done",
        )
        program.wait_for("\n30 90")
        program.resize(70, 20)
        program.wait_for("\n20 70")
        program.wait_for(EMPTY)


def test_a_background_command_goes_on_and_prints_nothing_more(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        run(program, "(sleep 0.5; echo late; echo on > there; sleep 60) & echo at once")
        program.wait_for("\nat once")
        program.wait_for("You ran (sleep")
        program.wait_for(EMPTY)
        program.wait_until(
            lambda: (place.cwd / "there").exists() or program.settle(0.1) or False
        )
        program.settle()
        assert "\nlate" not in program.text
        assert "at once\n\n</result>" in told(program, server)
        leave(program)


def test_the_terminal_is_whole_after_a_program_that_was_killed(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        run(
            program,
            r"stty raw -echo; printf '\033[?1049h\033[?1000;1006h\033[?25lfull'; kill -9 $$",
        )
        program.wait_for("exit 137")
        program.wait_for(EMPTY)
        assert not program.is_covered
        assert b"\x1b[?1000l" in program.raw
        assert b"\x1b[?1006l" in program.raw
        program.type("hello\r")
        program.wait_for("Understood.")
        program.wait_for("\u203a hello")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_if_the_program_is_ended_meanwhile(
    start: Start, number: signal.Signals
) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(program, r"printf '\033[?1049h\033[?1000hfull'; sleep 600")
        program.wait_for("full")
        program.settle(0.2)
        program.process.send_signal(number)
        assert program.wait() == 128 + number
        assert_is_restored(program)
        assert not program.is_covered
        assert program.raw.rfind(b"\x1b[?1000l") > program.raw.rfind(b"\x1b[?1000h")


def test_the_agent_goes_on_behind_a_command(start: Start) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *ev_message("Done."), ev_completed()]]
    ) as server:
        program = start(server, "Begin.")
        program.wait_for("Working")
        run(program, "read x; echo got $x")
        pause.until.set()
        program.settle(0.5)
        assert "Done." not in program.text
        program.type("it\r")
        program.wait_for("got it")
        program.wait_for("Done.")


def test_much_output_is_bounded_and_its_end_is_shown(start: Start) -> None:
    with ScriptedServer([says("Understood.")]) as server:
        program = begin(start, server)
        program.type("!seq 1 30000; echo end\r")
        program.wait_for("\nend\n")
        output = told(program, server)
    assert "characters omitted" in output
    assert len(output) < 50_000


@pytest.mark.parametrize(
    "command", ["cd /", "cd", "export A=1", "source x", "alias a=b"]
)
def test_it_is_said_that_each_command_starts_anew(start: Start, command: str) -> None:
    with ScriptedServer([]) as server:
        program = begin(start, server)
        run(program, command)
        program.wait_for("Each ! command starts in the folder of the conversation")


def test_only_what_changes_the_shell_alone_is_said_to_have_no_effect() -> None:
    alone = ("cd /tmp", "pushd a", "export A=b c", ". venv/bin/activate", "umask 077")
    others = (
        "cd /tmp && ls",
        "ls",
        "cdrecord x",
        "export A=1; env",
        "set -e\nmake",
        "true | cd x",
    )
    assert [command for command in alone if not changes_shell_alone(command)] == []
    assert [command for command in others if changes_shell_alone(command)] == []


def test_modes_are_taken_back_however_they_come() -> None:
    sent = b"\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?25l\x1b[?7l\x1b[>1u\x1b[3;9r"
    modes = Modes()
    for cut in range(len(sent)):
        modes = Modes()
        modes.follow(sent[:cut])
        modes.follow(sent[cut:])
        assert modes.taken_back() == (
            b"\x1b[<1u\x1b7\x1b[r\x1b8\x1b[?1049l\x1b[?1l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b>\x1b[0m"
        )
    modes.follow(b"\x1b[?7;25h\x1b[?1;2004l\x1b>\x1b[<u\x1b[?1049l")
    assert modes.taken_back() == b"\x1b7\x1b[r\x1b8\x1b[0m"


def test_colours_are_kept_and_screens_are_not() -> None:
    assert kept_output("a\r\n\x1b[31mb\x1b[0m\r\n") == "a\n\x1b[31mb\x1b[0m\n"
    covered = kept_output("a\r\n\x1b[?1049hvi\r\nvi\x1b[?1049lb\r\n\x1b[?47hless")
    assert covered == "a\nb\n[what was shown over the whole screen is not kept]\n"
