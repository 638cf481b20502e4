"""Session files: what survives a fault, what can be resumed, and who may write.

Tests `app/resumed.py`.
"""

import fcntl
import json
import os
import resource
import signal
import stat
from typing import Any

import pytest

from codex_py.protocol.ids import new_thread_id
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_local_shell_call,
    ev_message,
    ev_reasoning,
)
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

Event = dict[str, Any]
DONE = [*ev_message("done"), ev_completed()]


def thread_id(events: list[Event]) -> str:
    return events[0]["thread_id"]


def test_a_session_is_resumed_with_everything_in_it(place: Workplace) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+a\n*** End Patch"
    calls = [
        *ev_reasoning("I look.", index=0),
        *ev_function_call(
            "c1", "exec_command", {"cmd": "printf '\\xff\\u2028ü'"}, index=1
        ),
        *ev_custom_tool_call("c2", "apply_patch", patch, index=2),
        *ev_local_shell_call("c3", ["echo", "hi"], index=3),
        *ev_function_call("c4", "no_such_tool", "{", index=4),
        ev_completed(),
    ]
    with ScriptedServer([calls, DONE, DONE]) as server:
        first = place.run(server)
        second = place.rerun("resume", thread_id(first.events), "and more")
    assert (second.code, second.messages) == (0, ["done"])
    assert thread_id(second.events) == thread_id(first.events)
    # That this begins with all that went before is checked by the server.
    last = server.requests[2].input[-1]
    assert last == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "and more"}],
    }
    # Tokens are counted over the whole thread.
    assert second.events[-1]["usage"]["input_tokens"] == 300
    assert len(place.rollouts()) == 1


def test_every_line_is_json_and_for_the_user_alone(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.run(server)
    (path,) = place.rollouts()
    types = [json.loads(line)["type"] for line in path.read_bytes().splitlines()]
    assert types[0] == "session_meta"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_turn_can_be_resumed(place: Workplace) -> None:
    with ScriptedServer() as server:
        assert place.run(server).code == 69
        server.add(DONE)
        assert place.rerun("resume", "--last", "again").messages == ["done"]
        texts = [item["content"][-1]["text"] for item in server.requests[1].input[-2:]]
    assert texts == ["go", "again"]


def test_a_run_that_cannot_begin_leaves_no_session_behind(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        first = place.run(server)
        assert place.rerun("--replay", "no.tape", "go").code == 2
        assert (
            place.rerun(
                "-c", 'model_providers.mock.http_headers.a="\\u0001"', "go"
            ).code
            == 78
        )
        assert len(place.rollouts()) == 1
        second = place.rerun("resume", "--last", "--replay", "no.tape", "go")
        assert (second.code, second.events) == (2, [])
        assert thread_id(place.rerun("resume", "--last", "more").events) == thread_id(
            first.events
        )


def test_last_means_this_folder(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE, DONE]) as server:
        first = place.run(server)
        place.rerun("-C", "/", "elsewhere")
        again = place.rerun("resume", "--last", "more")
    assert thread_id(again.events) == thread_id(first.events)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("resume", "--last", "more"), "no session to resume: none was recorded in "),
        (
            ("resume", "0199a213-81c0-7800-8aa1-bbab2a035a53", "more"),
            "no session found with the id",
        ),
        (
            ("resume", "no such name", "more"),
            "no session found with the id or name 'no such name'",
        ),
    ],
)
def test_a_session_that_is_not_there_is_an_error(
    place: Workplace, args: tuple[str, ...], message: str
) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, *args)
        assert server.requests == []
    assert (outcome.code, outcome.events) == (2, [])
    assert f"Error: {message}" in outcome.err
    assert place.rollouts() == []


def test_another_model_is_warned_of(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        place.run(server)
        outcome = place.rerun("-m", "gpt-5.6", "resume", "--last", "more")
        assert server.requests[1].body["model"] == "gpt-5.6"
    assert (outcome.code, outcome.messages) == (0, ["done"])
    warnings = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert any(
        "recorded with model `gpt-5.5` but is resuming with `gpt-5.6`" in w
        for w in warnings
    )


def test_an_ephemeral_run_leaves_no_session(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        assert place.run(server, "--ephemeral", "go").code == 0
        assert place.rollouts() == []
        place.rerun("kept")
        (path,) = place.rollouts()
        before = path.read_bytes()
        server.add(DONE)
        assert place.rerun("--ephemeral", "resume", "--last", "not kept").code == 0
        assert path.read_bytes() == before


def test_a_session_has_one_writer(place: Workplace) -> None:
    open_end = Pause()
    with ScriptedServer([[open_end, *DONE], DONE]) as server:
        place.configure(server)
        first = place.start()
        assert open_end.reached.wait(120)
        second = place.rerun("resume", "--last", "too")
        open_end.until.set()
        out, _ = first.communicate(timeout=120)
        third = place.rerun("resume", "--last", "now")
    name = json.loads(out.splitlines()[0])["thread_id"]
    assert (second.code, second.events) == (1, [])
    assert second.err.endswith(
        f"Error: session {name} is in use by another process; wait until that one has ended, or fork the session\n"
    )
    assert (first.returncode, third.code, thread_id(third.events)) == (0, 0, name)


def test_a_home_below_a_file_is_an_error(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        home = place.home / "config.toml" / "below"
        done = run_codex_py(["exec", "--skip-git-repo-check", "go"], home, place.cwd)
        assert server.requests == []
    assert done.returncode in {1, 78}
    assert b"Traceback" not in done.stderr


def test_a_disk_that_is_full_does_not_end_the_turn(place: Workplace) -> None:
    def limit() -> None:
        # A write beyond it fails with EFBIG, as one on a full disk with ENOSPC.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, 24_000))

    cmd = ev_function_call(
        "c1", "exec_command", {"cmd": "head -c 30000 /dev/zero | tr '\\0' x"}
    )
    # The output, which the file lacks, is replaced by one that says so.
    with ScriptedServer(
        [[*cmd, ev_completed()], DONE, DONE], check_prefix=False
    ) as server:
        place.configure(server)
        program = place.start(limit=limit)
        out, _ = program.communicate(timeout=120)
        events = [json.loads(line) for line in out.splitlines()]
        assert (program.returncode, events[-1]["type"]) == (0, "turn.completed")
        warnings = [
            event["item"]["message"]
            for event in events
            if event.get("item", {}).get("type") == "error"
        ]
        assert len(warnings) == 1
        assert "cannot be written: File too large" in warnings[0]
        assert place.rerun("resume", "--last", "more").messages == ["done"]
        assert server.requests[2].output("c1") == "aborted"


def damaged(data: bytes, how: str) -> bytes:
    lines = data.splitlines(keepends=True)
    match how:
        case "cut":
            return data[:-20]
        case "cut inside a character":
            return data[: data.rindex("ü".encode()) + 1]
        case "no newline":
            return data[:-1]
        case "garbage line":
            return b"".join([*lines[:3], b"\0\xff garbage {\n", *lines[3:]])
        case "blank lines":
            return b"".join([*lines[:3], b"\n\r\n   \n", *lines[3:]])
        case "an unknown type":
            extra = b'{"timestamp":"x","type":"news","payload":{"a":1}}\n'
            return b"".join([*lines[:3], extra, *lines[3:]])
        case "a payload that is no object":
            extra = b'{"timestamp":"x","type":"response_item","payload":7}\n'
            return b"".join([*lines[:3], extra, *lines[3:]])
        case "CRLF":
            return data.replace(b"\n", b"\r\n")
        case "the output is missing":
            return b"".join(
                line for line in lines if b"function_call_output" not in line
            )
        case "the call is missing":
            return b"".join(line for line in lines if b'"function_call"' not in line)
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    "how",
    [
        "cut",
        "cut inside a character",
        "no newline",
        "garbage line",
        "blank lines",
        "an unknown type",
        "a payload that is no object",
        "CRLF",
        "the output is missing",
        "the call is missing",
    ],
)
def test_a_damaged_file_is_resumed_with_what_is_left_of_it(
    place: Workplace, how: str
) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "echo ü"})
    with ScriptedServer(
        [[*call, ev_completed()], [*ev_message("früh"), ev_completed()]]
    ) as server:
        place.run(server)
    (path,) = place.rollouts()
    path.write_bytes(damaged(path.read_bytes(), how))
    with ScriptedServer([DONE, DONE]) as server:
        for _ in range(2):
            outcome = place.run(server, "resume", "--last", "more")
            assert (outcome.code, outcome.messages) == (0, ["done"])
            advice = f"1 line of {path} cannot be read, so tell the model again what it no longer knows."
            unreadable = {
                "cut",
                "cut inside a character",
                "garbage line",
                "a payload that is no object",
            }
            assert (advice in str(outcome.events)) == (how in unreadable)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", b"null\n", b'{"type":"response_item"}\n', b"\0" * 99]
)
def test_a_file_that_is_no_session_is_named(place: Workplace, data: bytes) -> None:
    with ScriptedServer([DONE]) as server:
        name = thread_id(place.run(server).events)
        (path,) = place.rollouts()
        path.write_bytes(data)
        outcome = place.rerun("resume", name, "more")
        last = place.rerun("resume", "--last", "more")
    assert (outcome.code, outcome.events) == (1, [])
    assert outcome.err.endswith(
        f"Error: {path} is damaged: it does not start with session metadata;"
        " restore it from a backup, or use another session\n"
    )
    assert (last.code, "no session to resume" in last.err) == (2, True)
    assert f"; {path} is damaged: " in last.err
    listed = run_codex_py(["sessions", "list"], place.home, place.cwd)
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 1)
    assert f"; {path} is damaged: " in listed.stdout.decode()
    assert path.read_bytes() == data


def test_a_session_file_that_may_not_be_written_is_named(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        name = thread_id(place.run(server).events)
        (path,) = place.rollouts()
        path.unlink()
        path.mkdir()
        outcome = place.rerun("resume", name, "more")
    assert (outcome.code, outcome.events) == (2, [])
    assert "Traceback" not in outcome.err


def test_an_entry_that_is_no_file_is_no_session(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        name = thread_id(place.run(server).events)
        (path,) = place.rollouts()
        pipe, device, dangling = [
            path.with_name(path.name.replace(name, new_thread_id())) for _ in range(3)
        ]
        os.mkfifo(pipe)
        device.symlink_to("/dev/zero")
        dangling.symlink_to("nowhere")
        assert thread_id(place.rerun("resume", "--last", "more").events) == name


def test_ten_runs_at_once_have_sessions_of_their_own(place: Workplace) -> None:
    with ScriptedServer([DONE] * 10) as server:
        place.configure(server)
        programs = [place.start() for _ in range(10)]
        for program in programs:
            program.communicate(timeout=50)
    assert [program.returncode for program in programs] == [0] * 10
    assert len(place.rollouts()) == 10
    # Whoever finds the folder busy leaves its file behind, but nothing stays locked.
    for lock in (place.home / "thread-writer-locks").iterdir():
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
