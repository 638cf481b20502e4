"""Tests `commands/sessions/sessions_command.py`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.messages import encode_json
from codex_py.rollout.index import rename_thread
from tests.rollout.builders import assistant, meta, record, session_file, user
from tests.support.program import environment, run_codex_py

USAGE = {"input_tokens": 200, "cached_input_tokens": 50, "output_tokens": 40}
DIFF = "diff --git a/x y.txt b/x y.txt\n--- a/x y.txt\n+++ b/x y.txt\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def write(
    home: Path,
    *said: bytes,
    used_at: int = 0,
    more: tuple[str, ...] = (),
    **fields: Any,
) -> str:
    values: dict[str, Any] = {
        "cwd": str(home.parent),
        "git": {"branch": "main"},
        **fields,
    }
    session = meta(**values)
    context: dict[str, Any] = {
        "model": "gpt-5.5",
        "sandbox_policy": {"type": "read-only"},
    }
    lines = [record("session_meta", session.payload()), record("turn_context", context)]
    lines += [record("response_item", json.loads(item)) for item in said]
    path = session_file(home, [*lines, *more], session.id)
    os.utime(path, (used_at, used_at))
    return session.id


def run(home: Path, *args: str) -> tuple[int, str, str]:
    done = run_codex_py(["sessions", *args], home, home.parent)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def listed(home: Path, *args: str) -> list[dict[str, Any]]:
    return json.loads(run(home, "list", "--json", *args)[1])


def test_the_sessions_of_the_folder_are_listed_newest_first(home: Path) -> None:
    old = write(home, user("old\x1b[31m"), used_at=1)
    new = write(home, user("new"), used_at=2)
    elsewhere = write(home, user("elsewhere"), cwd="/elsewhere", used_at=3)
    write(home, user("of a subagent"), source={"subagent": {}}, used_at=4)
    rename_thread(home, new, "mine")
    code, out, _ = run(home, "list")
    first, second = out.splitlines()
    assert code == 0
    assert first.endswith(f"ago  {new}  [mine] new")
    assert second.endswith(f"ago  {old}  old\u241b[31m")
    assert [each["id"] for each in listed(home, "--all")] == [elsewhere, new, old]
    assert [each["id"] for each in listed(home, "--limit", "1")] == [new]
    assert run_codex_py(["archive", old], home, home.parent).returncode == 0
    assert [each["id"] for each in listed(home, "--archived")] == [old]
    (entry,) = listed(home)
    path = entry.pop("path")
    assert Path(path).is_file()
    assert entry == {
        "id": new,
        "name": "mine",
        "prompt": "new",
        "cwd": str(home.parent),
        "branch": "main",
        "model": "gpt-5.5",
        "forked_from": None,
        "updated": "1970-01-01T00:00:02+00:00",
    }


def test_a_session_is_shown_with_all_that_is_known(home: Path) -> None:
    tokens = {"total_token_usage": USAGE, "last_token_usage": USAGE}
    thread = write(
        home,
        *(user("first"), assistant("one"), user("taken back"), assistant("two")),
        more=(
            record("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
            "damaged",
            record("event_msg", {"type": "patch_applied", "diff": DIFF}),
            record("event_msg", {"type": "token_count", "info": tokens}),
        ),
    )
    data = json.loads(run(home, "show", thread, "--json")[1])
    assert (data["turns"], data["prompts"], data["files"]) == (
        1,
        ["first"],
        ["x y.txt"],
    )
    assert (data["model"], data["sandbox_mode"]) == ("gpt-5.5", "read-only")
    assert data["usage"] | USAGE == data["usage"]
    assert data["damaged_lines"] == 1
    code, out, _ = run(home, "show", thread)
    assert code == 0
    assert "tokens:" in out
    assert "200 input, 50 cached_input, 40 output\n" in out
    assert "  1. first\n     one\n" in out
    assert "taken back" not in out
    assert out.endswith("     Edited x y.txt\n")
    assert (
        run(home, "show", "--last", "--json")[1]
        == run(home, "show", thread, "--json")[1]
    )
    message = "Error: No active or archived session found matching 'nothing'."
    hint = "`codex-py sessions list --all` shows them."
    assert run(home, "show", "nothing") == (1, "", f"{message} {hint}\n")
    assert run(home, "show")[0] == run(home, "show", thread, "--last")[0] == 2


def test_a_fork_is_marked_in_lists_and_a_continuation_is_not(home: Path) -> None:
    first = write(home, user("word"), used_at=1)
    fork = write(home, user("word"), forked_from_id=first, used_at=2)
    write(home, user("word"), forked_from_id=first, continues_id=first, used_at=3)
    mark = f"word (fork of {first[:13]}…)"
    for command in (["list"], ["search", "word"]):
        titles = [
            line for line in run(home, *command)[1].splitlines() if line.endswith(mark)
        ]
        assert len(titles) == 1
        assert fork in titles[0]
    assert [each["forked_from"] for each in listed(home)] == [None, first, None]


def test_a_conversation_is_shown_in_short_and_steers_no_terminal(home: Path) -> None:
    call = {"cmd": "printf '\x1b[2J'\nfalse"}
    called = {"type": "function_call", "name": "exec_command", "call_id": "c"}
    ended = {"type": "function_call_output", "call_id": "c"}
    items = [
        {**called, "arguments": json.dumps(call)},
        {**ended, "output": "Exit code: 3\nOutput:\nsecret"},
    ]
    answer = "\n".join(["\x9b2Jdone", *map(str, range(20))])
    thread = write(
        home,
        user("first"),
        *(encode_json(item) for item in items),
        assistant(answer),
        user("second"),
    )
    out = run(home, "show", thread)[1]
    assert out[out.index("  1. ") :].splitlines() == [
        "  1. first",
        "     $ printf '␛[2J'",
        "     false (exit 3)",
        "     \\x9b2Jdone",
        *(f"     {number}" for number in range(5)),
        "     [… 15 more lines]",
        "  2. second",
    ]


def test_a_search_finds_what_was_said_with_all_the_words(home: Path) -> None:
    answer = f"Nothing here.\n{'so ' * 40}the RACE is an “own” kind of bug\x1b[2J\nmore"
    older = write(home, user("one"), assistant(answer), used_at=1)
    newer = write(home, user("a race condition"), *[assistant("a race")] * 5, used_at=2)
    code, out, _ = run(home, "search", "race")
    assert code == 0
    lines = out.splitlines()
    assert [line[:36] for line in lines if line[0] != " "] == [newer, older]
    assert lines[1:4] == ["    user: a race condition", *["    assistant: a race"] * 2]
    assert lines[5].startswith("    assistant: …o so ")
    assert lines[5].endswith("the RACE is an “own” kind of bug\u241b[2J")
    found = [
        json.loads(each)
        for each in run(home, "search", "--json", "“own” RACE")[1].split("\n")
        if each
    ]
    assert [each["id"] for each in found] == [older]
    assert run(home, "search", "no", "such", "words") == (0, "", "")
    # A control of one byte in 8 bits would steer a terminal.
    write(home, user("steers\x9b2J"), used_at=3)
    for command in (["search", "steers"], ["list"]):
        for form in ([], ["--json"]):
            assert "\x9b" not in run(home, *command, *form)[1]
    assert run(home, "search", "--limit", "1", "race")[1].count(newer) == 1
    assert run(home, "search")[0] == 2


@contextmanager
def searching(home: Path) -> Generator["subprocess.Popen[bytes]"]:
    """A search that finds more than a pipe holds."""
    for number in range(150):
        write(home, user(f"word {number} {'x' * 5000}"))
    with subprocess.Popen(
        [sys.executable, "-m", "codex_py", "sessions", "search", "--json", "word"],
        cwd=home.parent,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert b"word" in program.stdout.readline()
        yield program


def test_a_reader_that_leaves_ends_a_search_quietly(home: Path) -> None:
    with searching(home) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(120) == 141


def test_an_interrupted_search_ends_quietly(home: Path) -> None:
    with searching(home) as program:
        program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=120)[1] == b""
        assert program.returncode == 130
