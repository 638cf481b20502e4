"""How the program starts and ends, and what it does with the terminal meanwhile.

Tests `frontends/tui/screen.py`, `frontends/tui/terminal_run.py`, `frontends/tui/terminal_ui.py`
and `process/terminal_child.py`.
"""

import os
import re
import signal
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
    ev_text_deltas,
)
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.sandbox.local_backends import BACKENDS
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

FREE = ("-s", "danger-full-access")
SLEEP = [
    *ev_function_call("call_1", "exec_command", {"cmd": "sleep 417"}),
    ev_completed(),
]
_ON = re.compile(
    rb"\x1b\[\?(2004|1004|2026|25)([hl])|\x1b\[(22|23);0t|\x1b\[([><])[25]u"
)


def modes_left_on(raw: bytes) -> dict[str, bool]:
    """What the program has switched on and off, as it stands in the end."""
    modes: dict[str, bool] = {}
    for match in _ON.finditer(raw):
        if match[1]:
            modes[match[1].decode()] = match[2] == b"h"
        elif match[3]:
            modes["title"] = match[3] == b"22"
        else:
            modes["kitty"] = match[4] == b">"
    return modes


def assert_is_restored(program: PtyProgram) -> None:
    assert program.modes() == program.initial_modes
    assert modes_left_on(program.raw) == {
        key: key == "25" for key in modes_left_on(program.raw)
    }


def session_files(place: Workplace) -> list[Path]:
    return sorted((place.home / "sessions").rglob("*.jsonl"))


def sleepers() -> list[str]:
    """Commands of `SLEEP` that run."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"sleep\x00417\x00" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


def test_a_conversation_without_a_prompt_leaves_no_file(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.press("c-c")
        program.wait_for("Press Ctrl-C again to leave")
        program.press("c-c")
        assert program.wait() == 0
    assert "To continue" not in "\n".join(program.scrollback)
    assert session_files(place) == []
    assert_is_restored(program)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_turn_in_order(
    start: Start, place: Workplace, number: signal.Signals, code: int
) -> None:
    with ScriptedServer(
        [SLEEP, [*ev_message("Hello again."), ev_completed()]]
    ) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        program.process.send_signal(number)
        assert program.wait() == code
        assert_is_restored(program)
        assert "To continue this session, run:" in program.lines
        assert sleepers() == []
        again = start(server, "resume", "--last", "Go on.")
        again.wait_for("Hello again.")
        leave(again)
    output = server.requests[-1].body["input"]
    assert any(item.get("type") == "function_call_output" for item in output)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_comes_twice_leaves_the_terminal_as_it_was(
    start: Start, number: signal.Signals
) -> None:
    stream = [ev_created(), *ev_text_deltas(["One two three. "]), Pause()]
    with ScriptedServer([stream]) as server:
        program = start(server, "Talk.")
        program.wait_for("One two three.")
        program.process.send_signal(number)
        # What the first one has written shows that it was taken.
        program.wait_until(lambda: b"\x1b[?1004l" in program.raw)
        program.process.send_signal(number)
        assert program.wait() == 128 + number
        assert_is_restored(program)


@pytest.mark.skipif(not BACKENDS, reason="needs a way to confine commands")
def test_an_idle_terminal_keeps_no_names_once_its_commands_have_ended(
    start: Start, place: Workplace
) -> None:
    os.mkfifo(place.cwd / "gate")
    wait = {"cmd": "cat gate", "yield_time_ms": 250}
    answers = [
        [*ev_function_call("call_1", "exec_command", wait), ev_completed()],
        [*ev_message("It waits."), ev_completed()],
        [*ev_function_call("call_2", "exec_command", {"cmd": "true"}), ev_completed()],
        [*ev_message("Done."), ev_completed()],
    ]

    def is_clear() -> bool:
        return [path.name for path in place.cwd.iterdir()] == ["gate"]

    with ScriptedServer(answers) as server:
        program = start(server, "-s", "workspace-write", "-a", "never", "Begin.")
        program.wait_for("It waits.")
        holds_names = BACKENDS[0].name in {"namespaces", "views", "bwrap"}
        assert is_clear() != holds_names
        # The command ends when its turn is over.
        with (place.cwd / "gate").open("wb"):
            pass
        until(program, is_clear)
        program.type("Again.\r")
        program.wait_for("Done.")
        until(program, is_clear)
        leave(program)


@pytest.mark.skipif(not BACKENDS, reason="needs a way to confine commands")
def test_an_idle_terminal_keeps_no_names_for_a_command_that_could_not_start(
    start: Start, place: Workplace
) -> None:
    lost = {"cmd": "true", "workdir": "missing"}
    answers = [
        [*ev_function_call("call_1", "exec_command", lost), ev_completed()],
        [*ev_message("There is no such folder."), ev_completed()],
    ]
    with ScriptedServer(answers) as server:
        program = start(server, "-s", "workspace-write", "-a", "never", "Begin.")
        program.wait_for("There is no such folder.")
        until(program, lambda: not any(place.cwd.iterdir()))
        leave(program)


def until(program: PtyProgram, condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        program.settle(0.02)


def test_a_terminal_that_is_closed_ends_the_turn_in_order(start: Start) -> None:
    with ScriptedServer(
        [SLEEP, [*ev_message("Hello again."), ev_completed()]]
    ) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        program.hang_up()
        assert program.process.wait(120) == 129
        assert sleepers() == []
        again = start(server, "resume", "--last", "Go on.")
        again.wait_for("Hello again.")


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "terminated"])
def test_an_open_list_does_not_keep_the_program_alive(
    start: Start, is_closed: bool
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/permissions")
        program.press("enter")
        program.wait_for("> Ask for approval")
        if is_closed:
            program.hang_up()
        else:
            program.process.terminate()
        assert program.process.wait(120) == (129 if is_closed else 143)


def test_a_killed_program_leaves_no_child_and_its_session_can_be_resumed(
    start: Start,
) -> None:
    with ScriptedServer(
        [SLEEP, [*ev_message("Hello again."), ev_completed()]]
    ) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        program.process.kill()
        program.process.wait()
        deadline = time.monotonic() + 10
        while sleepers():
            assert time.monotonic() < deadline, "the command goes on"
            program.settle(0.05)
        again = start(server, "resume", "--last", "Go on.")
        again.wait_for("Hello again.")
        leave(again)


def test_a_terminal_that_a_killed_program_has_left_raw_is_whole_in_the_end(
    place: Workplace,
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
        script = 'stty raw -echo; exec "$@"'
        with PtyProgram(
            ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "codex_py"],
            place.cwd,
            environment(place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"}),
        ) as program:
            program.wait_for(IDLE)
            leave(program)
            before, after = program.initial_modes, program.modes()
            flags = termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
            assert after[1] & termios.OPOST
            assert (before[3] & flags, after[3] & flags) == (flags, flags)


def test_an_interrupted_call_says_so(start: Start) -> None:
    stream = [ev_created(), *ev_text_deltas(["One two three. "] * 5), Pause()]
    with ScriptedServer([SLEEP, stream]) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        _interrupt(program, 1)
        program.type("Talk.")
        program.press("enter")
        program.wait_for("One two three.")
        _interrupt(program, 2)


def _interrupt(program: PtyProgram, times: int) -> None:
    program.press("esc")
    program.wait_until(
        lambda: "\n".join(program.scrollback).count("Conversation interrupted") >= times
    )


def shell(
    place: Workplace, server: ScriptedServer, command: Sequence[str]
) -> PtyProgram:
    """An interactive shell that has the program as a job."""
    place.configure(server)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
    variables = {
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PS1": "sh> ",
        "HISTFILE": "",
    }
    program = PtyProgram(
        ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"],
        place.cwd,
        environment(place.home, variables),
    )
    program.wait_for("sh>")
    program.type(" ".join(command) + "\r")
    return program


def test_it_stops_for_the_shell_and_goes_on_where_it_was(place: Workplace) -> None:
    replies = [
        [*ev_message("First."), ev_completed()],
        [*ev_message("Second."), ev_completed()],
    ]
    with (
        ScriptedServer(replies) as server,
        shell(place, server, [sys.executable, "-m", "codex_py", "One?"]) as program,
    ):
        program.wait_for("First.")
        program.type("Tw")
        program.press("c-z")
        program.wait_for("Stopped")
        # What is typed before its prompt is shown before it.
        program.wait_until(
            lambda: program.lines[-1] == "sh>", what="the prompt of the shell"
        )
        assert modes_left_on(program.raw)["2004"] is False
        assert modes_left_on(program.raw)["1004"] is False
        assert modes_left_on(program.raw)["kitty"] is False
        program.type("echo $((20 + 3))\r")
        program.wait_for("\n23")
        program.type("fg\r")
        program.wait_for("\u203a Tw")
        program.type("o?")
        program.press("enter")
        program.wait_for("Second.")
        program.press("c-d")
        program.wait_for("To continue this session")
        program.type("echo $((30 + 4))\r")
        program.wait_for("34")


STOPS_ITSELF = "printf 'IN THE EDITOR'; kill -STOP $$; printf edited >$1"
STOPS_THE_JOB = "printf 'IN THE EDITOR'; kill -TSTP 0; printf edited >$1"
STOPS_TWICE = (
    "printf 'IN THE EDITOR'; kill -TSTP 0; kill -STOP $$; sleep 1; printf edited >$1"
)
WAITS_FOR_THE_KEY = "printf 'IN THE EDITOR'; read line; printf edited >$1"
WAITS_IN_A_CHILD = "printf 'IN THE EDITOR'; sh -c 'read line'; printf edited >$1"
IGNORES_THE_KEY = "trap '' TSTP; printf 'IN THE EDITOR'; sleep 2; printf edited >$1"


def editor_of(place: Workplace, script: str) -> str:
    path = place.home / "editor"
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "stops"),
    [
        (WAITS_FOR_THE_KEY, 1),
        (WAITS_IN_A_CHILD, 1),
        (STOPS_ITSELF, 1),
        (STOPS_THE_JOB, 1),
        (STOPS_TWICE, 2),
        (IGNORES_THE_KEY, 1),
    ],
)
def test_an_editor_that_stops_gives_the_shell_its_terminal_and_goes_on_with_fg(
    place: Workplace, script: str, stops: int
) -> None:
    program_argv = [sys.executable, "-m", "codex_py"]
    variables = [f"VISUAL={editor_of(place, script)}"]
    with (
        ScriptedServer([]) as server,
        shell(place, server, ["env", *variables, *program_argv]) as program,
    ):
        program.wait_for("Ask codex-py")
        program.type("before")
        program.wait_for("\u203a before")
        program.press("c-g")
        program.wait_for("IN THE EDITOR")
        for _ in range(stops):
            if "kill" not in script:
                program.press("c-z")
            program.wait_for("Stopped")
            program.wait_until(
                lambda: program.lines[-1] == "sh>", what="the prompt of the shell"
            )
            program.type("clear; echo $((20 + 3))\r")
            program.wait_for("\n23" if "clear" in program.text else "23")
            program.type("fg\r")
            program.settle(0.3)
        if "read" in script:
            program.type("\r")
        program.wait_for("\u203a edited")
        program.press("c-c", "c-d")
        program.wait_until(lambda: program.lines[-1] == "sh>")


@pytest.mark.parametrize(
    "script", [STOPS_ITSELF, STOPS_THE_JOB, STOPS_TWICE, WAITS_FOR_THE_KEY]
)
def test_an_editor_goes_on_at_once_where_no_shell_could_continue_it(
    start: Start, place: Workplace, script: str
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, VISUAL=editor_of(place, script))
        program.wait_for("Ask codex-py")
        program.press("c-g")
        program.wait_for("IN THE EDITOR")
        if script == WAITS_FOR_THE_KEY:
            program.press("c-z")
            program.settle(0.3)
            program.type("\r")
        program.wait_for("\u203a edited")


def test_reports_of_the_terminal_are_never_shown(place: Workplace) -> None:
    with (
        ScriptedServer([[*ev_message("First."), ev_completed()]]) as server,
        shell(place, server, ["cat"]) as program,
    ):
        program.reports_focus = True
        program.press("c-d")
        program.type(f"{sys.executable} -m codex_py One?\r")
        program.wait_for("First.")
        for _ in range(2):
            program.wait_for("Ask codex-py")
            program.press("c-z")
            program.wait_for("Stopped")
            program.wait_until(
                lambda: program.lines[-1] == "sh>", what="the prompt of the shell"
            )
            program.type("clear; fg\r")
            program.wait_until(lambda: "Stopped" not in program.text)
        program.wait_for("Ask codex-py")
        program.press("c-d")
        program.wait_for("To continue this session")
        program.settle()
    assert b"^[" not in program.raw


def test_a_terminal_that_takes_nothing_gets_all_of_it_later(start: Start) -> None:
    lines = [f"line {n:04}\n\n" for n in range(1500)]
    said_all = Pause()
    stream = [
        ev_created(),
        *ev_message("".join(lines), pieces=50),
        said_all,
        ev_completed(),
    ]
    with ScriptedServer([stream]) as server:
        program = start(server, "Talk.")
        # Nothing is read until the model has said all, which is more than a terminal holds.
        assert said_all.reached.wait(120)
        said_all.until.set()
        program.press("c-d")
        program.wait_for("line 1499")
        shown = [line.split()[-1] for line in program.scrollback if "line " in line]
        assert shown == [f"{n:04}" for n in range(1500)]


def test_a_mistake_of_ours_ends_in_a_traceback_on_a_whole_terminal(
    place: Workplace,
) -> None:
    code = """
from codex_py.frontends.tui.status import Status
def boom(*_): raise RuntimeError("broken on purpose")
from codex_py.frontends.tui.session_half import SessionHalf
SessionHalf.submitted = boom
from codex_py.__main__ import main
main()
"""
    with ScriptedServer([]) as server:
        place.configure(server)
        variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        with PtyProgram(
            [sys.executable, "-c", code],
            place.cwd,
            environment(place.home, variables),
        ) as program:
            program.wait_for("Do you trust what is in")
            program.press("enter")
            program.wait_for(IDLE)
            program.type("x")
            program.press("enter")
            assert program.wait() == 1
            text = "\n".join(program.scrollback)
            assert "Traceback (most recent call last)" in text
            assert program.scrollback[-1] == "RuntimeError: broken on purpose"
            assert_is_restored(program)


def test_ctrl_d_leaves_before_anything_is_drawn(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.press("c-d")
        assert program.wait() == 0


@pytest.mark.parametrize("columns", [50, 120])
def test_a_new_size_leaves_nothing_of_the_old_frame(start: Start, columns: int) -> None:
    text = (
        "A long line of an answer that goes on for quite a while and then some more. "
        * 4
    )
    stream = [ev_created(), *ev_text_deltas([text]), Pause()]
    with ScriptedServer([stream]) as server:
        program = start(server, "Talk.", columns=100, rows=30)
        program.wait_for("and then some more.")
        program.wait_for("Working")
        program.resize(columns, 30)
        program.wait_until(
            lambda: (
                program.text.count("Working") == 1
                and program.cursor[1] > 0
                and program.text.count("workspace-write") == 1
            ),
        )
        program.settle()
        assert program.text.count("A long line") <= 5
        assert program.text.count("Working") == 1
        assert program.text.count("Ask codex-py") == 1
        assert all(len(line) <= columns for line in program.lines)


def test_nothing_is_done_while_nothing_is_to_do(start: Start) -> None:
    with ScriptedServer([[*ev_message("Done."), ev_completed()]]) as server:
        program = start(server, "Do it.")
        program.wait_for("Done.")
        program.wait_for("left")
        program.settle(1.0)
        before = _switches(program.process.pid)
        program.settle(2.0)
        assert _switches(program.process.pid) - before <= 1


def _switches(pid: int) -> int:
    """How often the threads of a process have gone to sleep, and so have been awake."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        match = re.search(
            r"^voluntary_ctxt_switches:\s+(\d+)",
            status.read_text("utf-8"),
            re.MULTILINE,
        )
        assert match
        total += int(match[1])
    return total


@pytest.mark.parametrize("columns", [60, 80])
def test_ctrl_l_begins_at_the_top_and_loses_nothing(start: Start, columns: int) -> None:
    with ScriptedServer([[*ev_message("Done."), ev_completed()]]) as server:
        program = start(server, "Do it.", columns=columns)
        program.wait_for("Worked for")
        program.press("c-l")
        program.wait_until(lambda: "Done." not in program.text)
        program.wait_for("Ask codex-py")
        program.wait_until(lambda: program.cursor[1] <= 2, what="the top")
        assert any("Done." in line for line in program.scrollback)


@pytest.mark.parametrize("end", ["terminate", "hang up", "lose the terminal"])
def test_a_draft_and_the_reason_of_the_end_are_kept(
    start: Start, place: Workplace, end: str
) -> None:
    with ScriptedServer(
        [SLEEP, [*ev_message("Understood."), ev_completed()]]
    ) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        for word in ("thirty", " words", " or", " so,\n", "of a draft"):
            program.type(word)
            program.settle(0.05)
        program.wait_for("of a draft")
        if end == "lose the terminal":
            program.hang_up()
        else:
            number = signal.SIGTERM if end == "terminate" else signal.SIGHUP
            program.process.send_signal(number)
        program.process.wait(30)
        program = start(server, *FREE, "resume", "--last")
        program.wait_for(
            "Conversation interrupted: the program was ended while it worked"
        )
        assert "aborted by user" not in program.text
        program.press("up")
        program.wait_for("\u203a thirty words or so,\n  of a draft")
        program.press("enter")
        program.wait_for("Understood.")
        told = str(server.requests[-1].body["input"])
    assert (
        "The previous turn was stopped: the program was ended while it worked." in told
    )
    assert "on purpose" not in told


def test_an_interruption_by_the_user_is_shown_as_such(start: Start) -> None:
    with ScriptedServer(
        [SLEEP, [*ev_message("Understood."), ev_completed()]]
    ) as server:
        program = start(server, *FREE, "Begin.")
        program.wait_for("Running sleep 417")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        program.wait_until(lambda: program.title == "work")
        program.type("Go on.\r")
        program.wait_for("Understood.")
        told = str(server.requests[-1].body["input"])
    assert "The user interrupted the previous turn on purpose" in told
