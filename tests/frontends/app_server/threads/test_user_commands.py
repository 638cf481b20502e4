"""The commands of the user: events and history are those of `codex app-server` 0.171.

Tests `frontends/app_server/threads/user_commands.py` and `app/user_shell.py`.
"""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from codex_py.app.user_shell import told_command
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.app_server import AppServer, Message, is_running
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def texts(request: Any) -> list[str]:
    return [
        part["text"]
        for item in request.fields["input"]
        for part in item.get("content", ())
    ]


def command_item(server: AppServer, thread: str, number: int = -1) -> Message:
    return server.items("commandExecution", thread)[number]


def pid_in(path: Path) -> int:
    """Wait until a command has written its process id."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        text = path.read_text("utf-8") if path.exists() else ""
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def has_ended(pid: int) -> bool:
    """True also if nobody has asked for the exit code of the process yet."""
    if not is_running(pid):
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and ") Z " in status.read_text("utf-8")


def test_a_command_is_a_turn_that_the_model_hears_of_later(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            # The sandbox of the thread is not that of the user.
            thread = server.thread(sandbox="read-only", approvalPolicy="never")
            command = "echo out; echo err >&2; touch made; echo $MOCK_KEY; exit 3"
            asked = {"threadId": thread, "command": command}
            assert server.ask("thread/shellCommand", asked) == {}
            turn = server.ended(thread)
            assert (turn["status"], turn["items"]) == ("completed", [])
            item = command_item(server, thread)
            shown = (item["source"], item["status"], item["exitCode"], item["cwd"])
            assert shown == ("userShell", "failed", 3, str(place.cwd))
            assert item["command"] == command
            assert item["aggregatedOutput"] == "out\nerr\n\n"
            assert (place.cwd / "made").exists()
            methods = [each.get("method") for each in server.seen]
            first = methods.index("turn/started")
            assert server.seen[first - 2].get("result") == {}
            assert [
                method
                for method in methods[first:]
                if method != "item/commandExecution/outputDelta"
            ] == [
                "turn/started",
                "item/started",
                "item/completed",
                "thread/status/changed",
                "turn/completed",
            ]
            (stored,) = server.ask(
                "thread/turns/list", {"threadId": thread, "itemsView": "full"}
            )["data"]
            (again,) = stored["items"]
            for name in ("id", "command", "source", "status", "exitCode"):
                assert again[name] == item[name]
            server.turn(thread, "what was that?")
            server.ended(thread)
    told, prompt = texts(model.requests[0])[-2:]
    assert prompt == "what was that?"
    assert told.startswith(f"<user_shell_command>\n<command>\n{command}\n</command>\n")
    assert "Exit code: 3\n" in told
    assert "Output:\nout\nerr\n" in told
    assert KEY not in told


def test_a_prompt_joins_the_turn_of_a_command(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            command = "echo begun; while [ ! -e go ]; do sleep 0.05; done"
            asked = {"threadId": thread, "command": command}
            server.ask("thread/shellCommand", asked)
            running = server.told("turn/started")["turn"]["id"]
            server.told("item/commandExecution/outputDelta", delta="begun\n")
            assert server.turn(thread, "and then?") == running
            # Another command of the same turn.
            more = {"threadId": thread, "command": "echo two; touch go"}
            server.ask("thread/shellCommand", more)
            assert server.ended(thread)["id"] == running
            assert len(server.items("commandExecution", thread)) == 2
            assert len(server.items("userMessage", thread)) == 1
    said = texts(model.requests[0])
    assert said[-1] == "and then?"
    assert sum("<user_shell_command>" in text for text in said) == 2


def test_a_command_in_a_running_turn_is_told_with_its_next_request(
    place: Workplace,
) -> None:
    pause = Pause()
    call = ev_function_call("c2", "exec_command", {"cmd": "true"})
    first = [ev_created(), *ev_message("hm", pieces=2)[:3], pause]
    first += [*ev_message("hm", pieces=2)[3:], *call, ev_completed()]
    with ScriptedServer([first, says("done")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            turn = server.turn(thread)
            server.told("item/agentMessage/delta")
            asked = {"threadId": thread, "command": "echo hi"}
            server.ask("thread/shellCommand", asked)
            done = server.told("item/completed", turnId=turn)
            assert done["item"]["source"] == "userShell"
            pause.until.set()
            assert server.ended(thread)["id"] == turn
    assert "Output:\nhi\n" in texts(model.requests[1])[-1]


@pytest.mark.parametrize("beside", [False, True])
def test_an_interrupt_ends_a_command(place: Workplace, beside: bool) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    script = [running, says("after")] if beside else [says("after")]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            if beside:
                server.turn(thread)
                server.told("item/agentMessage/delta")
            asked = {"threadId": thread, "command": "echo $$ > pid; sleep 600"}
            server.ask("thread/shellCommand", asked)
            pid = pid_in(place.cwd / "pid")
            started = [each for each in server.seen if "turn/started" in str(each)]
            turn = started[-1]["params"]["turn"]["id"]
            server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            assert server.ended(thread)["status"] == "interrupted"
            pause.until.set()
            server.turn(thread, "and now?")
            server.ended(thread)
            item = command_item(server, thread)
            assert (item["status"], item["exitCode"]) == ("failed", 137)
            assert "stopped by the user" in item["aggregatedOutput"]
            assert has_ended(pid)
            turns = server.ask("thread/turns/list", {"threadId": thread})["data"]
            assert [each["status"] for each in turns] == ["completed", "interrupted"]
    assert any("stopped by the user" in text for text in texts(model.requests[-1]))


def test_the_time_of_a_command_is_limited(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        thread = {"threadId": server.thread()}
        slow = {**thread, "command": "echo begun; sleep 600"}
        server.ask("thread/shellCommand", {**slow, "timeoutMs": 300})
        assert server.ended(thread["threadId"])["status"] == "completed"
        item = command_item(server, thread["threadId"])
        assert (item["status"], item["exitCode"]) == ("failed", 124)
        text = "begun\nthe command was stopped after 0.3 seconds"
        assert item["aggregatedOutput"] == text
        server.ask("thread/shellCommand", {**slow, "timeoutMs": 0})
        server.ended(thread["threadId"])
        assert command_item(server, thread["threadId"])["exitCode"] == 124
        error = server.refused("thread/shellCommand", {**slow, "timeoutMs": -1})
        assert (error["code"], error["message"]) == (
            -32602,
            "thread/shellCommand timeoutMs must be non-negative, got -1",
        )


def test_what_a_command_leaves_running_ends_with_the_client(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        thread = server.thread()
        command = "sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 &"
        server.ask("thread/shellCommand", {"threadId": thread, "command": command})
        server.ended(thread)
        pid = pid_in(place.cwd / "pid")
        assert not has_ended(pid)
        begun = {"threadId": thread, "command": "echo $$ > pid2; sleep 600"}
        server.ask("thread/shellCommand", begun)
        second = pid_in(place.cwd / "pid2")
    assert has_ended(pid)
    assert has_ended(second)


def test_a_command_runs_in_an_ephemeral_thread_and_in_one_without_a_folder(
    place: Workplace,
) -> None:
    gone = place.cwd / "gone"
    gone.mkdir()
    with AppServer(place.home, place.cwd) as server:
        thread = server.thread(ephemeral=True, cwd=str(gone))
        asked = {"threadId": thread, "command": "echo hi"}
        server.ask("thread/shellCommand", asked)
        assert server.ended(thread)["status"] == "completed"
        gone.rmdir()
        server.ask("thread/shellCommand", asked)
        assert server.ended(thread)["status"] == "completed"
        item = command_item(server, thread)
        assert (item["status"], item["exitCode"]) == ("failed", 127)
        assert "could not be run" in item["aggregatedOutput"]


def test_mistakes_are_told(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        asked = {"threadId": server.thread(), "command": " \n"}
        error = server.refused("thread/shellCommand", asked)
        assert error["message"] == "command must not be empty"
        unknown = str(uuid4())
        asked = {"threadId": unknown, "command": "true"}
        error = server.refused("thread/shellCommand", asked)
        assert error["message"] == f"thread not found: {unknown}"


def test_long_output_is_told_in_parts() -> None:
    told = told_command("yes", "y" * 100_000, 0, 1.5)
    assert len(told) < 41_000
    assert "... 60000 characters omitted ..." in told
