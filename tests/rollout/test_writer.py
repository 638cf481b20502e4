import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import SessionError
from codex_py.protocol import events
from codex_py.protocol.stream import Usage
from codex_py.rollout.reader import read_session
from codex_py.rollout.records import token_count
from codex_py.rollout.writer import RolloutEvents, RolloutWriter
from tests.rollout.builders import (
    TIMESTAMP,
    assistant,
    call,
    meta,
    numbered,
    output,
    session_file,
    user,
)


def _fail(warning: str) -> None:
    pytest.fail(f"unexpected warning: {warning}")


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_session_is_written_in_the_classic_format(tmp_path: Path) -> None:
    session = meta(base_instructions="be good", git={"branch": "main"})
    total = Usage(input_tokens=100, cached_input_tokens=50, output_tokens=20)
    with closing(RolloutWriter.create(tmp_path, session, warn=_fail)) as writer:
        writer.response_item(user("hi"))
        writer.event_msg({"type": "user_message", "message": "hi", "images": []})
        writer.turn_context({"cwd": "/repo", "model": "gpt-5.5"})
        writer.event_msg(token_count(total, total, 258_400))
        writer.compacted("a summary", [user("hi"), user("a summary")])
    lines = _lines(writer.path)
    assert all(list(line) == ["timestamp", "type", "payload"] for line in lines)
    counts = {
        "input_tokens": 100,
        "cached_input_tokens": 50,
        "cache_write_input_tokens": 0,
        "output_tokens": 20,
        "reasoning_output_tokens": 0,
        "total_tokens": 120,
    }
    assert [(line["type"], line["payload"]) for line in lines] == [
        (
            "session_meta",
            {
                "id": session.id,
                "timestamp": TIMESTAMP,
                "cwd": "/repo",
                "originator": "codex_exec",
                "cli_version": "0.1.0",
                "instructions": None,
                "source": "exec",
                "model_provider": "mock",
                "git": {"branch": "main"},
                "base_instructions": {"text": "be good"},
            },
        ),
        ("response_item", json.loads(user("hi"))),
        ("event_msg", {"type": "user_message", "message": "hi", "images": []}),
        ("turn_context", {"cwd": "/repo", "model": "gpt-5.5"}),
        (
            "event_msg",
            {
                "type": "token_count",
                "info": {
                    "total_token_usage": counts,
                    "last_token_usage": counts,
                    "model_context_window": 258_400,
                },
                "rate_limits": None,
            },
        ),
        (
            "compacted",
            {
                "message": "a summary",
                "replacement_history": [
                    json.loads(user("hi")),
                    json.loads(user("a summary")),
                ],
            },
        ),
    ]


def test_the_file_is_named_for_its_local_time_and_thread_and_private(
    tmp_path: Path,
) -> None:
    session = meta()
    script = (
        "import sys, time; from pathlib import Path; time.tzset()\n"
        "from codex_py.rollout.records import session_path\n"
        "from tests.rollout.builders import meta\n"
        "print(session_path(Path('/home'), meta(id=sys.argv[1])))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script, session.id],
        env={**os.environ, "TZ": "XXX-9"},
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    ).stdout.strip()
    name = f"rollout-2026-11-21T02-52-59-{session.id}.jsonl"
    assert printed == f"/home/sessions/2026/11/21/{name}"

    with closing(
        RolloutWriter.create(tmp_path / "home", session, warn=_fail)
    ) as writer:
        folders = [
            f for f in writer.path.parents if f.is_relative_to(tmp_path / "home")
        ]
    assert {oct(folder.stat().st_mode & 0o777) for folder in folders} == {"0o700"}
    assert oct(writer.path.stat().st_mode & 0o777) == "0o600"


def test_an_item_is_written_byte_for_byte(tmp_path: Path) -> None:
    odd = b'{"type":"message", "role":"user","content":"\xc3\xa9 \\u00e9"}'
    with closing(RolloutWriter.create(tmp_path, meta(), warn=_fail)) as writer:
        writer.response_item(odd)  # pyright: ignore[reportArgumentType]: bytes that we did not encode
    assert odd in writer.path.read_bytes()
    assert read_session(writer.path).items == [odd]


def test_items_that_are_equal_are_not_taken_for_damage(tmp_path: Path) -> None:
    items = [user("go on")] * 3
    writer = RolloutWriter.create(tmp_path, meta(), items, warn=_fail)
    with closing(writer):
        for item in items:
            writer.response_item(item)
    assert read_session(writer.path).items == items * 2


def test_equal_items_differ_in_a_program_whose_clock_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(later_ms: int = 0) -> str:
        return f"2026-11-20T17:52:59.{later_ms:03}Z"

    monkeypatch.setattr("codex_py.rollout.records.utc_timestamp", stopped)
    with closing(RolloutWriter.create(tmp_path, meta(), warn=_fail)) as writer:
        for _ in range(5):
            writer.response_item(user("go on"))
    assert read_session(writer.path).items == [user("go on")] * 5


def test_a_resumed_session_goes_on_in_the_same_file(tmp_path: Path) -> None:
    with closing(RolloutWriter.create(tmp_path, meta(), warn=_fail)) as writer:
        writer.response_item(user("first"))
    with closing(RolloutWriter.resume(writer.path, warn=_fail)) as resumed:
        resumed.response_item(assistant("second"))
    assert resumed.path == writer.path
    assert read_session(writer.path).items == [user("first"), assistant("second")]


@pytest.mark.parametrize("kept", [0, 1, 60, -1])
def test_a_cut_last_line_costs_nothing_else_when_resumed(
    tmp_path: Path, kept: int
) -> None:
    """`kept` bytes of the last line, which was whole but for its newline where it is -1."""
    with closing(RolloutWriter.create(tmp_path, meta(), warn=_fail)) as writer:
        writer.response_item(user("first"))
        before = writer.path.stat().st_size
        writer.response_item(user("second"))
    size = writer.path.stat().st_size
    os.truncate(writer.path, before + kept if kept >= 0 else size - 1)
    with closing(RolloutWriter.resume(writer.path, warn=_fail)) as resumed:
        resumed.response_item(user("third"))
    stored = read_session(writer.path)
    whole = kept < 0
    expected = [user("first"), *([user("second")] if whole else []), user("third")]
    assert (stored.items, stored.damaged_lines) == (expected, int(kept > 0))


def test_two_processes_do_not_write_to_one_session(tmp_path: Path) -> None:
    session = meta()
    with closing(RolloutWriter.create(tmp_path, session, warn=_fail)) as writer:
        with pytest.raises(SessionError) as caught:
            RolloutWriter.resume(writer.path, warn=_fail)
        assert (
            str(caught.value)
            == f"session {session.id} is in use by another process; wait until that one has ended, or fork the session"
        )
    RolloutWriter.resume(writer.path, warn=_fail).close()
    assert [path.name for path in (tmp_path / "thread-writer-locks").iterdir()] == [
        ".coordination.lock"
    ]


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    writer = RolloutWriter.create(tmp_path, meta(), warn=_fail)
    writer.close()
    writer.close()


def test_a_file_with_numbered_lines_is_not_appended_to(tmp_path: Path) -> None:
    session = meta()
    path = session_file(
        tmp_path, [numbered(0, "session_meta", session.payload())], session.id
    )
    before = path.read_bytes()
    with pytest.raises(SessionError, match="cannot be appended to"):
        RolloutWriter.resume(path, warn=_fail)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["", "{}\n", "[" * 100_000, "not json\n"])
def test_a_file_that_is_no_session_is_not_appended_to(
    tmp_path: Path, content: str
) -> None:
    path = session_file(tmp_path, [], meta().id)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SessionError, match="does not start with session metadata"):
        RolloutWriter.resume(path, warn=_fail)
    assert path.read_text(encoding="utf-8") == content


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, not a folder", encoding="utf-8")
    with pytest.raises(SessionError) as caught:
        RolloutWriter.create(home, meta(), warn=_fail)
    text = str(caught.value)
    assert text.startswith(f"the session file {home}/sessions/2026/11/")
    assert text.endswith("cannot be written: Not a directory")


def test_a_full_disk_at_the_start_leaves_no_file(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from codex_py.errors import SessionError\n"
        "from codex_py.rollout.writer import RolloutWriter\n"
        "from tests.rollout.builders import meta\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: RolloutWriter.create(Path(sys.argv[1]), meta(), warn=print)\n"
        "except SessionError as error: print(error)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    ).stdout
    assert printed.endswith("cannot be written: File too large\n")
    assert list(tmp_path.rglob("*.jsonl")) == []
    assert list(tmp_path.rglob("*-*.lock")) == []


def test_a_disk_that_fills_up_is_reported_once_and_nothing_is_lost_when_it_has_room_again(
    tmp_path: Path,
) -> None:
    warnings: list[str] = []
    items = [call("a"), output("a", "x" * 500), call("b"), output("b")]
    with closing(
        RolloutWriter.create(tmp_path, meta(), warn=warnings.append)
    ) as writer:
        writer.response_item(user("first"))
        # The first of the lines is cut short, those behind it fail whole.
        room = writer.path.stat().st_size + 10
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited[1]))
        try:
            for item in items[:3]:
                writer.response_item(item)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        assert writer.path.stat().st_size == room
        assert read_session(writer.path).items == [user("first")]
        writer.response_item(items[3])
    stored = read_session(writer.path)
    assert (stored.items, stored.damaged_lines) == ([user("first"), *items], 0)
    reason = os.strerror(errno.EFBIG)
    assert warnings == [
        f"the session file {writer.path} cannot be written: {reason}; "
        "this session may not be resumable"
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", "context_window_exceeded"),
        ("login_over", "unauthorized"),
        ("insufficient_quota", "usage_limit_exceeded"),
        ("disconnected", "other"),
        ("aborted", None),
    ],
)
def test_the_end_of_a_failed_turn_has_its_error(code: str, kind: str | None) -> None:
    """As in session files of Codex 0.171; an interrupted turn has an event of its own."""
    written: list[Mapping[str, Any]] = []
    sink = RolloutEvents(written.append)
    sink(events.TurnStarted("turn"))
    sink(events.TurnFailed(events.ErrorInfo("why", code)))
    ends = [line for line in written if line["type"] == "task_complete"]
    errors = [(line["turn_id"], line["error"]) for line in ends]
    if kind is None:
        assert errors == []
    else:
        assert errors == [("turn", {"message": "why", "codex_error_info": kind})]
