"""Items that a client injects, and histories that are taken back. Words are those of `codex app-server` 0.171.

Tests `frontends/app_server/threads/history_changes.py` and `app/injected_items.py`.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.app.injected_items import MAX_BYTES, MAX_ITEMS, encoded_items
from codex_py.errors import CodexError
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.app_server import AppServer, Message
from tests.support.codex import codex_resumes, needs_codex
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def said(text: str, role: str = "user") -> Message:
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": text}],
    }


CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "seen"}


DAMAGING: list[tuple[list[Any], str]] = [
    ([], "items must not be empty"),
    (["x"], "items[0] is not a valid response item: field 'type'"),
    ([said("a"), {"type": "nothing"}], "items[1] is not a valid response item"),
    ([{"type": "compaction", "encrypted_content": "x"}], "is not one of"),
    ([{"type": ["message"]}], "is not one of"),
    ([{"type": "message", "role": "user"}], "field 'content'"),
    ([{"type": "message", "role": "user", "content": [{}]}], "'content.0.type'"),
    ([said("a", "robot")], "the role 'robot' is unknown"),
    ([{"type": "reasoning"}], "field 'summary'"),
    ([CALL], "a call has no output"),
    ([OUTPUT], "there is no call before this output"),
    ([CALL, said("a"), OUTPUT], "a call before this item has no output yet"),
    ([CALL, OUTPUT, OUTPUT], "there is no call before this output"),
    ([CALL, CALL, OUTPUT], "a call has no output"),
    ([{**CALL, "call_id": ""}], "has no `call_id`"),
    ([{**CALL, "type": "custom_tool_call", "input": ""}, OUTPUT], "no output"),
    ([said("x" * MAX_BYTES)], "more than 16 MB"),
    ([said("x")] * (MAX_ITEMS + 1), "more than 1000 items"),
]


def texts(request: Any) -> list[str]:
    """The texts of a request's messages and outputs that are no context."""
    found: list[str] = []
    for item in request.fields["input"]:
        parts = item.get("content", [{"text": item.get("output", item["type"])}])
        found += [
            part["text"] for part in parts if not part["text"].startswith(("<", "You"))
        ]
    return found


def prompts(server: AppServer, thread: Message) -> list[str]:
    turns = server.ask("thread/read", {**thread, "includeTurns": True})["thread"][
        "turns"
    ]
    return [
        item["content"][0]["text"]
        for turn in turns
        for item in turn["items"]
        if item["type"] == "userMessage"
    ]


def test_injected_items_are_sent_and_kept(place: Workplace) -> None:
    with ScriptedServer([says("a"), says("b"), says("c")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            items = [said("be kind", "developer"), said("earlier"), CALL, OUTPUT]
            asked = {**thread, "items": items}
            assert server.ask("thread/inject_items", asked) == {}
            server.turn(thread["threadId"], "one")
            server.ended(thread["threadId"])
            more = {**thread, "items": [said("I did", "assistant")]}
            server.ask("thread/inject_items", more)
            server.turn(thread["threadId"], "two")
            server.ended(thread["threadId"])
            # As in Codex, the client does not see its own items among those of the turns.
            assert prompts(server, thread) == ["one", "two"]
        with AppServer(place.home, place.cwd) as server:
            server.ask("thread/resume", {**thread, "sandbox": "danger-full-access"})
            server.turn(thread["threadId"], "three")
            server.ended(thread["threadId"])
    before = ["be kind", "earlier", "function_call", "seen", "one"]
    assert texts(model.requests[0]) == before
    assert texts(model.requests[1]) == [*before, "a", "I did", "two"]
    assert texts(model.requests[2])[-4:] == ["I did", "two", "b", "three"]


def test_a_running_turn_sends_injected_items_with_its_next_request(
    place: Workplace,
) -> None:
    pause = Pause()
    call = ev_function_call("c2", "exec_command", {"cmd": "true"})
    first = [ev_created(), *ev_message("hm", pieces=2)[:3], pause]
    first += [*ev_message("hm", pieces=2)[3:], *call, ev_completed()]
    with ScriptedServer([first, says("done")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            server.turn(thread["threadId"], "one")
            server.told("item/agentMessage/delta")
            server.ask("thread/inject_items", {**thread, "items": [said("look here")]})
            pause.until.set()
            assert server.ended(thread["threadId"])["status"] == "completed"
    assert texts(model.requests[1])[-1] == "look here"


@pytest.mark.parametrize(("items", "text"), DAMAGING)
def test_items_that_would_damage_the_history_are_refused(
    items: Sequence[Any], text: str
) -> None:
    with pytest.raises(CodexError) as raised:
        encoded_items(items)
    assert text in str(raised.value)


def test_items_are_encoded_as_any_provider_takes_them() -> None:
    item = {**said("\ud800"), "x": float("nan"), "id": "msg_1"}
    (encoded,) = encoded_items([item])
    assert json.loads(encoded)["content"][0]["text"] == "\ufffd"
    assert json.loads(encoded)["x"] is None
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "x"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "y"}
    assert len(encoded_items([custom, result, said("a", "system")])) == 3


def test_a_refused_item_leaves_the_thread_as_it_was(place: Workplace) -> None:
    with ScriptedServer([says("a")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            asked = {**thread, "items": [said("kept not"), CALL]}
            error = server.refused("thread/inject_items", asked)
            assert (error["code"], "a call has no output" in error["message"]) == (
                -32600,
                True,
            )
            server.turn(thread["threadId"], "one")
            server.ended(thread["threadId"])
    assert texts(model.requests[0]) == ["one"]


def test_a_history_is_taken_back_to_before_a_turn(place: Workplace) -> None:
    answers = [says(text) for text in "abcd"]
    with ScriptedServer(answers, check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            ids: list[str] = []
            for text in ("one", "two", "three"):
                ids.append(server.turn(thread["threadId"], text))
                server.ended(thread["threadId"])
                injected = {**thread, "items": [said(f"after {text}")]}
                server.ask("thread/inject_items", injected)
            (place.cwd / "made.txt").write_text("kept", encoding="utf-8")
            answer = server.ask("thread/revert", {**thread, "beforeTurnId": ids[1]})
            server.told("thread/reverted", **thread)
            assert answer["thread"]["turns"] == []
            cursor = {
                "cursor": answer["turnsBackwardsCursor"],
                "sortDirection": "desc",
            }
            page = server.ask("thread/turns/list", {**thread, **cursor})
            assert [turn["id"] for turn in page["data"]] == [ids[0]]
            cursor["cursor"] = answer["itemsBackwardsCursor"]
            page = server.ask("thread/items/list", {**thread, **cursor})
            assert [each["item"]["type"] for each in page["data"]] == [
                "agentMessage",
                "userMessage",
            ]
            for turn_id in (ids[1], "nope"):
                asked = {**thread, "beforeTurnId": turn_id}
                error = server.refused("thread/revert", asked)
                assert error["message"] == f"turn not found: {turn_id}"
        # Another process goes on from there.
        with AppServer(place.home, place.cwd) as server:
            server.ask("thread/resume", {**thread, "sandbox": "danger-full-access"})
            server.turn(thread["threadId"], "four")
            server.ended(thread["threadId"])
            assert prompts(server, thread) == ["one", "four"]
            statuses = [
                turn["status"]
                for turn in server.ask("thread/turns/list", thread)["data"]
            ]
            assert statuses == ["completed", "completed"]
    assert texts(model.requests[3]) == ["one", "a", "after one", "four"]
    assert (place.cwd / "made.txt").exists()


def test_a_running_turn_is_interrupted_and_taken_back(place: Workplace) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    script = [says("a"), running, says("c")]
    with ScriptedServer(script, check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            first = server.turn(thread["threadId"], "one")
            server.ended(thread["threadId"])
            second = server.turn(thread["threadId"], "two")
            server.told("item/agentMessage/delta")
            error = server.refused("thread/revert", {**thread, "beforeTurnId": "x"})
            assert error["message"] == "turn not found: x"
            server.ask("thread/revert", {**thread, "beforeTurnId": second})
            pause.until.set()
            ends = [each for each in server.seen if "turn/completed" in str(each)]
            assert ends[-1]["params"]["turn"]["status"] == "interrupted"
            (turn,) = server.ask("thread/turns/list", thread)["data"]
            assert turn["id"] == first
            server.turn(thread["threadId"], "three")
            server.ended(thread["threadId"])
    assert texts(model.requests[2]) == ["one", "a", "three"]


def test_what_cannot_be_taken_back_says_why(place: Workplace) -> None:
    with ScriptedServer([says("a"), says("sum"), says("b")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            ephemeral = {"threadId": server.thread(ephemeral=True)}
            error = server.refused("thread/revert", {**ephemeral, "beforeTurnId": "x"})
            assert error["message"] == "ephemeral threads do not support thread/revert"
            thread = {"threadId": server.thread()}
            first = server.turn(thread["threadId"], "one")
            server.ended(thread["threadId"])
            server.ask("thread/compact/start", thread)
            compaction = server.ended(thread["threadId"])["id"]
            for turn_id, text in (
                (first, f"a summary has replaced turn {first}"),
                (compaction, f"turn {compaction} has no prompt"),
            ):
                asked = {**thread, "beforeTurnId": turn_id}
                assert text in server.refused("thread/revert", asked)["message"]


@needs_codex
def test_codex_goes_on_with_what_was_injected_and_taken_back(place: Workplace) -> None:
    answers = [says(text) for text in "abcd"]
    with ScriptedServer(answers, check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            items = [said("earlier"), CALL, OUTPUT]
            server.ask("thread/inject_items", {**thread, "items": items})
            for text in ("one", "two"):
                turn = server.turn(thread["threadId"], text)
                server.ended(thread["threadId"])
            server.ask("thread/revert", {**thread, "beforeTurnId": turn})
        codex_resumes(place, thread["threadId"], "three")
    asked = json.dumps(model.requests[2].fields["input"])
    for text in ("earlier", "seen", '"one"', '"a"', '"three"'):
        assert text in asked
    assert '"two"' not in asked
