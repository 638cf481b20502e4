"""The server as a client sees it. Shapes and words are those of `codex app-server` 0.171, where they are the same.

Tests `frontends/app_server/account/account_methods.py`,
`frontends/app_server/app_server_command.py`, `frontends/app_server/threads/history.py`,
`frontends/app_server/threads/questions.py`, `frontends/app_server/methods.py`,
`frontends/app_server/threads/open_threads.py`, `frontends/app_server/server.py`,
`frontends/app_server/threads/thread.py`, `frontends/app_server/threads/thread_answers.py`,
`frontends/app_server/threads/threads.py` and `frontends/app_server/threads/turns.py`.

Also tests `command_line/serving.py`.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_message,
)
from tests.support.app_server import AppServer, Message, is_running
from tests.support.mcp import odd_command
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

HUGE = b"100 MB"
PATCH = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def runs(command: str, **arguments: Any) -> list[Any]:
    call = ev_function_call("c1", "exec_command", {"cmd": command, **arguments})
    return [ev_created(), *call, ev_completed()]


def patches() -> list[Any]:
    return [
        ev_created(),
        *ev_custom_tool_call("p1", "apply_patch", PATCH),
        ev_completed(),
    ]


def begins(text: str, pause: Pause) -> list[Any]:
    """An answer that stops in the middle."""
    return [ev_created(), *ev_message(text, pieces=2)[:3], pause]


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"{broken", -32700, "this is no JSON"),
        (b"[]", -32600, "a message is an object"),
        (b'{"id": 5}', -32600, "a request has a method, and an id"),
        (b'{"id": {}, "method": "x"}', -32600, "a request has a method, and an id"),
        (
            b'{"id": 5, "method": "fs/burnDisk"}',
            -32601,
            "the method 'fs/burnDisk' is not served",
        ),
        (b'{"id": 5, "method": "thread/read"}', -32600, "Invalid request: `threadId`"),
        (
            b'{"id": 5, "method": "thread/start", "params": [1]}',
            -32600,
            "Invalid request: `params`",
        ),
        (
            b'{"id": 5, "method": "thread/start", "params": {"sandbox": "none"}}',
            -32600,
            "Invalid request: `sandbox`",
        ),
        (
            b'{"id": 5, "method": "thread/start", "params": {"dynamicTools": [{"name": "x"}]}}',
            -32600,
            "Invalid request: `dynamicTools`",
        ),
        (
            b'{"id": 5, "method": "thread/start", "params": {"cwd": "/no/such"}}',
            -32600,
            "/no/such",
        ),
        (
            b'{"id": 5, "method": "initialize", "params": {}}',
            -32600,
            "Already initialized",
        ),
        (
            b'{"id": 5, "method": "account/login/start", "params": {"type": "chatgptAuthTokens"}}',
            -32600,
            "type",
        ),
        (HUGE, -32600, "a message of more than 32 MB was skipped"),
    ],
)
def test_bad_input_is_one_error(
    place: Workplace, line: bytes, code: int, text: str
) -> None:
    with AppServer(place.home, place.cwd) as server:
        server.write(b"x" * 100_000_000 if line is HUGE else line)
        error = server.until(lambda message: "error" in message)["error"]
        assert (error["code"], text in error["message"]) == (code, True), error
        assert server.ask("thread/list") == {
            "data": [],
            "nextCursor": None,
            "backwardsCursor": None,
        }
    assert len([message for message in server.seen if "error" in message]) == 1


def test_the_handshake_is_first(place: Workplace) -> None:
    server = AppServer(place.home, place.cwd)
    assert server.refused("thread/list") == {
        "code": -32600,
        "message": "Not initialized",
    }
    with server:
        about = server.seen[-1]["result"]
        assert about["userAgent"].startswith("tests/0.171.0 (")
        assert about["codexHome"] == str(place.home)


@pytest.mark.parametrize(
    ("decision", "status", "outcome"),
    [
        ("accept", "completed", "completed"),
        ("decline", "declined", "completed"),
        ("cancel", "declined", "interrupted"),
        ("maybe", "declined", "completed"),
        (None, "declined", "completed"),
        # Nothing was proposed.
        ({"acceptWithExecpolicyAmendment": {}}, "declined", "completed"),
    ],
)
def test_a_command_is_asked_about(
    place: Workplace, decision: Any, status: str, outcome: str
) -> None:
    outside = runs(
        "touch x", sandbox_permissions="require_escalated", justification="need it"
    )
    with ScriptedServer([outside, says("ok")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            server.answer = lambda _: {"decision": decision}
            thread = server.thread(approvalPolicy="on-request", sandbox="read-only")
            turn = server.turn(thread)
            assert server.ended(thread)["status"] == outcome
    methods = [message.get("method") for message in server.seen]
    asked = server.seen[methods.index("item/commandExecution/requestApproval")]
    begun = server.seen[methods.index("item/commandExecution/requestApproval") - 2][
        "params"
    ]
    (item,) = server.items("commandExecution", thread)
    assert asked["params"]["threadId"] == thread
    assert asked["params"]["turnId"] == turn
    assert asked["params"]["itemId"] == begun["item"]["id"] == item["id"]
    assert "need it" in asked["params"]["reason"]
    assert asked["params"]["availableDecisions"][-2:] == ["decline", "cancel"]
    assert item["status"] == status
    resolved = {"threadId": thread, "requestId": asked["id"]}
    assert {"method": "serverRequest/resolved", "params": resolved} in server.seen
    assert (place.cwd / "x").exists() == (status == "completed")


@pytest.mark.parametrize("decision", ["accept", "decline"])
def test_a_patch_is_shown_before_it_is_asked_about(
    place: Workplace, decision: str
) -> None:
    with ScriptedServer([patches(), says("ok")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            server.answer = lambda _: {"decision": decision}
            thread = server.thread(approvalPolicy="on-request", sandbox="read-only")
            server.turn(thread)
            begun = server.until(
                lambda m: (
                    m.get("method") == "item/started"
                    and m["params"]["item"]["type"] == "fileChange"
                )
            )["params"]["item"]
            asked = server.told("item/fileChange/requestApproval")
            server.ended(thread)
    change = {"path": str(place.cwd / "b.txt"), "kind": {"type": "add"}, "diff": "b\n"}
    assert (begun["changes"], begun["id"]) == ([change], asked["itemId"])
    (item,) = server.items("fileChange", thread)
    assert item["id"] == begun["id"]
    assert item["status"] == ("completed" if decision == "accept" else "declined")
    assert (place.cwd / "b.txt").exists() == (decision == "accept")


def test_the_model_asks_the_user(place: Workplace) -> None:
    question = {
        "id": "a",
        "header": "H",
        "question": "Which?",
        "options": [
            {"label": "x", "description": "dx"},
            {"label": "y", "description": "dy"},
        ],
    }
    asks = ev_function_call("q1", "request_user_input", {"questions": [question]})
    with ScriptedServer([[ev_created(), *asks, ev_completed()], says("ok")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            server.answer = lambda _: {"answers": {"a": {"answers": ["y"]}}}
            thread = server.thread()
            server.turn(thread)
            asked = server.told("item/tool/requestUserInput")
            server.ended(thread)
    assert asked["questions"] == [{**question, "isOther": True, "isSecret": False}]
    assert (
        model.requests[1].fields["input"][-1]["output"]
        == '{"answers":{"a":{"answers":["y"]}}}'
    )


def test_threads_work_side_by_side(place: Workplace) -> None:
    pause = Pause()
    rest = ev_message("one", pieces=2)[3:]
    script = [[*begins("one", pause), *rest, ev_completed()]]
    with ScriptedServer(script, each_thread=True) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            threads = [server.thread() for _ in range(3)]
            for thread in threads:
                server.send("turn/start", said(thread))
            begun = {
                server.told("item/agentMessage/delta")["threadId"] for _ in threads
            }
            assert begun == set(threads)
            assert [server.items("agentMessage", thread) for thread in threads] == [
                [],
                [],
                [],
            ]
            pause.until.set()
            ends = {server.told("turn/completed")["threadId"] for _ in threads}
            assert ends == set(threads)
    answers = [
        [item["text"] for item in server.items("agentMessage", each)]
        for each in threads
    ]
    assert answers == [["one"]] * 3


def test_a_prompt_joins_the_running_turn_and_another_does_not(place: Workplace) -> None:
    pause = Pause()
    rest = ev_message("one", pieces=2)[3:]
    with ScriptedServer(
        [[*begins("one", pause), *rest, ev_completed()], says("two")]
    ) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            assert server.refused("turn/steer", steering(thread, "x"))["message"] == (
                "no active turn to steer"
            )
            turn = server.turn(thread)
            server.told("item/agentMessage/delta")
            assert server.turn(thread, "joins") == turn
            wrong = server.refused("turn/steer", steering(thread, "x"))
            assert wrong["message"] == f"expected active turn id `x` but found `{turn}`"
            assert server.ask("turn/steer", steering(thread, turn)) == {"turnId": turn}
            error = server.refused(
                "turn/start", {**steering(thread, ""), "model": "other"}
            )
            assert (
                "while it runs a turn" in error["message"]
                or "expectedTurnId" in error["message"]
            )
            pause.until.set()
            assert server.ended(thread)["status"] == "completed"
    prompts = [
        item["content"][0]["text"] for item in server.items("userMessage", thread)
    ]
    assert prompts == ["go", "joins", "steered"]


def steering(thread: str, turn: str) -> Message:
    said = [{"type": "text", "text": "steered"}]
    return {"threadId": thread, "expectedTurnId": turn, "input": said}


def test_a_prompt_steered_into_an_interrupted_turn_is_not_sent_in_the_next(
    place: Workplace,
) -> None:
    pause = Pause()
    with ScriptedServer([begins("one", pause), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            turn = server.turn(thread)
            server.told("item/agentMessage/delta")
            server.ask("turn/steer", steering(thread, turn))
            assert (
                server.ask("turn/interrupt", {"threadId": thread, "turnId": turn}) == {}
            )
            ended = server.ended(thread)
            assert (ended["status"], ended["error"]) == ("interrupted", None)
            error = server.refused(
                "turn/interrupt", {"threadId": thread, "turnId": turn}
            )
            assert error["message"] == "no active turn to interrupt"
            server.turn(thread, "next")
            server.ended(thread)
        pause.until.set()
    prompts = [
        item["content"][0]["text"] for item in server.items("userMessage", thread)
    ]
    assert prompts == ["go", "next"]


def test_a_prompt_right_behind_an_interrupt_is_a_turn_of_its_own(
    place: Workplace,
) -> None:
    with ScriptedServer(
        [runs("sleep 300", yield_time_ms=30_000), says("two")]
    ) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(approvalPolicy="never")
            turn = server.turn(thread)
            server.until(lambda message: "commandExecution" in json.dumps(message))
            server.send("turn/interrupt", {"threadId": thread, "turnId": turn})
            assert server.turn(thread, "next") != turn
            assert server.ended(thread)["status"] == "completed"
    assert [item["text"] for item in server.items("agentMessage", thread)] == ["two"]


def test_a_failed_turn_says_why_and_the_thread_goes_on(place: Workplace) -> None:
    with ScriptedServer([[ev_failed("invalid_prompt", "no")], says("yes")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            error = server.told("error")
            ended = server.ended(thread)
            assert (error["error"], error["willRetry"]) == (ended["error"], False)
            assert ended["error"]["message"] == "no"
            server.turn(thread)
            assert server.ended(thread)["items"][0]["text"] == "yes"
            turns = server.ask(
                "thread/read", {"threadId": thread, "includeTurns": True}
            )
    failed, completed = turns["thread"]["turns"]
    assert (failed["status"], completed["status"]) == ("failed", "completed")
    assert failed["error"]["message"] == "no"


def test_a_turn_in_which_the_server_was_killed_was_interrupted(
    place: Workplace,
) -> None:
    pause = Pause()
    with ScriptedServer([begins("one", pause)]) as model:
        place.configure(model)
        killed = AppServer(place.home, place.cwd).__enter__()
        thread = killed.thread()
        killed.turn(thread)
        assert pause.reached.wait(60)
        killed.program.kill()
        assert killed.leave() == -9
        pause.until.set()
        with AppServer(place.home, place.cwd) as server:
            asked = {"threadId": thread, "includeTurns": True}
            (turn,) = server.ask("thread/read", asked)["thread"]["turns"]
    assert (turn["status"], turn["error"]) == ("interrupted", None)


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ("usage_limit_exceeded", "usageLimitExceeded"),
        ("invalid_prompt", "other"),
        ({"response_stream_disconnected": {}}, "other"),
    ],
)
def test_a_turn_that_failed_in_codex_is_shown_as_failed(
    place: Workplace, info: Any, told: str
) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            server.ended(thread)
        # Codex 0.171 writes the error of a failed turn so.
        (path,) = place.rollouts()
        error = json.dumps({"message": "no", "codex_error_info": info})
        text = path.read_text(encoding="utf-8")
        end = '"type":"task_complete",'
        assert text.count(end) == 1
        path.write_text(text.replace(end, f'{end}"error":{error},'), encoding="utf-8")
        with AppServer(place.home, place.cwd) as server:
            asked = {"threadId": thread, "includeTurns": True}
            (turn,) = server.ask("thread/read", asked)["thread"]["turns"]
    assert turn["status"] == "failed"
    assert (turn["error"]["message"], turn["error"]["codexErrorInfo"]) == ("no", told)


@pytest.mark.parametrize("moment", ["idle", "command", "question", "half a line"])
def test_a_client_that_leaves_leaves_nothing_running(
    place: Workplace, moment: str
) -> None:
    command = runs("echo $$ > pid; echo on; exec sleep 1000", yield_time_ms=30_000)
    if moment == "question":
        command = runs(
            "touch x", sandbox_permissions="require_escalated", justification="w"
        )
    with ScriptedServer([command, says("ok")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            server.answer = None
            sandbox = "read-only" if moment == "question" else "danger-full-access"
            thread = server.thread(sandbox=sandbox, approvalPolicy="on-request")
            if moment != "idle":
                server.turn(thread)
            if moment == "question":
                server.told("item/commandExecution/requestApproval")
            elif moment != "idle":
                server.told("item/commandExecution/outputDelta")
            if moment == "half a line":
                assert server.program.stdin is not None
                server.program.stdin.write(b'{"id": 9, "meth')
    pid = place.cwd / "pid"
    assert not (pid.exists() and is_running(int(pid.read_text(encoding="utf-8"))))
    assert not (place.cwd / "x").exists()
    if moment != "idle":
        (path,) = place.rollouts()
        assert '"turn_aborted"' in path.read_text(encoding="utf-8")


def test_a_client_that_does_not_read_misses_deltas_and_nothing_else(
    place: Workplace,
) -> None:
    text = "0123456789" * 800_000
    many = [ev_created(), *ev_message(text, pieces=4_000)]
    call = ev_function_call("c1", "exec_command", {"cmd": "true"})
    pause = Pause()
    with ScriptedServer(
        [[*many, *call, ev_completed()], [pause, *says("end")]]
    ) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(approvalPolicy="never")
            server.reads.clear()
            said = [{"type": "text", "text": "go"}]
            server.send("turn/start", {"threadId": thread, "input": said})
            # Then the whole first answer was taken.
            assert pause.reached.wait(60)
            server.reads.set()
            pause.until.set()
            assert server.ended(thread)["status"] == "completed"
    texts = [item["text"] for item in server.items("agentMessage", thread)]
    assert (len(texts), texts[0] == text, texts[1]) == (2, True, "end")
    deltas = [m for m in server.seen if m.get("method") == "item/agentMessage/delta"]
    assert sum(len(each["params"]["delta"]) for each in deltas) < 6_000_000


def test_threads_are_found_read_and_put_away(place: Workplace) -> None:
    with ScriptedServer([says("one")], each_thread=True) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            one, two = server.thread(), server.thread()
            server.thread()
            for thread, text in ((one, "find me"), (two, "another")):
                server.turn(thread, text)
                server.ended(thread)
            assert (
                server.ask("thread/name/set", {"threadId": two, "name": " a  name "})
                == {}
            )
            assert server.told("thread/name/updated")["threadName"] == "a name"
        with AppServer(place.home, place.cwd) as server:
            found = server.ask("thread/list", {"searchTerm": "FIND"})["data"]
            assert [each["id"] for each in found] == [one]
            assert found[0]["status"] == {"type": "notLoaded"}
            page = server.ask("thread/list", {"limit": 1})
            assert [each["id"] for each in page["data"]] == [two]
            page = server.ask("thread/list", {"limit": 1, "cursor": page["nextCursor"]})
            assert ([each["id"] for each in page["data"]], page["nextCursor"]) == (
                [one],
                None,
            )
            assert server.ask("thread/list", {"sourceKinds": ["exec"]})["data"] == []
            elsewhere = server.ask("thread/list", {"cwd": str(place.home)})["data"]
            assert elsewhere == []
            read = server.ask("thread/read", {"threadId": two, "includeTurns": True})[
                "thread"
            ]
            assert (read["name"], read["preview"]) == ("a name", "another")
            kinds = [item["type"] for item in read["turns"][0]["items"]]
            assert kinds == ["userMessage", "agentMessage"]
            resumed = server.ask("thread/resume", {"threadId": one})["thread"]
            used = server.told("thread/tokenUsage/updated", threadId=one)
            assert used["turnId"] == resumed["turns"][0]["id"]
            assert used["tokenUsage"]["last"]["totalTokens"] == 120
            assert server.ask("thread/archive", {"threadId": one}) == {}
            archived = server.ask("thread/list", {"archived": True})["data"]
            assert [each["id"] for each in archived] == [one]
            error = server.refused("thread/resume", {"threadId": one})
            assert "is archived" in error["message"]
            assert (
                server.ask("thread/unarchive", {"threadId": one})["thread"]["id"] == one
            )
            missing = "01a20083-eb93-7380-b496-adcabec0901f"
            error = server.refused("thread/resume", {"threadId": missing})
            assert error["message"] == f"no rollout found for thread id {missing}"
            error = server.refused("turn/start", {"threadId": missing, "input": []})
            assert error["message"] == f"thread not found: {missing}"


@pytest.mark.parametrize(
    "before", ["turn/start", "thread/compact/start", "thread/name/set"]
)
def test_a_thread_that_is_archived_between_two_requests_stays_archived(
    place: Workplace, before: str
) -> None:
    with ScriptedServer([says("one")] * 4) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            server.ended(thread)
            start = {"threadId": thread, "input": [{"type": "text", "text": "go"}]}
            given = (
                {**start, "name": "a name"} if before == "thread/name/set" else start
            )
            server.send(before, given)
            archived = server.send("thread/archive", {"threadId": thread})
            second = server.send("turn/start", start)
            wanted, answers = {archived, second}, dict[int, Any]()
            while answers.keys() != wanted:
                message = server.until(lambda each: each.get("id") in wanted)
                answers[message["id"]] = message
            assert answers[archived]["result"] == {}
            said = answers[second]["error"]["message"]
            assert said.startswith(
                (f"thread {thread} was archived", f"thread not found: {thread}")
            )
            found = server.ask("thread/list", {"archived": True})["data"]
            assert [each["id"] for each in found] == [thread]
            assert (
                server.ask("thread/unarchive", {"threadId": thread})["thread"]["id"]
                == thread
            )
            server.ask("thread/resume", {"threadId": thread})
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"


def test_more_threads_than_stay_open_go_on_from_their_files(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two")], each_thread=True) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            threads = [server.thread() for _ in range(20)]
            for _ in range(2):
                for thread in threads:
                    server.turn(thread)
                    assert server.ended(thread)["status"] == "completed"
            read = server.ask(
                "thread/read", {"threadId": threads[0], "includeTurns": True}
            )
            assert read["thread"]["status"] == {"type": "notLoaded"}
    turns = [
        [item["text"] for item in turn["items"] if "text" in item]
        for turn in read["thread"]["turns"]
    ]
    assert turns == [["one"], ["two"]]


def test_the_settings_of_a_turn_hold_for_the_next_ones(place: Workplace) -> None:
    with ScriptedServer(
        [says("one"), says("two"), says("three")], check_prefix=False
    ) as model:
        place.configure(model)
        other = place.cwd / "other"
        other.mkdir()
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(model="gpt-5.5")
            writes = {
                "type": "workspaceWrite",
                "writableRoots": [str(place.home)],
                "networkAccess": True,
            }
            server.turn(thread, sandboxPolicy=writes, model="gpt-5.4", effort="high")
            server.ended(thread)
            server.turn(thread, cwd=str(other))
            server.ended(thread)
            resumed = server.ask("thread/resume", {"threadId": thread})
            assert resumed["cwd"] == str(other)
            assert resumed["sandbox"]["type"] == "workspaceWrite"
            assert resumed["sandbox"]["networkAccess"] is True
            assert str(place.home) in resumed["sandbox"]["writableRoots"]
            assert (resumed["model"], resumed["reasoningEffort"]) == ("gpt-5.4", "high")
            strange = {"type": "externalSandbox"}
            error = server.refused(
                "turn/start", {**said(thread), "sandboxPolicy": strange}
            )
            assert "sandboxPolicy" in error["message"]
            network = {"type": "readOnly", "networkAccess": True}
            error = server.refused(
                "turn/start", {**said(thread), "sandboxPolicy": network}
            )
            assert "networkAccess" in error["message"]
    sent = [request.fields["model"] for request in model.requests]
    assert sent == ["gpt-5.4", "gpt-5.4"]


def test_settings_that_are_repeated_are_no_change(place: Workplace) -> None:
    pause = Pause()
    rest = ev_message("one", pieces=2)[3:]
    with ScriptedServer(
        [[*begins("one", pause), *rest, ev_completed()], says("two")]
    ) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            # As an editor does with every turn, the first included.
            same = {"approvalsReviewer": "user", "cwd": str(place.cwd)}
            turn = server.turn(thread, **same)
            server.told("item/agentMessage/delta")
            assert server.turn(thread, **same) == turn
            pause.until.set()
            assert server.ended(thread)["status"] == "completed"


def test_the_first_turn_of_a_thread_may_choose_its_reviewer_and_folder(
    place: Workplace,
) -> None:
    (place.cwd / "sub").mkdir()
    with ScriptedServer([says("one"), runs("pwd"), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            # As codex-acp does with every turn.
            server.turn(thread, approvalsReviewer="auto_review")
            assert server.ended(thread)["status"] == "completed"
            other = server.thread()
            server.turn(other, cwd=str(place.cwd / "sub"))
            assert server.ended(other)["status"] == "completed"
            (item,) = server.items("commandExecution", other)
    assert item["aggregatedOutput"] == f"{place.cwd / 'sub'}\n"
    assert len(place.rollouts()) == 2


def test_an_ephemeral_thread_that_has_begun_goes_on_in_another_folder(
    place: Workplace,
) -> None:
    (place.cwd / "sub").mkdir()
    with ScriptedServer([says("one"), runs("pwd"), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(ephemeral=True)
            server.turn(thread, approvalsReviewer="auto_review")
            server.ended(thread)
            server.turn(thread, "and on", cwd=str(place.cwd / "sub"))
            assert server.ended(thread)["status"] == "completed"
            (item,) = server.items("commandExecution", thread)
    assert item["aggregatedOutput"] == f"{place.cwd / 'sub'}\n"
    assert place.rollouts() == []


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ({"action": "accept", "content": {"name": "me"}}, '{"action": "accept"'),
        ({"action": "what"}, '{"action": "decline"'),
        ({}, "user rejected MCP tool call"),
    ],
)
def test_servers_of_the_thread_ask_the_client(
    place: Workplace, tmp_path: Path, answer: Message, output: str
) -> None:
    call = ev_function_call("m1", "mcp__asks__asks", {})
    with ScriptedServer([[ev_created(), *call, ev_completed()], says("ok")]) as model:
        place.configure(model)
        program, *arguments = odd_command("asks", tmp_path / "messages")
        table = {"command": program, "args": arguments}
        with AppServer(place.home, place.cwd) as server:
            # The call first, then the question of the server.
            answers: list[Message] = [{"action": "accept"}, answer] if answer else [{}]
            server.answer = lambda _: answers.pop(0)
            config = {"mcp_servers.asks": table}
            thread = server.thread(
                config=config, approvalPolicy="on-request", sandbox="read-only"
            )
            server.turn(thread)
            asked = server.told("mcpServer/elicitation/request", threadId=thread)
            assert (asked["serverName"], asked["mode"]) == ("asks", "form")
            assert asked["_meta"]["codex_approval_kind"] == "mcp_tool_call"
            server.ended(thread)
            (item,) = server.items("mcpToolCall", thread)
    assert (item["server"], item["tool"]) == ("asks", "asks")
    assert output in json.dumps(model.requests[1].fields["input"][-1]).replace(
        '\\"', '"'
    )


def said(thread: str) -> Message:
    return {"threadId": thread, "input": [{"type": "text", "text": "go"}]}


def test_images_go_to_the_model(place: Workplace) -> None:
    (place.cwd / "a.png").write_bytes(PNG)
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    with ScriptedServer([says("seen")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(
                thread,
                input=[
                    {"type": "text", "text": "look"},
                    {"type": "image", "url": url},
                    {"type": "localImage", "path": "a.png"},
                ],
            )
            server.ended(thread)
            long = f"data:image/{'x' * 300};base64,AAAA"
            for bad in ("https://x/y.png", "data:image/png;base64,???", long):
                part = {"type": "image", "url": bad}
                error = server.refused(
                    "turn/start", {"threadId": thread, "input": [part]}
                )
                assert error["code"] == -32600
    parts = model.requests[0].fields["input"][-1]["content"]
    assert [part["image_url"] for part in parts if part["type"] == "input_image"] == [
        url,
        url,
    ]


def test_an_ephemeral_thread_leaves_no_file(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(ephemeral=True)
            server.turn(thread)
            server.ended(thread)
            read = server.ask("thread/read", {"threadId": thread})["thread"]
            assert (read["path"], read["ephemeral"], read["preview"]) == (
                None,
                True,
                "go",
            )
    assert place.rollouts() == []


def test_a_key_is_stored_and_removed(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        assert server.ask("account/read") == {
            "account": None,
            "requiresOpenaiAuth": True,
        }
        key = {"type": "apiKey", "apiKey": "sk-test-0123456789"}
        assert server.ask("account/login/start", key) == {"type": "apiKey"}
        assert server.told("account/updated")["authMode"] == "apikey"
        assert server.ask("account/read")["account"] == {"type": "apiKey"}
        stored = json.loads((place.home / "auth.json").read_text(encoding="utf-8"))
        assert stored["OPENAI_API_KEY"] == "sk-test-0123456789"
        for wrong in ("", "a\nb", "\ud800"):
            key = {"type": "apiKey", "apiKey": wrong}
            assert "key" in server.refused("account/login/start", key)["message"]
        assert server.ask("account/logout") == {}
        assert server.ask("account/read")["account"] is None


def test_the_schemas_are_those_of_the_methods(place: Workplace, tmp_path: Path) -> None:
    out = tmp_path / "schemas"
    words = ["app-server", "generate-json-schema", "--experimental", "--out", str(out)]
    done = run_codex_py(words, place.home, place.cwd)
    assert (done.returncode, done.stderr) == (0, b"")
    schema = json.loads(
        (out / "v2" / "TurnStartParams.json").read_text(encoding="utf-8")
    )
    assert schema["required"] == ["threadId", "input"]
    assert "outputSchema" in schema["properties"]
    whole = json.loads((out / "ClientRequest.json").read_text(encoding="utf-8"))
    methods = [each["properties"]["method"]["const"] for each in whole["oneOf"]]
    assert {"initialize", "thread/start", "turn/interrupt"} <= set(methods)
    # Codex 0.171 names the files so.
    named = {"FsReadFile", "ThreadInjectItems", "McpServerToolCall", "ThreadSetName"}
    named |= {"GetAccount", "LoginAccount", "CancelLoginAccount", "ListMcpServerStatus"}
    named |= {"GetAccountRateLimits", "McpResourceRead", "FuzzyFileSearchSessionStart"}
    files = {path.stem for path in (out / "v2").iterdir()}
    assert {f"{name}Params" for name in named} <= files
    assert len(files) == len(methods)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["app-server", "what"], "unexpected argument 'what'"),
        (
            ["app-server", "--listen", "ws://127.0.0.1:1"],
            "is not supported; it is stdio://",
        ),
        (["app-server", "generate-json-schema"], "needs --out DIR"),
    ],
)
def test_usage_errors(place: Workplace, words: list[str], text: str) -> None:
    done = run_codex_py(words, place.home, place.cwd)
    assert (done.returncode, done.stdout, text in done.stderr.decode()) == (
        2,
        b"",
        True,
    )


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"input": []}, "input must not be empty"),
        ({"input": [{"type": "text", "text": ""}]}, "the prompt is empty"),
        ({"input": [{"type": "text", "text": " "}]}, "the prompt is empty"),
        ({"input": [{"type": "text", "text": "\n\t"}]}, "the prompt is empty"),
        ({"input": [{"type": "text", "text": ""}] * 2}, "the prompt is empty"),
    ],
)
def test_a_turn_that_cannot_begin_is_an_error_of_the_request(
    place: Workplace, params: dict[str, Any], told: str
) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            error = server.refused("turn/start", {"threadId": thread, **params})
            assert (error["code"], told in error["message"]) == (-32600, True), error
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"


def test_a_blank_text_is_not_steered(place: Workplace) -> None:
    pause = Pause()
    with ScriptedServer([begins("one", pause)]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            turn = server.turn(thread)
            server.told("item/agentMessage/delta")
            blank = {
                "threadId": thread,
                "input": [{"type": "text", "text": " "}],
                "expectedTurnId": turn,
            }
            assert server.refused("turn/steer", blank)["message"] == (
                "the prompt is empty"
            )
            server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            server.ended(thread)
