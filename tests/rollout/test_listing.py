import json
import os
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codex_py.instructions import instruction_text
from codex_py.protocol.ids import new_thread_id
from codex_py.rollout.index import rename_thread
from codex_py.rollout.listing import (
    PreviewMessage,
    list_sessions,
    preview_messages,
    title_of,
)
from tests.rollout.builders import (
    assistant,
    developer,
    meta,
    record,
    session_file,
    user,
)

ENVIRONMENT = user("<environment_context>\n</environment_context>")


def _session(
    home: Path, prompt: str, *more: bytes, used_at: int = 0, **fields: object
) -> Path:
    session = meta(**fields)  # pyright: ignore[reportArgumentType]: fields of any type pass through
    items = [developer("permissions"), ENVIRONMENT, user(prompt), *more]
    lines = [record("response_item", json.loads(item)) for item in items]
    path = session_file(
        home, [record("session_meta", session.payload()), *lines], session.id
    )
    os.utime(path, (used_at, used_at))
    return path


def _previews(home: Path, **filters: object) -> list[str]:
    return [s.preview for s in list_sessions(home, **filters)]  # pyright: ignore[reportArgumentType]


def test_a_session_is_shown_with_what_tells_it_from_others(tmp_path: Path) -> None:
    id_ = new_thread_id()
    path = _session(
        tmp_path,
        "Mend\n the  tests",
        id=id_,
        git={"branch": "main"},
        used_at=1_800_000_000,
    )
    rename_thread(tmp_path, id_, "tests")
    (session,) = list_sessions(tmp_path)
    assert (session.id, session.path, session.name) == (id_, path, "tests")
    assert session.preview == "Mend the tests"
    assert _previews(tmp_path, search="mend main tests /repo") == ["Mend the tests"]
    assert session.updated == datetime.fromtimestamp(1_800_000_000, UTC)


def test_the_newest_sessions_come_first(tmp_path: Path) -> None:
    for n in range(7):
        # Two of each age.
        _session(tmp_path, f"p{n}", used_at=n // 2)
    shown = _previews(tmp_path)
    assert sorted(shown) == [f"p{n}" for n in range(7)]
    assert [int(preview[1:]) // 2 for preview in shown] == [3, 2, 2, 1, 1, 0, 0]
    assert _previews(tmp_path, limit=3) == shown[:3]


def test_the_latest_to_begin_may_come_first(tmp_path: Path) -> None:
    for n in range(3):
        _session(
            tmp_path,
            f"p{n}",
            used_at=9 - n,
            timestamp=f"2026-01-0{n + 1}T10:00:00.000Z",
        )
    assert _previews(tmp_path) == ["p0", "p1", "p2"]
    assert _previews(tmp_path, by_start=True) == ["p2", "p1", "p0"]
    assert list_sessions(tmp_path, by_start=True)[0].created == datetime(
        2026, 1, 3, 10, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Mend\n the  tests", "Mend the tests"),
        (
            "@src/a.py [Image #1] $review look  at this, it costs $5",
            "look at this, it costs $5",
        ),
        ('<context ref="x.py">\n<b>def f(): ...</b>\n</context>\n\nWhy?', "Why?"),
        ("```\na log\n```\nWhat is this?", "What is this?"),
        ("@README.md", "@README.md"),
        (instruction_text("commands/init.md"), "/init"),
        ("me@home asks", "me@home asks"),
    ],
)
def test_a_title_has_the_first_words_that_were_meant(prompt: str, title: str) -> None:
    assert title_of(prompt) == title


def test_sessions_are_chosen_by_place_and_words(tmp_path: Path) -> None:
    _session(tmp_path, "Fix the PARSER", used_at=3)
    _session(tmp_path, "fix the docs", cwd="/elsewhere", used_at=2)
    _session(tmp_path, "parse", provider="other", used_at=1)
    assert _previews(tmp_path, cwd=Path("/repo")) == ["Fix the PARSER", "parse"]
    assert _previews(tmp_path, search="parser Fix") == ["Fix the PARSER"]
    assert _previews(tmp_path, search="elsewhere") == ["fix the docs"]
    assert _previews(tmp_path, search="no such word") == []


def test_a_session_is_found_by_the_beginning_of_its_id_alone(tmp_path: Path) -> None:
    id_ = new_thread_id()
    _session(tmp_path, "Fix the parser", id=id_)
    assert _previews(tmp_path, search=f"{id_[:13]} fix") == ["Fix the parser"]
    # Some number is in every id.
    assert _previews(tmp_path, search=f"fix {id_[-3:]}") == []


def test_sessions_that_no_one_would_resume_are_not_listed(tmp_path: Path) -> None:
    _session(tmp_path, "a child's", source={"subagent": "review"})
    session_file(tmp_path, ["not a session"], new_thread_id())
    empty = meta()
    session_file(tmp_path, [record("session_meta", empty.payload())], empty.id)
    (session,) = list_sessions(tmp_path)
    assert (session.id, session.preview) == (empty.id, "")
    assert list_sessions(tmp_path / "none") == []


def test_a_session_of_a_folder_that_cannot_be_does_not_hide_the_others(
    tmp_path: Path,
) -> None:
    _session(tmp_path, "hostile", cwd="/x\0y")
    _session(tmp_path, "mine", cwd=str(tmp_path))
    assert _previews(tmp_path, cwd=tmp_path) == ["mine"]


def test_a_thread_of_several_files_is_listed_once(tmp_path: Path) -> None:
    id_ = new_thread_id()
    _session(tmp_path, "old", id=id_)
    first = record("session_meta", meta(id=id_).payload())
    newer = session_file(
        tmp_path, [first], f"{id_}_{new_thread_id()}", stamp="2026-11-21T09-00-00"
    )
    assert [session.path for session in list_sessions(tmp_path)] == [newer]


def test_the_last_things_said_are_read_from_the_end(tmp_path: Path) -> None:
    note = user("<turn_aborted>\n</turn_aborted>")
    path = _session(
        tmp_path, "one", assistant("1\nline"), note, user("two"), assistant("2")
    )
    said = [
        PreviewMessage("user", "one"),
        PreviewMessage("assistant", "1\nline"),
        PreviewMessage("user", "two"),
        PreviewMessage("assistant", "2"),
    ]
    assert preview_messages(path) == said
    assert preview_messages(path, limit=2) == said[2:]
    assert preview_messages(tmp_path / "none") == []


def test_a_long_output_does_not_hide_what_was_said_before_it(tmp_path: Path) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "x" * 3_000_000}
    path = _session(tmp_path, "one", json.dumps(output).encode(), assistant("done"))
    assert preview_messages(path, limit=2) == [
        PreviewMessage("user", "one"),
        PreviewMessage("assistant", "done"),
    ]


def test_a_file_of_one_endless_line_is_listed_without_reading_it(
    tmp_path: Path,
) -> None:
    session = meta()
    path = session_file(
        tmp_path, [record("session_meta", session.payload())], session.id
    )
    with path.open("ab") as file:
        file.truncate(file.tell() + 500_000_000)
    tracemalloc.start()
    try:
        (listed,) = list_sessions(tmp_path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (listed.id, listed.preview) == (session.id, "")
    assert peak_bytes < 100_000_000
