"""Threads that are loaded, unsubscribed from and deleted, as by `codex app-server` 0.171.

Tests `frontends/app_server/threads/loaded_threads.py`,
`frontends/app_server/threads/open_threads.py` and `frontends/app_server/threads/thread_params.py`.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast
from uuid import uuid4

import pytest

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads import open_threads
from codex_py.frontends.app_server.threads.loaded_threads import LoadedThreadMethods
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.threads.thread_params import LoadedList
from codex_py.frontends.app_server.threads.threads import ThreadMethods
from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.app.test_json_rpc import in_a_loop
from tests.support.app_server import AppServer
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


class Client:
    """A client of the methods in this process.

    Attributes:
        told: the notifications, in order.
        closed: set when a thread was closed.
    """

    def __init__(self, place: Workplace) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.closed = asyncio.Event()
        variables = environment(place.home)
        server = Server(cast("JsonRpc", self), Arguments(cd=str(place.cwd)), variables)
        self.threads = OpenThreads(server)
        self.opened = ThreadMethods(server, self.threads)
        self.loaded = LoadedThreadMethods(server, self.threads)

    def notify(
        self, method: str, fields: Mapping[str, Any], *, is_live: bool = False
    ) -> None:
        """Take a notification in place of the connection."""
        assert not is_live
        self.told.append((method, fields))
        if method == "thread/closed":
            self.closed.set()

    async def start(self) -> params.OneThread:
        answer = await self.opened.start(params.ThreadStart())
        return params.OneThread(thread_id=answer["thread"]["id"])


def test_loaded_threads_are_listed_in_pages(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        assert server.ask("thread/loaded/list") == {"data": [], "nextCursor": None}
        ids = sorted(server.thread() for _ in range(3))
        first = server.ask("thread/loaded/list", {"limit": 2})
        assert first == {"data": ids[:2], "nextCursor": ids[1]}
        rest = server.ask("thread/loaded/list", {"cursor": ids[1], "limit": None})
        assert rest == {"data": ids[2:], "nextCursor": None}
        smallest = server.ask("thread/loaded/list", {"limit": 0})
        assert smallest == {"data": ids[:1], "nextCursor": ids[0]}
        error = server.refused("thread/loaded/list", {"cursor": "bad"})
        assert (error["code"], error["message"]) == (-32600, "invalid cursor: bad")


def test_requests_for_a_thread_wait_until_it_is_resumed(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            server.turn(thread["threadId"])
            server.ended(thread["threadId"])
        with AppServer(place.home, place.cwd) as server:
            said = [{"type": "text", "text": "again"}]
            asked = [
                ("thread/resume", thread),
                ("thread/resume", thread),
                ("turn/start", {**thread, "input": said}),
            ]
            numbers = [server.send(method, fields) for method, fields in asked]
            for number in numbers:
                assert "result" in server.answered(number)
            server.ended(thread["threadId"])
        with AppServer(place.home, place.cwd) as server:
            methods = ("thread/resume", "thread/delete")
            numbers = [server.send(method, thread) for method in methods]
            for number in numbers:
                assert "result" in server.answered(number)
    assert place.rollouts() == []


def test_an_id_may_be_in_capitals(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread_id = server.thread()
            server.turn(thread_id)
            server.ended(thread_id)
            thread = {"threadId": thread_id.upper()}
            assert server.ask("thread/resume", thread)["thread"]["id"] == thread_id
            assert server.ask("thread/read", thread)["thread"]["id"] == thread_id
            server.ask("thread/delete", thread)
            assert server.told("thread/deleted") == {"threadId": thread_id}
            assert server.ask("thread/loaded/list")["data"] == []
    assert place.rollouts() == []


def test_a_thread_without_a_prompt_can_be_archived(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        thread = {"threadId": server.thread()}
        assert server.ask("thread/archive", thread) == {}
        read = server.ask("thread/unarchive", thread)["thread"]
        assert read["id"] == thread["threadId"]


def test_without_a_subscription_only_the_status_is_told(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two"), says("three")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            server.turn(thread["threadId"])
            server.ended(thread["threadId"])
            assert server.ask("thread/unsubscribe", thread) == {
                "status": "unsubscribed"
            }
            assert server.ask("thread/unsubscribe", thread) == {
                "status": "notSubscribed"
            }
            before = len(server.seen)
            server.turn(thread["threadId"], "in silence")
            server.told("thread/status/changed", status={"type": "idle"})
            said = [each.get("method") for each in server.seen[before:]]
            assert [each for each in said if each] == ["thread/status/changed"] * 2
            loaded = server.ask("thread/loaded/list")["data"]
            assert loaded == [thread["threadId"]]
            # The turn is in the thread, and whoever resumes it hears of the next one.
            resumed = server.ask("thread/resume", thread)["thread"]
            assert len(resumed["turns"]) == 2
            server.turn(thread["threadId"])
            assert server.ended(thread["threadId"])["status"] == "completed"
            unknown = {"threadId": str(uuid4())}
            assert server.ask("thread/unsubscribe", unknown) == {"status": "notLoaded"}


@in_a_loop
async def test_a_thread_without_a_subscription_is_closed_after_a_while(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_threads, "_UNLOAD_S", 0.01)
    client = Client(place)
    kept = await client.start()
    gone = await client.start()
    for thread in (kept, gone):
        await client.loaded.unsubscribe(thread)
    found = client.threads.get(kept.thread_id)
    assert found is not None
    client.threads.subscribe(found)
    async with asyncio.timeout(30):
        await client.closed.wait()
    status = {"threadId": gone.thread_id, "status": {"type": "notLoaded"}}
    assert client.told[-2:] == [
        ("thread/status/changed", status),
        ("thread/closed", {"threadId": gone.thread_id}),
    ]
    listed = await client.loaded.list(LoadedList())
    assert listed["data"] == [kept.thread_id]
    await client.threads.aclose()


@in_a_loop
async def test_a_turn_that_begins_at_the_last_moment_keeps_its_thread_open(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_threads, "_UNLOAD_S", 0)
    client = Client(place)
    one = await client.start()
    thread = client.threads.get(one.thread_id)
    assert thread is not None
    goes_on = asyncio.Event()
    async with thread.lock:
        await client.loaded.unsubscribe(one)
        # The time is over, and the lock is waited for.
        for _ in range(10):
            await asyncio.sleep(0)
        turn = thread.begin(goes_on.wait)
    for _ in range(10):
        await asyncio.sleep(0)
    assert (thread.is_open, turn.is_cancelled) == (True, False)
    goes_on.set()
    async with asyncio.timeout(30):
        await client.closed.wait()
    await client.threads.aclose()


@in_a_loop
async def test_a_client_that_leaves_ends_the_wait(place: Workplace) -> None:
    client = Client(place)
    thread = await client.start()
    await client.loaded.unsubscribe(thread)
    await client.threads.aclose()
    assert "thread/closed" not in [method for method, _ in client.told]


def test_a_deleted_thread_is_gone(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            open_thread = server.thread()
            stored = server.thread()
            for thread in (open_thread, stored):
                server.turn(thread)
                server.ended(thread)
            named = {"threadId": open_thread, "name": "mine"}
            server.ask("thread/name/set", named)
            assert server.ask("thread/delete", {"threadId": open_thread}) == {}
            server.told("thread/deleted", threadId=open_thread)
            methods = [
                each.get("method") or "answer"
                for each in server.seen
                if each.get("params", {}).get("threadId") == open_thread
                or "result" in each
            ]
            assert methods[-3:] == ["thread/status/changed", "answer", "thread/deleted"]
            assert server.ask("thread/loaded/list")["data"] == [stored]
            for method in ("thread/delete", "thread/read", "thread/resume"):
                error = server.refused(method, {"threadId": open_thread})
                assert (
                    error["message"] == f"no rollout found for thread id {open_thread}"
                )
        # Another process, which has not opened it.
        with AppServer(place.home, place.cwd) as server:
            server.ask("thread/archive", {"threadId": stored})
            assert server.ask("thread/delete", {"threadId": stored}) == {}
            server.told("thread/deleted", threadId=stored)
    assert list(place.home.glob("*sessions/**/rollout-*")) == []
    assert "mine" not in (place.home / "session_index.jsonl").read_text("utf-8")


def test_a_running_turn_ends_before_its_thread_is_deleted(place: Workplace) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    with ScriptedServer([running]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            server.told("item/agentMessage/delta")
            server.ask("thread/delete", {"threadId": thread})
            pause.until.set()
            ends = [each for each in server.seen if "turn/completed" in str(each)]
            assert ends[0]["params"]["turn"]["status"] == "interrupted"
    assert place.rollouts() == []


def test_what_cannot_be_deleted_says_why(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            # A thread without a turn has no file yet.
            assert server.ask("thread/delete", {"threadId": server.thread()}) == {}
            ephemeral = server.thread(ephemeral=True)
            error = server.refused("thread/delete", {"threadId": ephemeral})
            text = f"thread is not persisted and cannot be deleted: {ephemeral}"
            assert error["message"] == text
            assert server.ask("thread/loaded/list")["data"] == [ephemeral]
            thread = server.thread()
            server.turn(thread)
            server.ended(thread)
            server.ask("thread/name/set", {"threadId": thread, "name": "mine"})
            # Names are not unique, so a thread is only deleted by its id.
            error = server.refused("thread/delete", {"threadId": "mine"})
            assert error["message"] == "invalid thread id: mine"
        with AppServer(place.home, place.cwd) as server:
            server.ask("thread/resume", {"threadId": thread})
            with AppServer(place.home, place.cwd) as other:
                error = other.refused("thread/delete", {"threadId": thread})
                assert "in use by another process" in json.dumps(error)
    assert len(place.rollouts()) == 1


@in_a_loop
async def test_a_cursor_that_is_no_id_is_refused(place: Workplace) -> None:
    with pytest.raises(RpcError, match="invalid cursor: x"):
        await Client(place).loaded.list(LoadedList(cursor="x"))
