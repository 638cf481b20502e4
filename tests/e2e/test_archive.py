"""`archive`, `unarchive` and `delete`, with the messages and exit codes of Codex 0.171.

Tests `commands/sessions/sessions_command.py` and `rollout/archive.py`.
"""

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_py.rollout.index import rename_thread
from codex_py.rollout.writer import ThreadLock
from codex_py.testing import ev_completed, ev_message
from tests.rollout.builders import meta, record, session_file, user
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def run(place: Workplace, *args: str) -> tuple[int, str, str]:
    done = run_codex_py(args, place.home, place.cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def stored(place: Workplace, **more: Any) -> tuple[str, Path]:
    made = meta(str(place.cwd), **more)
    item = json.loads(user("hello"))
    lines = [record("session_meta", made.payload()), record("response_item", item)]
    return made.id, session_file(place.home, lines, made.id)


def files(place: Workplace) -> list[str]:
    return sorted(
        str(path.relative_to(place.home)) for path in place.home.rglob("rollout-*")
    )


def test_a_session_goes_to_the_archive_and_back(place: Workplace) -> None:
    with ScriptedServer() as server:
        place.configure(server)
    thread, path = stored(place)
    before = files(place)
    assert run(place, "archive", thread.upper()) == (
        0,
        f"Archived session {thread}.\n",
        "",
    )
    assert files(place) == [f"archived_sessions/{path.name}"]
    hint = "`codex-py sessions list --all` shows them."
    refused = f"No active session found matching '{thread}'. {hint}"
    assert run(place, "archive", thread) == (1, "", f"Error: {refused}\n")
    hint = f"session {thread} is archived. Run `codex-py unarchive {thread}` to unarchive it first."
    for command in ("resume", "fork"):
        outcome = place.rerun(command, thread, "go")
        assert (outcome.code, outcome.events, outcome.err) == (
            1,
            [],
            f"Error: {hint}\n",
        )
    assert place.rerun("resume", "--last", "go").code == 2
    assert run(place, "unarchive", thread) == (0, f"Unarchived session {thread}.\n", "")
    assert files(place) == before
    hint = "`codex-py sessions list --all --archived` shows them."
    refused = f"No archived session found matching '{thread}'. {hint}"
    assert run(place, "unarchive", thread) == (1, "", f"Error: {refused}\n")


def test_the_newest_session_of_the_folder_needs_no_name(place: Workplace) -> None:
    older, _ = stored(place)
    newer, path = stored(place)
    os.utime(path, (2**31, 2**31))
    elsewhere, path = stored(Workplace(place.home, place.home))
    os.utime(path, (2**31 + 1, 2**31 + 1))
    assert run(place, "archive", "--last")[1] == f"Archived session {newer}.\n"
    assert run(place, "archive", "--last")[1] == f"Archived session {older}.\n"
    assert run(place, "archive", "--last") == (
        *(1, ""),
        "Error: no session was held in this folder\n",
    )
    assert run(place, "unarchive", "--last")[1] == f"Unarchived session {newer}.\n"
    code, _, err = run(place, "delete", "--last")
    assert (code, "cannot confirm session deletion" in err) == (1, True)
    assert run(place, "archive", elsewhere, "--last")[0] == 2


def test_subagents_go_with_their_session(place: Workplace) -> None:
    root, _ = stored(place)
    child, _ = stored(place, root_id=root, parent_id=root, source={"subagent": {}})
    stored(place, root_id=root, parent_id=child, source={"subagent": {}})
    _, other = stored(place)
    run(place, "archive", root)
    assert len([name for name in files(place) if name.startswith("archived")]) == 3
    run(place, "unarchive", root)
    assert len([name for name in files(place) if name.startswith("sessions")]) == 4
    assert run(place, "delete", "--force", root)[0] == 0
    assert files(place) == [str(other.relative_to(place.home))]


def test_a_name_stands_for_the_session_that_can_be_meant(place: Workplace) -> None:
    older, _ = stored(place)
    newer, _ = stored(place)
    for thread in (older, newer):
        rename_thread(place.home, thread, "mine")
    assert run(place, "archive", "mine")[1] == f"Archived session {newer}.\n"
    assert run(place, "archive", "mine")[1] == f"Archived session {older}.\n"
    assert run(place, "archive", "mine")[0] == 1
    assert run(place, "unarchive", "mine")[1] == f"Unarchived session {newer}.\n"


def test_delete_forgets_the_name_and_nothing_else(place: Workplace) -> None:
    gone, _ = stored(place)
    kept, path = stored(place)
    rename_thread(place.home, gone, "gone")
    rename_thread(place.home, kept, "kept")
    assert run(place, "delete", "--force", gone) == (
        0,
        f"Deleted session {gone}.\n",
        "",
    )
    assert files(place) == [str(path.relative_to(place.home))]
    index = (place.home / "session_index.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["thread_name"] for line in index.splitlines()] == ["kept"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["NAME"], "cannot confirm session deletion without an interactive terminal;"),
        (
            ["--force", "NAME"],
            "--force requires a session UUID; names must be confirmed",
        ),
        (
            ["--force", UNKNOWN],
            f"No active or archived session found matching '{UNKNOWN}'.",
        ),
    ],
)
def test_delete_needs_a_yes_or_an_id(
    place: Workplace, args: list[str], message: str
) -> None:
    thread, _ = stored(place)
    rename_thread(place.home, thread, "NAME")
    code, out, err = run(place, "delete", *args)
    assert (code, out) == (1, "")
    assert err.startswith(f"Error: {message}")
    assert len(files(place)) == 1


@pytest.mark.parametrize("command", [["archive"], ["delete", "--force"]])
def test_a_session_in_use_is_refused(place: Workplace, command: list[str]) -> None:
    root, _ = stored(place)
    child, _ = stored(place, root_id=root, parent_id=root, source={"subagent": {}})
    lock = ThreadLock(place.home, child)
    try:
        code, _, err = run(place, *command, root)
    finally:
        lock.release()
    assert (code, err) == (1, f"Error: session {child} is in use by another process\n")
    assert len(files(place)) == 2


def test_a_session_that_a_fork_of_codex_begins_with_is_not_deleted(
    place: Workplace,
) -> None:
    base, _ = stored(place)
    fork = meta(str(place.cwd))
    payload = {
        **fork.payload(),
        "history_base": {"thread_id": base, "end_ordinal_exclusive": 2},
    }
    session_file(place.home, [record("session_meta", payload, ordinal=0)], fork.id)
    code, _, err = run(place, "delete", "--force", base)
    assert code == 1
    assert f"session {fork.id} begins with a part of it" in err
    assert run(place, "archive", base)[0] == 0


def test_a_home_that_cannot_be_written_costs_one_sentence(place: Workplace) -> None:
    thread, _ = stored(place)
    (place.home / "archived_sessions").touch()
    code, _, err = run(place, "archive", thread)
    assert code == 1
    assert err.startswith(f"Error: the files of session {thread} cannot be changed: ")
    assert err.count("\n") == 1


def test_the_index_of_codex_follows(place: Workplace) -> None:
    thread, path = stored(place)
    with sqlite3.connect(place.home / "state_5.sqlite") as database:
        database.execute(
            "CREATE TABLE threads (id, rollout_path, archived, archived_at)"
        )
        database.execute(
            "INSERT INTO threads VALUES (?, ?, 0, NULL)", (thread, str(path))
        )
    (place.home / "state_6.sqlite").write_text("not a database", encoding="utf-8")

    def rows() -> list[tuple[Any, ...]]:
        return [
            *database.execute(
                "SELECT rollout_path, archived, archived_at > 0 FROM threads"
            )
        ]

    assert run(place, "archive", thread)[0] == 0
    assert rows() == [(str(place.home / "archived_sessions" / path.name), 1, 1)]
    assert run(place, "unarchive", thread)[0] == 0
    assert rows() == [(str(path), 0, None)]
    assert run(place, "delete", "--force", thread)[0] == 0
    assert rows() == []
    database.close()


@needs_codex
def test_codex_agrees_at_every_step(place: Workplace) -> None:
    """Each program undoes what the other one has done to a session that both have continued."""

    def codex(*args: str) -> tuple[int, str]:
        assert CODEX is not None
        done = subprocess.run(
            [CODEX, *args],
            cwd=place.cwd,
            env={**os.environ, **environment(place.home), "RUST_BACKTRACE": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    answers = [[*ev_message(str(number)), ev_completed()] for number in range(9)]
    resume = ("exec", "--skip-git-repo-check", "--json", "resume")
    with ScriptedServer(answers, check_prefix=False) as server:
        thread = place.run(server, "first").events[0]["thread_id"]
        assert codex(*resume, thread, "second")[0] == 0
        assert run(place, "archive", thread)[0] == 0
        code, said = codex(*resume, thread, "no")
        assert (code, "is archived. Run `codex unarchive" in said) == (1, True)
        assert codex("unarchive", thread)[0] == 0
        assert codex(*resume, thread, "third")[0] == 0
        assert codex("archive", thread)[0] == 0
        assert place.rerun("resume", thread, "no").code == 1
        assert run(place, "unarchive", thread)[0] == 0
        assert codex(*resume, thread, "fourth")[0] == 0
        assert place.rerun("resume", thread, "fifth").code == 0
        assert run(place, "delete", "--force", thread)[0] == 0
        code, said = codex(*resume, thread, "no")
        assert (code, "no rollout found" in said) == (1, True), said
    shutil.rmtree(place.home)
