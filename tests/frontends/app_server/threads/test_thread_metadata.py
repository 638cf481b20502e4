"""The git information of threads, as clients change it. Words are those of `codex app-server` 0.171.

Tests `rollout/thread_git.py` and `rollout/codex_database.py`.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from codex_py.errors import SessionError
from codex_py.rollout.records import read_meta
from codex_py.rollout.thread_git import change_git, git_of
from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.support.app_server import AppServer, Message
from tests.support.codex import ask_app_server, codex_resumes, needs_codex
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

ID = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def database(home: Path) -> Path:
    """A database as Codex has it, as far as it matters here."""
    path = home / "state_5.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE threads (id TEXT, git_sha TEXT, git_branch TEXT, git_origin_url TEXT)"
        )
        connection.execute("INSERT INTO threads (id) VALUES (?)", (ID,))
    return path


def native_file(home: Path) -> Path:
    """A file as Codex writes it, with numbered lines."""
    path = home / "sessions/2026/01/02" / f"rollout-2026-01-02T03-04-05-{ID}.jsonl"
    path.parent.mkdir(parents=True)
    payload = {"id": ID, "cwd": "/", "git": {"branch": "old"}}
    line = {
        "timestamp": "2026-01-02T03:04:05.000Z",
        "ordinal": 0,
        "type": "session_meta",
        "payload": payload,
    }
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return path


def test_git_information_is_changed_and_kept(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}

            def update(**git: Any) -> Message:
                asked = {**thread, "gitInfo": git}
                answer = server.ask("thread/metadata/update", asked)["thread"]
                assert answer["id"] == thread["threadId"]
                return answer["gitInfo"]

            server.turn(thread["threadId"])
            server.ended(thread["threadId"])
            url = "https://me:secret@example.org/x"
            # Who may fetch is nobody's business.
            assert update(sha="12", branch=" topic ", originUrl=url) == {
                "sha": "12",
                "branch": "topic",
                "originUrl": "https://example.org/x",
            }
            changed = update(branch=None, sha="34")
            assert (changed["branch"], changed["sha"]) == (None, "34")
            server.turn(thread["threadId"], "more")
            server.ended(thread["threadId"])
        with AppServer(place.home, place.cwd) as server:
            # A thread that this process has not opened.
            changed = update(branch="main")
            expected = {
                "sha": "34",
                "branch": "main",
                "originUrl": "https://example.org/x",
            }
            assert changed == expected
            (listed,) = server.ask("thread/list", {})["data"]
            assert listed["gitInfo"] == expected
            server.ask("thread/archive", thread)
            assert update(originUrl=None)["originUrl"] is None
    (path,) = place.home.glob("archived_sessions/rollout-*")
    assert "secret" not in path.read_text("utf-8")


def test_what_was_set_before_the_first_turn_is_kept(place: Workplace) -> None:
    other = place.cwd / "other"
    other.mkdir()
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            git = {"gitInfo": {"branch": "topic"}}
            server.ask("thread/metadata/update", {**thread, **git})
            goal = {"objective": "make it", "status": "paused"}
            server.ask("thread/goal/set", {**thread, **goal})
            # The session is opened anew in the other folder.
            server.turn(thread["threadId"], cwd=str(other))
            server.ended(thread["threadId"])
            read = server.ask("thread/read", thread)["thread"]
            assert read["gitInfo"]["branch"] == "topic"
            kept = server.ask("thread/goal/get", thread)["goal"]
            assert (kept["objective"], kept["status"]) == ("make it", "paused")


def test_a_running_turn_goes_on(place: Workplace) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("hm", pieces=2)[:3], pause]
    running += [*ev_message("hm", pieces=2)[3:], ev_completed()]
    with ScriptedServer([running]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            server.turn(thread["threadId"])
            server.told("item/agentMessage/delta")
            asked = {**thread, "gitInfo": {"branch": "topic"}}
            answer = server.ask("thread/metadata/update", asked)["thread"]
            assert answer["gitInfo"]["branch"] == "topic"
            assert answer["status"]["type"] == "active"
            pause.until.set()
            assert server.ended(thread["threadId"])["status"] == "completed"


def test_mistakes_are_told(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        thread = {"threadId": server.thread()}
        rows: list[tuple[Message, str]] = [
            ({}, "thread metadata update must include at least one field"),
            ({"gitInfo": {}}, "gitInfo must include at least one field"),
            ({"gitInfo": {"sha": ""}}, "gitInfo.sha must not be empty"),
            ({"gitInfo": {"branch": "  "}}, "gitInfo.branch must not be empty"),
            ({"gitInfo": {"other": "x"}}, "gitInfo.other is unknown"),
            ({"gitInfo": {"branch": "x" * 5000}}, "more than 4096 characters"),
        ]
        for params, text in rows:
            error = server.refused("thread/metadata/update", {**thread, **params})
            assert (error["code"], text in error["message"]) == (-32600, True)
        ephemeral = server.thread(ephemeral=True)
        git = {"gitInfo": {"branch": "x"}}
        error = server.refused("thread/metadata/update", {"threadId": ephemeral, **git})
        assert error["message"] == (
            f"ephemeral thread does not support metadata updates: {ephemeral}"
        )
        unknown = str(uuid4())
        error = server.refused("thread/metadata/update", {"threadId": unknown, **git})
        assert error["message"] == f"no rollout found for thread id {unknown}"


def test_a_thread_of_codex_is_changed_in_its_database(tmp_path: Path) -> None:
    path = native_file(tmp_path)
    before = path.read_bytes()
    meta = read_meta(path)
    assert git_of(path, meta) == {"branch": "old"}
    with pytest.raises(SessionError, match="whose database does not have it"):
        change_git(path, {"branch": "new"}, is_ours=False)
    database(tmp_path)
    change_git(path, {"branch": "new", "commit_hash": "12"}, is_ours=False)
    assert git_of(path, meta) == {"branch": "new", "commit_hash": "12"}
    change_git(path, {"branch": None}, is_ours=False)
    assert git_of(path, meta) == {"commit_hash": "12"}
    assert path.read_bytes() == before


def test_a_line_that_was_cut_off_stays_apart(tmp_path: Path) -> None:
    path = native_file(tmp_path)
    line = {"type": "session_meta", "payload": {"id": ID, "cwd": "/"}}
    path.write_text(json.dumps(line) + '\n{"type": "even', encoding="utf-8")
    change_git(path, {"branch": "new"}, is_ours=False)
    change_git(path, {"commit_hash": "1"}, is_ours=False)
    meta = read_meta(path)
    assert git_of(path, meta) == {"branch": "new", "commit_hash": "1"}
    assert git_of(path, meta, max_bytes=10) == {}
    path.write_bytes(
        path.read_bytes() + b'{"type":"session_meta","payload":{"id":1}}\n'
    )
    assert git_of(path, meta)["branch"] == "new"


def test_a_database_of_another_shape_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state_9.sqlite").write_bytes(b"no database")
    path = native_file(tmp_path)
    assert git_of(path, read_meta(path)) == {"branch": "old"}
    assert (tmp_path / "state_9.sqlite").read_bytes() == b"no database"


@needs_codex
def test_codex_reads_what_was_changed_and_changes_it(place: Workplace) -> None:
    variables = environment(place.home)
    with ScriptedServer([says("a"), says("b")], check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = {"threadId": server.thread()}
            server.turn(thread["threadId"])
            server.ended(thread["threadId"])
            git = {"gitInfo": {"branch": "ours", "sha": "12"}}
            server.ask("thread/metadata/update", {**thread, **git})
        (read,) = ask_app_server(variables, place.cwd, ("thread/read", thread))
        assert read["thread"]["gitInfo"]["branch"] == "ours"
        git = {"gitInfo": {"branch": "theirs"}}
        update = ("thread/metadata/update", {**thread, **git})
        ask_app_server(variables, place.cwd, update)
        with AppServer(place.home, place.cwd) as server:
            read = server.ask("thread/read", thread)["thread"]
            assert (read["gitInfo"]["branch"], read["gitInfo"]["sha"]) == (
                "theirs",
                "12",
            )
            git = {"gitInfo": {"branch": "again"}}
            server.ask("thread/metadata/update", {**thread, **git})
        (read,) = ask_app_server(variables, place.cwd, ("thread/read", thread))
        assert read["thread"]["gitInfo"]["branch"] == "again"
        codex_resumes(place, thread["threadId"], "go on")
