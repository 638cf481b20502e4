"""Sessions are the same on every wire: what they do, what they leave behind and what `exec --json` says.

Tests `protocol/stream.py`.
"""

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.protocol.events import CommandOutputDelta, Event, MessageDelta
from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_item_done,
    ev_message,
    ev_reasoning,
    ev_text_deltas,
)
from tests.model.conftest import Reference
from tests.support.program import Workplace
from tests.support.searches import sample
from tests.support.wires import (
    ADD,
    DONE,
    EVERYTHING,
    WIRES,
    AnyWire,
    assert_same,
    ends,
    images,
    results,
    runs,
    workplace,
)

OTHERS = list(WIRES)[1:]


SEALED: dict[str, Any] = {
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "sealed",
}
FIVE = [
    event for n in range(5) for event in runs(f"c{n}", f"echo {n} >f{n}; echo {n}", n)
]
SESSIONS: dict[str, list[list[Any]]] = {
    "text": [ends(*ev_message("Hello\n\nthere.", pieces=4))],
    "reasoning": [ends(*ev_reasoning("Look *first*."), *ev_message("Hello.", index=1))],
    "one call": [ends(*ev_message("Look:"), *runs("c1", "echo hi", 1)), DONE],
    "reasoning before a call": [
        ends(*ev_reasoning("Hm."), *runs("c1", "echo hi", 1)),
        DONE,
    ],
    "five calls": [ends(*FIVE), DONE],
    "calls one after the other": [
        ends(*runs("c1", "echo 1")),
        ends(*runs("c2", "echo 2")),
        DONE,
    ],
    "freeform tool": [ends(*ev_custom_tool_call("c1", "apply_patch", ADD)), DONE],
    "failing command": [ends(*runs("c1", "echo no >&2; exit 3")), DONE],
    "failing tool": [
        ends(
            *ev_custom_tool_call(
                "c1", "apply_patch", ADD.replace("Add File", "Delete File")
            )
        ),
        DONE,
    ],
    "bad arguments": [ends(*ev_function_call("c1", "exec_command", '{"cmd":')), DONE],
    "wrong arguments": [
        ends(*ev_function_call("c1", "exec_command", '{"cmd": [1]}')),
        DONE,
    ],
    "no arguments": [ends(*ev_function_call("c1", "view_image", "{}")), DONE],
    "reasoning that is not shown": [
        ends(ev_item_done(SEALED), *runs("c1", "echo hi", 1)),
        DONE,
    ],
    "illegal name": [ends(*ev_function_call("c1", "no.such/tool", {})), DONE],
    "unknown tool": [ends(*ev_function_call("c1", "no_such_tool", {"x": 1})), DONE],
    "image": [
        ends(
            *ev_function_call("c1", "view_image", {"path": "a.png"}),
            *runs("c2", "echo hi", 1),
        ),
        DONE,
    ],
}


# The wires are no multiple of three, so that a sample has each of them, and each story.
@pytest.mark.parametrize(("name", "wire"), sample([*product(SESSIONS, OTHERS)]))
def test_a_session_leaves_behind_what_it_does_with_the_responses_api(
    ours: AnyWire, reference: Reference, name: str, wire: str
) -> None:
    def story(session: AnyWire, kind: str) -> None:
        session.prompt(kind, "go", *SESSIONS[name])

    story(ours, wire)
    theirs = reference(f"session: {name}", story)
    assert_same(ours, theirs)
    asked, expected = ours.requests[-1], theirs.requests[-1]
    assert results(asked) == results(expected)
    assert images(asked) == images(expected)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "blank",
    [ev_message(""), ev_message(" \n"), ev_reasoning("Hm."), []],
    ids=["empty", "white space", "reasoning", "nothing"],
)
def test_an_answer_may_be_blank(ours: AnyWire, blank: list[Any], wire: str) -> None:
    thread = ours.prompt(
        wire, "go", ends(*blank, *runs("c1", "echo hi", 1)), ends(*blank)
    )
    ours.prompt(wire, "again", DONE, resume=thread)
    assert ours.shown[-1]["text"] == "Done."


@pytest.mark.parametrize("wire", OTHERS)
def test_the_tokens_of_a_turn_are_counted(ours: AnyWire, wire: str) -> None:
    end = ev_completed(input_tokens=900, cached=400, output_tokens=70)
    ours.prompt(wire, "go", [*runs("c1", "true"), end], [*ev_message("Done."), end])
    usage = ours.last["usage"]
    assert (usage["input_tokens"], usage["cached_input_tokens"]) == (1800, 800)
    assert usage["output_tokens"] == 140


def test_a_failed_call_has_the_flag_of_its_api(ours: AnyWire) -> None:
    ours.prompt("anthropic", "go", *SESSIONS["wrong arguments"])
    block = ours.requests[-1].messages[-1]["content"][0]
    assert (block["type"], block["is_error"]) == ("tool_result", True)
    assert block["content"].startswith("[ERROR:InvalidArgs] ")


HALF = ev_text_deltas(["Half"])
FAILURES: dict[str, list[Any] | Reply] = {
    "server error": [ev_failed("server_error", "Oh.")],
    "in the middle": [*HALF, ev_failed("server_error", "Oh.")],
    "rate limit": [ev_failed("rate_limit_exceeded", "Slow down.")],
    "too long": [ev_failed("context_length_exceeded", "9 tokens > 8 maximum")],
    "cut off": [*HALF, ev_incomplete()],
    "filtered": [*HALF, ev_incomplete("content_filter")],
    "no end": HALF,
    "unknown key": Reply(status=401, body=b'{"error":{"message":"Unknown key."}}'),
    "too many requests": Reply(status=429, body=b'{"error":{"message":"Slow down."}}'),
    "unavailable": Reply(status=503, body=b'{"error":{"message":"Later."}}'),
    "no such model": Reply(status=404, body=b'{"error":{"message":"No such model."}}'),
}
ANTHROPIC_CODES = {
    "server error": "api_error",
    "in the middle": "api_error",
    "rate limit": "rate_limit_error",
}


@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_the_same_on_every_wire(
    ours: AnyWire, reference: Reference, name: str, wire: str
) -> None:
    def story(session: AnyWire, kind: str) -> None:
        session.prompt(kind, "go", FAILURES[name])

    story(ours, wire)
    theirs = reference(f"failure: {name}", story)
    found, expected = ours.last["error"], theirs.last["error"]
    for key in ("retryable", "http_status"):
        assert found[key] == expected[key]
    codes = ANTHROPIC_CODES if "anthropic" in WIRES[wire] else {}
    assert found["code"] == codes.get(name, expected["code"])
    assert ours.history == theirs.history


@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize(
    "end", [[], [ev_failed("server_error", "Oh.")]], ids=["no end", "error"]
)
def test_an_answer_that_breaks_off_is_asked_for_again(
    place: Workplace, tmp_path: Path, end: list[Any], wire: str
) -> None:
    sessions = (
        AnyWire(place, retries=1),
        AnyWire(workplace(tmp_path / "reference"), retries=1),
    )
    with sessions[0] as ours, sessions[1] as reference:
        for session, kind in ((ours, wire), (reference, "responses")):
            session.prompt(kind, "go", [*HALF, *end], DONE)
        assert [item["text"] for item in ours.shown if "text" in item] == ["Done."]
        assert ours.history == reference.history


@pytest.mark.parametrize("wire", ["chat", "anthropic", "text"])
def test_a_text_that_was_complete_when_the_answer_broke_off_is_asked_for_again(
    place: Workplace, wire: str
) -> None:
    """Else the request would end in it, which newer models of Anthropic refuse."""
    with AnyWire(place, retries=1) as ours:
        broken = [*ev_message("Half."), ev_failed("server_error", "Oh.")]
        ours.prompt(
            wire, "go", broken, ends(*ev_reasoning("Hm."), *runs("c1", "true", 1)), DONE
        )
        assert ours.requests[0].raw == ours.requests[1].raw
        assert [
            item["text"] for item in ours.shown if item["type"] == "agent_message"
        ] == ["Done."]


@pytest.mark.parametrize("wire", OTHERS)
@pytest.mark.parametrize("at_work", ["command", "answer"])
def test_an_interrupted_turn_can_be_gone_on_with(
    ours: AnyWire, reference: Reference, at_work: str, wire: str
) -> None:
    script = {
        "command": ends(
            *ev_reasoning("Hm."), *runs("c1", "echo up; exec sleep 600", 1)
        ),
        "answer": [*ev_text_deltas(["Half"]), Pause()],
    }

    def story(session: AnyWire, kind: str) -> None:
        interrupt(session, kind, script[at_work])

    story(ours, wire)
    theirs = reference(f"interrupted: {at_work}", story)
    assert_same(ours, theirs)
    assert results(ours.requests[-1]) == results(theirs.requests[-1])


@pytest.mark.parametrize("wire", WIRES)
def test_a_turn_that_is_interrupted_after_reasoning_can_be_gone_on_with(
    ours: AnyWire, wire: str
) -> None:
    interrupt(
        ours, wire, [*ev_reasoning("Hm."), *ev_text_deltas(["Half"], index=1), Pause()]
    )
    assert ours.shown[-1]["text"] == "Done."


def interrupt(session: AnyWire, wire: str, script: list[Any]) -> None:
    """A turn that is interrupted at its first output, and another one."""
    began = asyncio.Event()

    def sink(event: Event) -> None:
        if isinstance(event, CommandOutputDelta | MessageDelta):
            began.set()

    async def work(thread: Session) -> None:
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            turn = group.create_task(thread.run_turn("go"))
            await began.wait()
            thread.abort()
            await turn
        await thread.run_turn("again")

    session.session(wire, work, script, DONE, sink=sink)


@pytest.mark.parametrize("wire", OTHERS)
def test_a_session_can_be_resumed(
    ours: AnyWire, reference: Reference, wire: str
) -> None:
    def story(session: AnyWire, kind: str) -> None:
        thread = session.prompt(kind, "go", *EVERYTHING)
        session.prompt(kind, "again", ends(*runs("c5", "echo 5")), DONE, resume=thread)

    story(ours, wire)
    theirs = reference("resumed", story)
    assert_same(ours, theirs)
    assert results(ours.requests[-1]) == results(theirs.requests[-1])
    assert images(ours.requests[-1]) == images(theirs.requests[-1])
