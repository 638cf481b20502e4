"""However the program is ended: one end of the turn, no child left, and a session that can go on."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, jsonl
from tests.support.searches import sample
from tests.support.server import ScriptedServer
from tests.support.tcp_server import tcp_server

Event = dict[str, Any]
DONE = [*ev_message("done"), ev_completed()]
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


def call(cmd: str, number: int = 1, **arguments: Any) -> list[Event]:
    arguments = {"cmd": cmd, **arguments}
    return ev_function_call(f"call_{number}", "exec_command", arguments, index=number)


def read_until(program: subprocess.Popen[bytes], kind: str) -> list[Event]:
    """The events up to the first of a kind."""
    assert program.stdout is not None
    seen: list[Event] = []
    while not seen or seen[-1]["type"] != kind:
        line = program.stdout.readline()
        assert line, seen
        seen.append(json.loads(line))
    return seen


def end(
    program: subprocess.Popen[bytes], number: signal.Signals
) -> tuple[int, list[Event], str]:
    """Send the signal; the exit code, the events from then on, and what was on standard error."""
    program.send_signal(number)
    out, err = program.communicate(timeout=120)
    return program.returncode, jsonl(out), err.decode()


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_during_commands_ends_all_and_the_session_goes_on(
    place: Workplace, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    calls = [
        *call("echo quick", 1),
        *call("HOLD echo begun; sleep 600", 2),
        *call("sleep 600", 3),
    ]
    with Lifeline(tmp_path) as line:
        hold = json.dumps(line.hold)[1:-1].replace("\\", "\\\\")
        events: list[Event] = json.loads(json.dumps(calls).replace("HOLD ", hold))
        with ScriptedServer([[*events, ev_completed()], DONE]) as server:
            place.configure(server)
            program = place.start(real=True)
            line.wait_until_up()
            read_until(program, "item.completed")
            returned, rest, err = end(program, number)
            line.wait_until_dead()
            assert place.rerun("resume", "--last", "go on").messages == ["done"]
            outputs = [server.requests[1].output(f"call_{n}") for n in (1, 2, 3)]
            note = server.requests[1].input[-2]
    assert returned == code
    assert "Traceback" not in err
    ends = [event for event in rest if event["type"].startswith("turn.")]
    assert [event["error"]["code"] for event in ends] == ["aborted"]
    assert rest[-1] == ends[0]
    assert outputs[0].endswith("\nquick\n")
    assert all(output.endswith("\naborted by user") for output in outputs[1:])
    assert note["content"][0]["text"].startswith("<turn_aborted>")


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_during_the_stream_ends_the_turn_once(
    place: Workplace, number: signal.Signals, code: int
) -> None:
    silence = Pause()
    with ScriptedServer([[ev_created(), *ev_message("part"), silence], DONE]) as server:
        place.configure(server)
        program = place.start(real=True)
        read_until(program, "item.completed")
        returned, rest, err = end(program, number)
        silence.until.set()
        assert place.rerun("resume", "--last", "go on").messages == ["done"]
        kinds = [
            (item["type"], item.get("role")) for item in server.requests[1].input[-3:]
        ]
    assert (returned, [event["type"] for event in rest]) == (
        code,
        ["error", "turn.failed"],
    )
    assert "Traceback" not in err
    assert kinds == [("message", "assistant"), ("message", "user"), ("message", "user")]


def test_a_signal_before_the_answer_ends_the_turn_once(place: Workplace) -> None:
    silence = Pause()
    with ScriptedServer([[silence]]) as server:
        place.configure(server)
        program = place.start(real=True)
        assert silence.reached.wait(120)
        returned, events, _ = end(program, signal.SIGTERM)
        silence.until.set()
    types = ["thread.started", "turn.started", "error", "turn.failed"]
    assert (returned, [event["type"] for event in events]) == (143, types)


def test_a_signal_while_waiting_to_retry_ends_the_turn_once(place: Workplace) -> None:
    wait = Reply(status=503, body=b"{}", headers={"retry-after": "100"})
    with ScriptedServer([wait]) as server:
        place.configure(server, request_max_retries=3)
        program = place.start(real=True)
        # The wait is shown.
        read_until(program, "error")
        returned, events, _ = end(program, signal.SIGINT)
    assert (returned, [event["type"] for event in events]) == (
        130,
        ["error", "turn.failed"],
    )


def test_a_signal_while_connecting_ends_the_turn_once(place: Workplace) -> None:
    silent = tcp_server(lambda connection, _request: connection.recv(1))
    with ScriptedServer() as server, silent as (url, requests):
        place.configure(server, base_url=url)
        program = place.start(real=True)
        read_until(program, "turn.started")
        _wait_for(lambda: bool(requests))
        returned, events, _ = end(program, signal.SIGTERM)
    assert (returned, [event["type"] for event in events]) == (
        143,
        ["error", "turn.failed"],
    )


def test_a_signal_while_reading_the_prompt_ends_the_program(place: Workplace) -> None:
    with ScriptedServer() as server:
        place.configure(server)
        program = place.start("--color=never", stdin=subprocess.PIPE, real=True)
        assert program.stderr is not None
        assert program.stderr.readline() == b"Reading prompt from stdin...\n"
        returned, events, err = end(program, signal.SIGTERM)
    # Before the handlers are there it is the system that ends it.
    assert returned in {143, -signal.SIGTERM}
    assert (events, err) == ([], "")
    assert place.rollouts() == []


def test_a_second_signal_leaves_at_once_and_still_leaves_no_child(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        stubborn = f"trap '' HUP INT TERM; {line.hold} while :; do sleep 600; done"
        with ScriptedServer([[*call(stubborn), ev_completed()]]) as server:
            place.configure(server)
            program = place.start(real=True)
            line.wait_until_up()
            program.send_signal(signal.SIGINT)
            returned, _, _ = end(program, signal.SIGINT)
            line.wait_until_dead()
    assert returned == 130


def test_a_command_that_ignores_every_signal_is_killed(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        stubborn = f"trap '' HUP INT TERM; {line.hold} (setsid sleep 600 &); sleep 600"
        with ScriptedServer([[*call(stubborn), ev_completed()]]) as server:
            place.configure(server)
            program = place.start(real=True)
            line.wait_until_up()
            began = time.monotonic()
            returned, rest, _ = end(program, signal.SIGTERM)
            line.wait_until_dead()
            assert time.monotonic() - began < 5
    types = [event["type"] for event in rest if event["type"] != "item.started"]
    assert (returned, types) == (
        143,
        ["thread.started", "turn.started", "item.completed", "error", "turn.failed"],
    )


def test_nohup_is_respected(place: Workplace) -> None:
    silence = Pause()
    with ScriptedServer([[silence, *DONE]]) as server:
        place.configure(server)
        program = place.start(
            limit=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        assert silence.reached.wait(120)
        program.send_signal(signal.SIGHUP)
        silence.until.set()
        program.communicate(timeout=120)
    assert program.returncode == 0


def test_a_kill_leaves_no_child_and_the_session_goes_on(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        script = f"{line.hold} (setsid sleep 600 &); sleep 600 & sleep 600"
        with ScriptedServer([[*call(script), ev_completed()], DONE]) as server:
            place.configure(server)
            program = place.start(real=True)
            line.wait_until_up()
            program.kill()
            program.communicate(timeout=120)
            line.wait_until_dead()
            assert place.rerun("resume", "--last", "go on").messages == ["done"]
            assert server.requests[1].output("call_1") == "aborted"


@pytest.mark.parametrize("lines", sample(range(10)))
def test_a_kill_behind_any_event_leaves_a_session_that_goes_on(
    place: Workplace, tmp_path: Path, lines: int
) -> None:
    killed = threading.Event()
    with Lifeline(tmp_path) as line:
        busy = [
            *ev_message("part", pieces=50),
            *call(f"{line.hold} sleep 0.05", 1),
            ev_completed(),
        ]

        def reply(_request: RecordedRequest) -> list[Event]:
            return DONE if killed.is_set() else busy

        with ScriptedServer([reply] * 200) as server:
            place.configure(server)
            # A kill ends a fork as it does any process. Before the first event, a process that starts counts.
            program = place.start(real=True if lines == 0 else None)
            assert program.stdout is not None
            for _ in range(lines):
                assert program.stdout.readline()
            program.kill()
            program.communicate(timeout=120)
            killed.set()
            # Before the first event there may be no session yet.
            assert lines == 0 or place.rollouts()
            if place.rollouts():
                outcome = place.rerun("resume", "--last", "go on")
                assert (outcome.code, outcome.messages) == (0, ["done"])
        if line.was_held():
            line.wait_until_dead()


def _wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_exit_codes_are_known_if_the_parent_ignores_the_ends_of_children(
    place: Workplace,
) -> None:
    with ScriptedServer([[*call("exit 7"), ev_completed()], DONE]) as server:
        place.configure(server)
        program = place.start(
            limit=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        )
        out, err = program.communicate(timeout=120)
    ended = [event["item"] for event in jsonl(out) if event["type"] == "item.completed"]
    assert (program.returncode, err) == (0, b"")
    assert ended[0]["exit_code"] == 7
