"""Histories of all kinds can be sent on every wire, also by another provider than the one that they come from."""

import asyncio
import itertools
from typing import Any

import pytest

from codex_py import Extension, Note, Thread, ToolOutput, tool
from codex_py.core.session import Session
from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_function_call,
    ev_local_shell_call,
    ev_message,
    ev_reasoning,
    ev_web_search_call,
)
from tests.model.conftest import Reference
from tests.support.program import Workplace
from tests.support.wires import (
    DONE,
    EVERYTHING,
    WIRES,
    AnyWire,
    assert_same,
    ends,
    images,
    results,
    runs,
)

MAIN = ("responses", "chat", "anthropic", "text")
OTHERS = list(WIRES)[1:]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(MAIN, 2)))
def test_the_provider_of_a_session_can_be_another_one_for_a_while(
    ours: AnyWire, reference: Reference, first: str, second: str
) -> None:
    def story(session: AnyWire, kind: str, other: str = "responses") -> None:
        thread = session.prompt(kind, "go", *EVERYTHING)
        session.prompt(other, "again", ends(*runs("c5", "echo 5")), DONE, resume=thread)
        session.prompt(kind, "and back", DONE, resume=thread)

    story(ours, first, second)
    theirs = reference("another provider for a while", story)
    assert_same(ours, theirs)
    for server in (ours.servers[first], ours.servers[second]):
        expected = theirs.requests[-1 if server is ours.servers[first] else -2]
        assert results(server.requests[-1]) == results(expected)
        assert images(server.requests[-1]) == images(expected)
    for request in ours.servers[second].requests:
        # What only the first provider can read is not for the second one.
        assert b"sealed" not in request.raw
        assert b"sig_" not in request.raw


def test_a_fork_at_another_provider_keeps_what_only_the_first_one_can_read_from_it(
    ours: AnyWire,
) -> None:
    thread = ours.prompt("responses", "go", *EVERYTHING)
    fork = ours.prompt("functions", "again", DONE, resume=thread, fork=True)
    ours.prompt("functions", "once more", DONE, resume=fork)
    assert len(ours.servers["functions"].requests) == 2
    for request in ours.servers["functions"].requests:
        assert b"sealed" not in request.raw


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(MAIN, 2)))
def test_another_provider_can_go_on_in_the_middle_of_a_turn(
    ours: AnyWire, reference: Reference, first: str, second: str
) -> None:
    down = Reply(status=503, body=b'{"error":{"message":"Down."}}')
    flags = {"model_fallbacks": [{"provider": second, "model": "gpt-5.5"}]}
    ours.servers[second].add(*EVERYTHING[1:])
    thread = ours.prompt(first, "go", EVERYTHING[0], down, flags=flags)
    ours.prompt(first, "again", DONE, resume=thread)

    def undisturbed(session: AnyWire, kind: str) -> None:
        thread = session.prompt(kind, "go", *EVERYTHING)
        session.prompt(kind, "again", DONE, resume=thread)

    theirs = reference("everything, and again", undisturbed)
    assert ours.files == theirs.files
    assert ours.history == theirs.history
    # A warning comes on top.
    shown, expected = (
        [{**item, "id": None} for item in session.shown if item["type"] != "error"]
        for session in (ours, theirs)
    )
    assert shown == expected
    assert results(ours.requests[-1]) == results(theirs.requests[-1])
    assert images(ours.requests[-1]) == images(theirs.requests[-1])


@pytest.mark.parametrize("wire", OTHERS)
def test_ids_of_calls_that_another_provider_would_refuse_are_no_obstacle(
    ours: AnyWire, wire: str
) -> None:
    """Kimi's look like this, and come again in every turn."""
    script = [ends(*runs("functions.exec_command:0", f"echo {n}")) for n in range(2)]
    thread = ours.prompt("chat", "go", *script, DONE)
    ours.prompt(wire, "again", DONE, resume=thread)
    texts = [text.splitlines()[-1] for text in results(ours.requests[-1])]
    assert texts == ["0", "1"]


@pytest.mark.parametrize("wire", OTHERS)
def test_items_that_only_the_responses_api_has_are_translated_or_left_out(
    ours: AnyWire, wire: str
) -> None:
    first = ends(
        *ev_web_search_call("weather"),
        *ev_local_shell_call("c1", ["echo", "hi"], index=1),
        *ev_function_call("c2", "no_such_tool", {}, namespace="mcp__files__", index=2),
    )
    thread = ours.prompt("responses", "go", first, DONE)
    ours.prompt(wire, "again", DONE, resume=thread)
    shell, unknown = results(ours.requests[-1])
    assert ("hi" in shell, "unsupported call: mcp__files__no_such_tool" in unknown) == (
        True,
        True,
    )
    assert b"weather" not in ours.requests[-1].raw


@pytest.mark.parametrize("wire", WIRES)
def test_two_calls_of_one_answer_may_have_the_same_id(ours: AnyWire, wire: str) -> None:
    twice = ends(*runs("c1", "echo 1"), *runs("c1", "echo 2", 1))
    thread = ours.prompt(wire, "go", twice, DONE)
    ours.prompt(wire, "again", DONE, resume=thread)
    first, second = results(ours.requests[-1])
    assert first.endswith("1\n")
    if "responses" not in WIRES[wire] and "anthropic" not in WIRES[wire]:
        # Some servers of Chat Completions give all calls one id. Elsewhere it is the same call once more.
        assert second.endswith("2\n")


@pytest.mark.parametrize("wire", OTHERS)
def test_a_history_can_be_compacted(place: Workplace, wire: str) -> None:
    with AnyWire(place, check_prefix=False) as ours:

        async def work(session: Session) -> None:
            await session.run_turn("go")
            assert (await session.compact()).error is None
            await session.run_turn("again")

        summary = ends(*ev_message("A summary."))
        ours.session(
            wire, work, *EVERYTHING, summary, ends(*runs("c9", "echo 9")), DONE
        )
        assert b"A summary." in ours.requests[-1].raw
        (result,) = results(ours.requests[-1])
        assert result.endswith("9\n")


@pytest.mark.parametrize("wire", OTHERS)
def test_the_user_can_show_images(
    ours: AnyWire, reference: Reference, wire: str
) -> None:
    def story(session: AnyWire, kind: str) -> None:
        image = session.cwd / "a.png"
        view = ev_function_call("c1", "view_image", {"path": "a.png"})

        async def work(thread: Session) -> None:
            await thread.run_turn("look", images=[image])
            await thread.run_turn("and here", images=[image, image])

        session.session(kind, work, ends(*view), DONE, DONE)

    story(ours, wire)
    theirs = reference("images", story)
    assert_same(ours, theirs)
    assert (
        [images(r) for r in ours.requests]
        == [images(r) for r in theirs.requests]
        == [1, 2, 4]
    )


@pytest.mark.parametrize("wire", OTHERS)
def test_notes_come_where_the_wire_allows_them(
    ours: AnyWire, reference: Reference, wire: str
) -> None:
    """Between calls and their results, before requests, and of both roles."""

    @tool
    def weigh(what: str) -> ToolOutput:
        """Weighs something."""
        return ToolOutput(
            "5 kg", notes=(Note(f"{what} is heavy"), Note("mind it", "user"))
        )

    async def before_request() -> list[Note]:
        return [Note("a moment has passed")]

    def notes(_: Thread) -> Extension:
        return Extension(before_request=before_request)

    def story(session: AnyWire, kind: str) -> None:
        calls = [
            event
            for n in range(2)
            for event in ev_function_call(
                f"c{n}", "weigh", {"what": f"stone {n}"}, index=n
            )
        ]
        session.session(
            kind,
            lambda thread: thread.run_turn("go"),
            ends(*calls),
            ends(*ev_message("Once more:"), *runs("c3", "echo hi", 1)),
            DONE,
            tools=[weigh],
            extensions=[notes],
        )

    story(ours, wire)
    theirs = reference("notes", story)
    assert_same(ours, theirs)
    assert results(ours.requests[-1]) == results(theirs.requests[-1])
    for text in (
        b"stone 0 is heavy",
        b"stone 1 is heavy",
        b"mind it",
        b"a moment has passed",
    ):
        assert ours.requests[-1].raw.count(text) == theirs.requests[-1].raw.count(text)


@pytest.mark.parametrize("wire", OTHERS)
def test_a_turn_can_be_steered(ours: AnyWire, reference: Reference, wire: str) -> None:
    def story(session: AnyWire, kind: str) -> None:
        pause = Pause()

        async def work(thread: Session) -> None:
            async with asyncio.TaskGroup() as group:
                turn = group.create_task(thread.run_turn("go"))
                assert await asyncio.to_thread(pause.reached.wait, 20)
                assert thread.steer("faster")
                pause.until.set()
                await turn

        session.session(
            kind, work, [pause, *runs("c1", "echo hi"), ev_completed()], DONE
        )

    story(ours, wire)
    theirs = reference("steered", story)
    assert_same(ours, theirs)
    assert results(ours.requests[-1]) == results(theirs.requests[-1])


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_can_have_to_fit_a_schema(ours: AnyWire, wire: str) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"stars": {"type": "integer"}},
        "required": ["stars"],
        "additionalProperties": False,
    }
    ours.session(
        wire,
        lambda thread: thread.run_turn("rate it", output_schema=schema),
        ends(*ev_reasoning("Hm."), *runs("c1", "echo hi", 1)),
        ends(*ev_message("five")),
        ends(*ev_message('{"stars": 5}')),
    )
    assert ours.shown[-1]["text"] == '{"stars": 5}'
