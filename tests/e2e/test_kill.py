"""Kill the program at each event that it shows, and resume: the model gets every result that was shown."""

import json
import os
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from tests.support.codex import codex_resumes, needs_codex
from tests.support.program import Workplace, jsonl
from tests.support.searches import sample
from tests.support.server import ScriptedServer

Event = dict[str, Any]


def says(text: str) -> list[Event]:
    return [*ev_message(text), ev_completed()]


DONE = says("done")
PATCH = "*** Begin Patch\n*** Add File: added\n+text\n*** End Patch"
EVENTS = 30
"""The events of a run that nobody kills."""


def call(call_id: str, cmd: str, index: int) -> list[Event]:
    return ev_function_call(call_id, "exec_command", {"cmd": cmd}, index=index)


def script(gate: Path, second: str = "quick") -> list[Any]:
    """`slow` ends after all other calls of its response. Then a stream breaks, and the retry repeats a call of it.

    `second`: the id of a call that comes after one with the id `quick`.
    """
    plan = {"plan": [{"step": "all of it", "status": "in_progress"}]}
    many = [
        *ev_reasoning("First I look.", index=0),
        *ev_message("On it.", index=1),
        *ev_custom_tool_call("patch", "apply_patch", PATCH, index=2),
        *ev_function_call("plan", "update_plan", plan, index=3),
        *call("slow", f"cat {gate}", 4),
        *ev_reasoning("Then I try.", index=5),
        *call("quick", "echo swift", 6),
        *ev_function_call("image", "view_image", {"path": "none.png"}, index=7),
        *ev_function_call("unknown", "no_such_tool", {}, index=8),
        *call(second, "echo again", 9),
        *call("fails", "echo wrong; exit 3", 10),
        ev_completed(),
    ]
    begun = [*ev_reasoning("Now this.", index=0), *call("broken", "echo once", 1)]
    cut = Reply(events=[*begun, *ev_reasoning("And that?", index=2)], cut=True)
    retried = [
        *begun,
        *call("retried", "echo twice", 2),
        *ev_message("Nearly.", index=3),
    ]
    return [many, cut, [*retried, ev_completed()], says("All done.")]


def read(program: subprocess.Popen[bytes], events: int, gate: Path) -> list[Event]:
    """Read this many events, or all; let `slow` end when the last of the other calls has been shown."""
    assert program.stdout is not None
    seen: list[Event] = []
    while len(seen) < events and (line := program.stdout.readline()):
        seen.append(json.loads(line))
        item = seen[-1].get("item", {})
        if seen[-1]["type"] == "item.completed" and "exit 3" in item.get("command", ""):
            gate.write_text("at last\n", encoding="utf-8")
    return seen


def outputs(items: Sequence[Event]) -> list[tuple[str, str]]:
    found = [item for item in items if item["type"].endswith("_output")]
    return [(item["call_id"], str(item["output"])) for item in found]


def check_that_nothing_shown_is_lost(
    shown: Sequence[Event], items: Sequence[Event]
) -> None:
    texts = [part.get("text") for item in items for part in item.get("content") or ()]
    answers = outputs(items)
    for item in (event["item"] for event in shown if event["type"] == "item.completed"):
        match item:
            case {"type": "agent_message", "text": text}:
                assert text in texts
            case {"type": "command_execution", "aggregated_output": text}:
                assert any(text in answer for _, answer in answers), text
            case {"type": "file_change"}:
                assert any(
                    each == "patch" and "Success" in text for each, text in answers
                )
            case {"type": "mcp_tool_call"}:
                assert any(
                    each == "image" and "none.png" in text for each, text in answers
                )
            case {"type": "error", "call_id": call_id, "code": code}:
                assert any(each == call_id and code in text for each, text in answers)
            case _:
                assert item["type"] in {"reasoning", "todo_list", "error"}


def check_order(items: Sequence[Event], second: str = "quick") -> None:
    """Outputs are behind all items of their response, in the order of its calls; reasoning has what it led to."""
    firsts = {"First I look.": "message", "Then I try.": "quick", "Now this.": "broken"}
    for item, after in pairwise(items):
        if item["type"] == "reasoning":
            wanted = firsts[item["summary"][0]["text"]]
            assert wanted in {after["type"], after.get("call_id")}
    ids = ["patch", "plan", "slow", "quick", "image", "unknown", second, "fails"]
    found = [item for item in items if item.get("call_id") in ids]
    calls = len(found) // 2
    assert [item["call_id"] for item in found] == [*ids[:calls], *ids[:calls]]
    assert outputs(found) == outputs(found[calls:])


def killed(place: Workplace, server: ScriptedServer, events: int) -> list[Event]:
    """Run the script, and kill the program when it has shown this many events. Returns all that it has shown.

    The first of many kills is of a program that is no fork, which a kill ends as it does any process.
    """
    gate = place.cwd / "gate"
    os.mkfifo(gate)
    place.configure(server, stream_max_retries=1)
    program = place.start(real=True if events == 1 else None)
    shown = read(program, events, gate)
    return [*shown, *kill(program)]


def kill(program: subprocess.Popen[bytes]) -> list[Event]:
    program.kill()
    rest, _ = program.communicate(timeout=120)
    return jsonl(rest[: rest.rfind(b"\n") + 1])


def check_resumed(
    place: Workplace, before: ScriptedServer, shown: Sequence[Event]
) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        assert place.rerun("resume", "--last", "go on").messages == ["done"]
        # That this one begins with the one before is checked by the server.
        assert place.rerun("resume", "--last", "and on").messages == ["done"]
    items = server.requests[0].input
    sent = before.requests[-1].input if before.requests else []
    assert items[: len(sent)] == sent
    check_that_nothing_shown_is_lost(shown, items)
    check_order(items)


@pytest.mark.parametrize("events", sample(range(1, EVENTS + 1)))
def test_a_kill_loses_nothing_that_was_shown(place: Workplace, events: int) -> None:
    with ScriptedServer(script(place.cwd / "gate")) as server:
        shown = killed(place, server, events)
    assert len(shown) <= EVENTS
    check_resumed(place, server, shown)


@pytest.mark.parametrize("request_number", range(4))
def test_a_kill_while_a_request_is_out_loses_nothing(
    place: Workplace, request_number: int
) -> None:
    gate, silence = place.cwd / "gate", Pause()
    gate.write_text("at last\n", encoding="utf-8")
    replies = [*script(gate)[:request_number], [silence]]
    with ScriptedServer(replies) as server:
        place.configure(server, stream_max_retries=1)
        program = place.start(real=True)
        assert silence.reached.wait(120)
        shown = kill(program)
        silence.until.set()
    check_resumed(place, server, shown)


@needs_codex
@pytest.mark.parametrize("events", sample([2, 5, 10, 16, 18, 20, 22, 24, 26, 28, 30]))
def test_codex_goes_on_with_a_killed_session_and_we_with_what_it_adds(
    place: Workplace, events: int
) -> None:
    # Of two calls with one id, Codex answers one: it would leave the other without an output.
    with ScriptedServer(script(place.cwd / "gate", second="another")) as server:
        shown = killed(place, server, events)
    with ScriptedServer([says("heard"), DONE], check_prefix=False) as server:
        place.configure(server)
        codex_resumes(place, shown[0]["thread_id"], "go on")
        check_that_nothing_shown_is_lost(shown, server.requests[0].input)
        assert place.rerun("resume", shown[0]["thread_id"], "and on").messages == [
            "done"
        ]
    items = server.requests[1].input
    check_that_nothing_shown_is_lost(shown, items)
    check_order(items, "another")
    texts = [part["text"] for item in items for part in item.get("content") or ()]
    heard = ["go on", "heard", "and on"]
    assert [text for text in texts if text in heard] == heard


def test_the_events_of_a_whole_run_are_counted_right(place: Workplace) -> None:
    gate = place.cwd / "gate"
    os.mkfifo(gate)
    with ScriptedServer(script(gate)) as server:
        place.configure(server, stream_max_retries=1)
        program = place.start(real=True)
        shown = read(program, 1000, gate)
        assert program.wait(120) == 0
        items = server.requests[-1].input
    program.communicate()
    assert (len(shown), shown[-1]["type"]) == (EVENTS, "turn.completed")
    check_that_nothing_shown_is_lost(shown[:-3], items)
    check_order(items)
