"""Sessions whose history was replaced or taken back, resumed by this program and by Codex.

What Codex makes of our files is checked where `CODEX_BINARY` names its program.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from codex_py.app.thread import thread_items
from codex_py.core.session import Session
from codex_py.instructions import instruction_text
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, ItemCompleted
from codex_py.protocol.prompts import SUMMARY_OPENING
from codex_py.testing import (
    Reply,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.codex import codex_resumes, needs_codex
from tests.support.program import Workplace
from tests.support.server import ScriptedServer
from tests.support.talk import Talk, talk


def says(text: str, **usage: int) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed(**usage)]


def said(input_: list[dict[str, Any]]) -> list[str]:
    """What user and model said, without the context; a summary as its last line."""
    texts: list[str] = []
    for item in input_:
        if item.get("role") not in {"user", "assistant"}:
            continue
        text = "".join(part.get("text", "") for part in item["content"])
        if text.startswith(SUMMARY_OPENING):
            texts.append(text.splitlines()[-1])
        elif not text.startswith(("<environment_context>", "# AGENTS.md")):
            texts.append(text)
    return texts


async def compacts(session: Session) -> None:
    await session.run_turn("first")
    assert (await session.compact()).error is None
    await session.run_turn("second")


async def goes_back(session: Session) -> None:
    for prompt in ("first", "second", "third"):
        await session.run_turn(prompt)
    session.rollback(2)
    await session.run_turn("fourth")


async def takes_back_what_was_said_into_a_turn(session: Session) -> None:
    await session.run_turn("first")
    turn = asyncio.create_task(session.run_turn("second"))
    await asyncio.sleep(0)
    assert session.steer("hurry")
    await turn
    session.rollback(1)
    await session.run_turn("third")


async def patches(session: Session) -> None:
    await session.run_turn("first")
    assert "patched" in (session.settings.cwd / "made.txt").read_text(encoding="utf-8")


async def goes_on_without_a_summary(session: Session) -> None:
    await session.run_turn("first")
    assert (await session.run_turn("second")).error is None


def refused(**error: str) -> Reply:
    return Reply(status=400, body=json.dumps({"error": error}).encode())


TOO_LONG = refused(code="context_length_exceeded", message="too long")
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+patched\n*** End Patch"
PATCHED = [
    [*ev_custom_tool_call("call_1", "apply_patch", PATCH), ev_completed()],
    says("one"),
]
COMPACTED = [says("one"), says("the note"), says("two")]
SHORTENED = [
    [*ev_function_call("c1", "exec_command", {"cmd": "seq 2000"}), ev_completed()],
    says("one"),
    TOO_LONG,
    refused(message="no summary"),
    says("two"),
]
ROLLED_BACK = [says("one"), says("two"), says("three"), says("four")]
CASES = [
    (compacts, COMPACTED, ["first", "the note", "second", "two"]),
    (patches, PATCHED, ["first", "one"]),
    (
        goes_on_without_a_summary,
        SHORTENED,
        ["first", "one", "second", instruction_text("compact/shortened.md"), "two"],
    ),
    (goes_back, ROLLED_BACK, ["first", "one", "fourth", "four"]),
    (
        takes_back_what_was_said_into_a_turn,
        [says("one"), says("two"), says("hurried"), says("three")],
        ["first", "one", "second", "two", "third", "three"],
    ),
]


@pytest.mark.parametrize(("work", "script", "expected"), CASES)
def test_replaced_and_taken_back_history_stays_away(
    place: Workplace, work: Talk, script: list[Any], expected: list[str]
) -> None:
    with ScriptedServer(
        [*script, says("more"), says("more")], check_prefix=False
    ) as server:
        thread_id = talk(place, server, work)
        resumed = place.rerun(
            "-c", "sandbox_mode='read-only'", "resume", thread_id, "go on"
        )
        assert (resumed.code, resumed.messages) == (0, ["more"])
        before, after = server.requests[-2].input, server.requests[-1].input
    assert said(after) == [*expected, "go on"]
    # What the model was sent last is what it is sent again, byte for byte.
    assert after[: len(before)] == before


@needs_codex
@pytest.mark.parametrize(("work", "script", "expected"), CASES)
def test_codex_sees_the_same_history(
    place: Workplace, work: Talk, script: list[Any], expected: list[str]
) -> None:
    with ScriptedServer(
        [*script, says("more"), says("even more")], check_prefix=False
    ) as server:
        thread_id = talk(place, server, work)
        codex_resumes(place, thread_id, "go on")
        assert said(server.requests[-1].input) == [*expected, "go on"]
        # And we see what Codex has added.
        assert place.rerun("resume", thread_id, "on").messages == ["even more"]
        assert said(server.requests[-1].input) == [*expected, "go on", "more", "on"]


def test_a_turn_of_exec_is_compacted_where_the_limit_says_so(place: Workplace) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi"})
    script = [[*call, ev_completed(input_tokens=1000)], says("the note"), says("done")]
    with ScriptedServer(script, check_prefix=False) as server:
        outcome = place.run(server, "-c", "model_auto_compact_token_limit=900", "go")
        assert (outcome.code, outcome.messages) == (0, ["done"])
        assert [said(request.input) for request in server.requests][-1] == [
            "go",
            "the note",
        ]
    assert [(item["id"], item["type"]) for item in outcome.items] == [
        ("item_0", "command_execution"),
        ("live_0", "context_compaction"),
        ("item_1", "agent_message"),
    ]
    assert outcome.events[-1]["usage"]["input_tokens"] == 1200
    (path,) = place.rollouts()
    types = [json.loads(line)["type"] for line in path.read_bytes().splitlines()]
    assert types.count("compacted") == 1


def test_a_request_that_does_not_fit_is_compacted(place: Workplace) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "seq 2000"})
    script = [[*call, ev_completed()], TOO_LONG, says("the note"), says("done")]
    with ScriptedServer(script, check_prefix=False) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["done"])


def test_a_compaction_is_tried_again_and_says_so(place: Workplace) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "seq 2000"})
    busy = Reply(status=503, body=b"")
    script = [[*call, ev_completed()], TOO_LONG, busy, says("the note"), says("done")]
    with ScriptedServer(script, check_prefix=False) as server:
        outcome = place.run(server, request_max_retries=1)
    assert (outcome.code, outcome.messages) == (0, ["done"])
    (notice,) = [
        event["message"] for event in outcome.events if event["type"] == "error"
    ]
    assert notice.startswith("Reconnecting... 1/1 (unexpected status 503")


def test_a_thread_that_goes_on_is_shown_from_its_beginning(place: Workplace) -> None:
    async def shows(session: Session) -> None:
        assert [
            (item.type, getattr(item, "text", ""))
            for item in thread_items(session.initial_items())
        ] == [
            ("user_message", "first"),
            ("agent_message", "one"),
            ("turn_time", ""),
            ("context_compaction", ""),
            ("turn_time", ""),
            ("user_message", "second"),
            ("agent_message", "two"),
            ("turn_time", ""),
        ]

    with ScriptedServer(COMPACTED, check_prefix=False) as server:
        talk(place, server, shows, resume=talk(place, server, compacts))


def test_another_model_has_other_tools_and_is_told(place: Workplace) -> None:
    events: list[Event] = []

    async def work(session: Session) -> None:
        await session.run_turn("first")
        session.change(replace(session.settings.choices, model="gpt-5"))
        session.change(replace(session.settings.choices, reasoning_effort="high"))
        await session.run_turn("second")
        for _ in range(2):
            session.change(replace(session.settings.choices, model="nobody's"))

    with ScriptedServer([says("one"), says("two")]) as server:
        talk(place, server, work, sink=events.append)
        first, second = server.requests
    assert (first.body["model"], second.body["model"]) == ("gpt-5.5", "gpt-5")
    assert second.body["reasoning"]["effort"] == "high"
    names = [[tool.get("name") for tool in r.body["tools"]] for r in (first, second)]
    assert ["exec_command" in names[0], "shell" in names[1]] == [True, True]
    switch = second.input[len(first.input) + 1]
    assert switch["content"][0]["text"].startswith("<model_switch>\n")
    warnings = [
        event.item.message
        for event in events
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem)
    ]
    assert len(warnings) == 1
    assert warnings[0].startswith("Model metadata for `nobody's` not found.")


def test_a_fork_leaves_the_thread_that_it_comes_from_alone(place: Workplace) -> None:
    async def one(session: Session) -> None:
        await session.run_turn("first")
        session.rename("work")

    async def two(session: Session) -> None:
        assert session.name is None
        assert session.rollback(1).text == "first"
        await session.run_turn("instead")

    async def three(session: Session) -> None:
        assert session.name == "work"
        await session.run_turn("second")

    script = [says("one"), says("two"), says("three")]
    with ScriptedServer(script, check_prefix=False) as server:
        parent = talk(place, server, one)
        child = talk(place, server, two, resume="work", fork=True)
        assert said(server.requests[-1].input) == ["instead"]
        assert talk(place, server, three, resume="work") == parent
        assert said(server.requests[-1].input) == ["first", "one", "second"]
    assert child != parent
    metas = [
        json.loads(path.read_bytes().splitlines()[0])["payload"]
        for path in place.rollouts()
    ]
    assert {meta["id"]: meta.get("forked_from_id") for meta in metas} == {
        parent: None,
        child: parent,
    }
