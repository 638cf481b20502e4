"""Subagents of `exec`: what is printed, what is left behind, and that nothing runs on."""

import asyncio
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from codex_py import SessionOptions, load_config, open_session
from codex_py.app.thread import thread_items
from codex_py.protocol.event_items import AgentState, CollabToolCall
from codex_py.testing import Pause, Reply
from tests.support.agents import AgentServer, calls, says, texts, to_first, waits
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment, jsonl, run_codex_py
from tests.support.server import ScriptedServer

AT_ONCE = 10


def test_every_item_of_a_call_is_started_and_completed(place: Workplace) -> None:
    server = AgentServer(
        [
            calls("spawn_agent", message="count"),
            waits(),
            to_first("close_agent", "c2"),
            says("done"),
        ],
        [says("three")],
    )
    with server:
        outcome = place.run(server)
    parent, (child,) = outcome.events[0]["thread_id"], server.ids
    done = {child: {"status": "completed", "message": "three"}}

    def item(number: int, tool: str, **more: Any) -> dict[str, Any]:
        common = {"id": f"item_{number}", "type": "collab_tool_call", "tool": tool}
        receivers = {"sender_thread_id": parent, "receiver_thread_ids": [child]}
        return {**common, **receivers, "prompt": None, **more}

    open_: dict[str, Any] = {"agents_states": {}, "status": "in_progress"}
    begun = {child: {"status": "pending_init", "message": None}}
    seen = [
        event["item"] for event in outcome.events if event["type"].startswith("item.")
    ]
    assert seen == [
        item(0, "spawn_agent", receiver_thread_ids=[], prompt="count", **open_),
        item(0, "spawn_agent", prompt="count", agents_states=begun, status="completed"),
        item(1, "wait", **open_),
        item(1, "wait", agents_states=done, status="completed"),
        item(2, "close_agent", **open_),
        item(2, "close_agent", agents_states=done, status="completed"),
        {"id": "item_3", "type": "agent_message", "text": "done"},
    ]
    assert outcome.events[-1]["usage"]["input_tokens"] == 50


def test_why_an_agent_cannot_be_started_is_told(place: Workplace) -> None:
    spawn = calls("spawn_agent", message="x", agent_type="nope")
    with AgentServer([spawn, says("done")]) as server:
        outcome = place.run(server)
    (error,) = [item for item in outcome.items if item["type"] == "error"]
    assert error["message"] == "spawn_agent failed: unknown agent_type 'nope'"


def test_events_of_children_are_printed_on_request(place: Workplace) -> None:
    script = [calls("spawn_agent", message="x"), waits(), says("done")], [says("three")]
    with AgentServer(*script) as server:
        outcome = place.run(server, "--agent-events", "go")
    (child,) = server.ids
    of_child = [event for event in outcome.events if event.get("thread_id") == child]
    assert [event["type"] for event in of_child] == [
        *("thread.started", "turn.started", "item.completed", "turn.completed"),
    ]
    assert of_child[2]["item"] == {
        "id": "item_0",
        "type": "agent_message",
        "text": "three",
    }
    assert all("thread_id" not in e for e in outcome.events[1:] if e not in of_child)


def test_people_see_a_line_for_each_call(place: Workplace) -> None:
    script = [calls("spawn_agent", message="x"), waits(), says("done")], [says("three")]
    with AgentServer(*script) as server:
        place.configure(server)
        words = ["exec", "--skip-git-repo-check", "--agent-events", "go"]
        done = run_codex_py(words, place.home, place.cwd)
    lines = done.stderr.decode().splitlines()
    assert "warning: --agent-events has no effect without --json." in lines
    assert [line for line in lines if line.startswith("collab")] == [
        *("collab: SpawnAgent", "collab: Wait"),
    ]


def test_a_session_file_names_the_parent_and_can_be_resumed(place: Workplace) -> None:
    script = (
        [calls("spawn_agent", message="count"), waits(), says("done")],
        [says("three")],
    )
    with AgentServer(*script) as server:
        parent = place.run(server).events[0]["thread_id"]
        (child,) = server.ids
        (file,) = [path for path in place.rollouts() if child in path.name]
        meta = json.loads(file.read_text(encoding="utf-8").splitlines()[0])["payload"]
        by_hand = place.rerun("resume", child, "go on")
        last = place.rerun("resume", "--last", "on")
    spawn = {
        "parent_thread_id": parent,
        "depth": 1,
        "agent_path": None,
        "agent_nickname": "Ada",
        "agent_role": None,
    }
    assert {
        name: meta[name] for name in ("id", "session_id", "parent_thread_id", "source")
    } == {
        "id": child,
        "session_id": parent,
        "parent_thread_id": parent,
        "source": {"subagent": {"thread_spawn": spawn}},
    }
    assert (meta["thread_source"], meta["multi_agent_version"]) == ("subagent", "v1")
    assert (by_hand.events[0]["thread_id"], last.events[0]["thread_id"]) == (
        child,
        parent,
    )
    resumed = server.requests[-2]
    assert [text for role, text in texts(resumed) if role == "user"][-2:] == [
        "count",
        "go on",
    ]
    # It is a session as any other now, and may start agents of its own.
    assert "x-openai-subagent" not in resumed.headers
    assert any(tool["type"] == "namespace" for tool in resumed.body["tools"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_ten_children_runs_on(
    place: Workplace, tmp_path: Path, number: signal.Signals
) -> None:
    spawns = [
        event
        for n in range(AT_ONCE)
        for event in calls("spawn_agent", f"c{n}", index=n, message=f"task {n}")[:-1]
    ]
    with Lifeline(tmp_path) as line:
        sleeps = calls(
            "exec_command", cmd=f"{line.hold}sleep 600", yield_time_ms=60_000
        )
        ends = calls("spawn_agent", message="none")[-1:]
        with AgentServer(
            [[*spawns, *ends], waits(timeout_ms=600_000)], [sleeps]
        ) as server:
            place.configure(server)
            program = place.start("-c", f"agents.max_threads={AT_ONCE}", "go")
            line.wait_until_up(AT_ONCE)
            program.send_signal(number)
            out, err = program.communicate(timeout=120)
            line.wait_until_dead()
    assert (
        program.returncode
        == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    )
    assert b"Traceback" not in err
    if number != signal.SIGKILL:
        events = jsonl(out)
        assert [e["error"]["code"] for e in events if e["type"] == "turn.failed"] == [
            "aborted"
        ]


def test_children_work_side_by_side(place: Workplace) -> None:
    # Each answers only when all have asked.
    asked = threading.Barrier(AT_ONCE, timeout=120)

    def together(*_: Any) -> Any:
        asked.wait()
        return says("here")

    spawns = [
        event
        for n in range(AT_ONCE)
        for event in calls("spawn_agent", f"c{n}", index=n, message=f"task {n}")[:-1]
    ]
    ends = calls("spawn_agent", message="none")[-1:]

    def waits_for_the_rest(request: Any, ids: list[str]) -> Any:
        told = sum(
            text.startswith("<subagent_notification>") for _, text in texts(request)
        )
        return says("done") if told == AT_ONCE else waits(f"w{told}")(request, ids)

    with AgentServer(
        [[*spawns, *ends], *[waits_for_the_rest] * (AT_ONCE + 1)], [together]
    ) as server:
        outcome = place.run(server, "-c", f"agents.max_threads={AT_ONCE}", "go")
    assert outcome.messages == ["done"]
    names = {
        json.loads(server.of_parent()[-1].output(f"c{n}"))["nickname"]
        for n in range(AT_ONCE)
    }
    assert len(names) == AT_ONCE


def test_a_child_at_work_is_named_when_it_ends_with_its_parent(
    place: Workplace,
) -> None:
    hold = Pause()
    with AgentServer(
        [calls("spawn_agent", message="x"), says("done")], [[hold, *says("late")]]
    ) as server:
        outcome = place.run(server)
    assert outcome.code == 0
    assert [item["message"] for item in outcome.items if item["type"] == "error"] == [
        "Subagents were still at work when the turn ended, and were stopped: Ada."
    ]
    assert outcome.types[-1] == "turn.completed"


@pytest.mark.parametrize("wire_api", ["chat", "anthropic"])
def test_other_apis_have_flat_names(place: Workplace, wire_api: str) -> None:
    call = calls("list", "l")  # not offered, and so not run
    with ScriptedServer([call, says("done")]) as server:
        place.run(server, wire_api=wire_api)
        tools = server.requests[0].body["tools"]
    names = {tool.get("name") or tool["function"]["name"] for tool in tools}
    assert names >= {
        "spawn_agent",
        "wait_agent",
        "send_input",
        "close_agent",
        "resume_agent",
    }


def test_a_session_that_is_read_back_shows_its_calls(place: Workplace) -> None:
    script = (
        [calls("spawn_agent", message="count"), waits(), says("done")],
        [says("three")],
    )

    async def read_back() -> list[Any]:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env)
        options = SessionOptions(resume_last=True)
        async with open_session(
            config, options, lambda _: None, environment=env
        ) as session:
            return thread_items(session.initial_items())

    with AgentServer(*script) as server:
        place.run(server)
        shown = asyncio.run(read_back())
    started, waited = [item for item in shown if isinstance(item, CollabToolCall)]
    (child,) = server.ids
    assert (started.tool, started.prompt, started.names) == (
        "spawn_agent",
        "count",
        {child: "Ada"},
    )
    assert (waited.tool, waited.names) == ("wait", {child: "Ada"})
    assert waited.agents_states == {child: AgentState("completed", "three")}


def test_changes_and_refusals_of_a_subagent_are_reported_for_the_turn(
    place: Workplace,
) -> None:
    patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch"
    server = AgentServer(
        [calls("spawn_agent", message="x"), waits(), says("done")],
        [
            calls("apply_patch", "p", input=patch),
            calls(
                "exec_command",
                "r",
                cmd="echo hi",
                sandbox_permissions="require_escalated",
                justification="because",
            ),
            says("three"),
        ],
    )
    with server:
        outcome = place.run(
            server, "-s", "workspace-write", "--fail-on", "denied", "go"
        )
    end = outcome.events[-1]
    assert outcome.code == 5
    assert end["denied"]["calls"] == 1
    assert "+++ b/made.txt" in end["diff"]


def test_a_server_without_namespaces_gets_flat_names(place: Workplace) -> None:
    message = "Invalid value: 'namespace'. Supported values are: 'function'."
    refused = Reply(
        status=400, body=json.dumps({"error": {"message": message}}).encode()
    )
    with AgentServer([refused, says("done")]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["done"])
    names = [tool.get("name") for tool in server.requests[1].body["tools"]]
    assert "spawn_agent" in names
    assert "multi_agent_v1" not in names
