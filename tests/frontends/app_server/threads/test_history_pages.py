"""The pages of a thread's history: cursors, directions, limits and views, as by `codex app-server` 0.171.

Tests `frontends/app_server/threads/history_pages.py`.
"""

from typing import Any
from uuid import uuid4

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def says_and_runs(text: str) -> list[Any]:
    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi"})
    return [ev_created(), *ev_message(text), *call, ev_completed()]


def texts(turn: Message) -> list[str]:
    """The types of the items of a turn, and the texts of its messages."""
    found: list[str] = []
    for item in turn["items"]:
        if item["type"] == "userMessage":
            found.append(item["content"][0]["text"])
        else:
            found.append(item.get("text", item["type"]))
    return found


def test_turns_are_read_in_both_directions(place: Workplace) -> None:
    script = [says("a"), says_and_runs("b"), says("c"), says("d")]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            ids: list[str] = []
            for text in ("one", "two", "three"):
                ids.append(server.turn(thread["threadId"], text))
                server.ended(thread["threadId"])

            def turns(**params: Any) -> Message:
                return server.ask("thread/turns/list", {**thread, **params})

            newest_first = turns()
            assert [each["id"] for each in newest_first["data"]] == ids[::-1]
            assert newest_first["nextCursor"] is None
            first = turns(limit=2, sortDirection="asc", itemsView="full")
            assert [texts(each) for each in first["data"]] == [
                ["one", "a"],
                ["two", "b", "commandExecution", "c"],
            ]
            rest = turns(cursor=first["nextCursor"], sortDirection="asc")
            assert [texts(each) for each in rest["data"]] == [["three", "d"]]
            assert rest["nextCursor"] is None
            # Back again, with the first turn of the page.
            back = turns(cursor=rest["backwardsCursor"], limit=0)
            assert [each["id"] for each in back["data"]] == [ids[2]]
            back = turns(cursor=back["nextCursor"])
            assert [texts(each) for each in back["data"]] == [
                ["two", "c"],
                ["one", "a"],
            ]
            assert {each["itemsView"] for each in back["data"]} == {"summary"}
            bare = turns(itemsView="notLoaded")["data"]
            assert [each["items"] for each in bare] == [[], [], []]
            end = turns(cursor=newest_first["backwardsCursor"], sortDirection="asc")
            assert [each["id"] for each in end["data"]] == [ids[2]]
            items = server.ask("thread/items/list", {**thread, "limit": 1})
            for cursor in ("bad", "[1]", items["nextCursor"]):
                error = server.refused(
                    "thread/turns/list", {**thread, "cursor": cursor}
                )
                assert (error["code"], error["message"]) == (
                    -32600,
                    f"invalid cursor: {cursor}",
                )
        # A process that has not opened the thread reads the same.
        with AppServer(place.home, place.cwd) as server:
            again = server.ask("thread/turns/list", thread)
            assert again == newest_first


def test_items_are_read_in_both_directions(place: Workplace) -> None:
    script = [says_and_runs("a"), says("b"), says("c")]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            ids: list[str] = []
            for text in ("one", "two"):
                ids.append(server.turn(thread["threadId"], text))
                server.ended(thread["threadId"])

            def items(**params: Any) -> Message:
                return server.ask("thread/items/list", {**thread, **params})

            def shown(page: Message) -> list[str]:
                return texts({"items": [each["item"] for each in page["data"]]})

            whole = items()
            assert shown(whole) == ["one", "a", "commandExecution", "b", "two", "c"]
            assert [each["turnId"] for each in whole["data"]] == [
                *[ids[0]] * 4,
                *[ids[1]] * 2,
            ]
            live = [
                item["id"]
                for item in server.items("commandExecution", thread["threadId"])
            ]
            assert live == [whole["data"][2]["item"]["id"]]
            page = items(limit=2)
            page = items(limit=2, cursor=page["nextCursor"])
            assert shown(page) == ["commandExecution", "b"]
            back = items(cursor=page["backwardsCursor"], sortDirection="desc")
            assert shown(back) == ["commandExecution", "a", "one"]
            assert shown(items(turnId=ids[1])) == ["two", "c"]
            nothing: Message = {"data": [], "nextCursor": None, "backwardsCursor": None}
            assert items(turnId="nope") == nothing
            # From an item on, which the page does not have.
            anchor = {"type": "item", "itemId": whole["data"][1]["item"]["id"]}
            after = items(turnId=ids[0], cursor=anchor)
            assert shown(after) == ["commandExecution", "b"]
            before = items(turnId=ids[0], cursor=anchor, sortDirection="desc")
            assert shown(before) == ["one"]
            for params, text in (
                ({"cursor": anchor}, "turnId is required when cursor is an item"),
                ({"cursor": anchor, "turnId": ids[1]}, "does not identify an item"),
            ):
                error = server.refused("thread/items/list", {**thread, **params})
                assert (error["code"], text in error["message"]) == (-32602, True)
            error = server.refused("thread/items/list", {**thread, "cursor": "bad"})
            assert error["message"] == "invalid cursor: bad"


def test_a_running_turn_is_in_the_page(place: Workplace) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    with ScriptedServer([running]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            turn = server.turn(thread, "go on")
            server.told("item/agentMessage/delta")
            (shown,) = server.ask("thread/turns/list", {"threadId": thread})["data"]
            assert (shown["id"], shown["status"]) == (turn, "inProgress")
            assert texts(shown) == ["go on"]
            pause.until.set()
            server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            server.ended(thread)


@pytest.mark.parametrize("method", ["thread/turns/list", "thread/items/list"])
def test_a_thread_without_a_file_has_no_pages(place: Workplace, method: str) -> None:
    with AppServer(place.home, place.cwd) as server:
        new = server.thread()
        error = server.refused(method, {"threadId": new})
        assert error["message"] == (
            f"thread {new} is not materialized yet; {method} is unavailable before first user message"
        )
        ephemeral = server.thread(ephemeral=True)
        error = server.refused(method, {"threadId": ephemeral})
        assert error["message"] == f"ephemeral threads do not support {method}"
        unknown = str(uuid4())
        error = server.refused(method, {"threadId": unknown})
        assert error["message"] == f"thread not loaded: {unknown}"
