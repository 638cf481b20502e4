import json
import os
from pathlib import Path

import pytest

from codex_py.errors import SessionError
from codex_py.protocol.ids import new_thread_id
from codex_py.rollout.index import (
    files_of_thread,
    find_session,
    forget_name,
    latest_session,
    metas_with,
    recent_sessions,
    rename_thread,
    thread_names,
    why_none,
)
from codex_py.rollout.records import ARCHIVED_SESSIONS, read_meta
from tests.rollout.builders import meta, record, session_file


def _session(
    home: Path,
    *,
    stamp: str = "2026-11-20T10-00-00",
    used_at: int = 0,
    **fields: object,
) -> Path:
    session = meta(**fields)  # pyright: ignore[reportArgumentType]: fields of any type pass through
    first = record("session_meta", session.payload())
    path = session_file(home, [first], session.id, stamp=stamp)
    os.utime(path, (used_at, used_at))
    return path


def _named(home: Path, *names: tuple[str, str]) -> None:
    lines = [
        json.dumps({"id": id_, "thread_name": name, "updated_at": "x"})
        for id_, name in names
    ]
    damaged = ["[" * 100_000, "{cut"]
    (home / "session_index.jsonl").write_text(
        "\n".join([*lines, *damaged]), encoding="utf-8"
    )


def test_a_session_is_found_by_its_id_in_either_case(tmp_path: Path) -> None:
    thread_id = new_thread_id()
    _session(tmp_path, stamp="2026-11-20T11-00-00")
    path = _session(tmp_path, id=thread_id)
    _session(tmp_path, stamp="2025-01-20T10-00-00")
    assert find_session(tmp_path, thread_id) == path
    assert find_session(tmp_path, thread_id.upper()) == path
    assert find_session(tmp_path, new_thread_id()) is None


def test_an_archived_session_is_found(tmp_path: Path) -> None:
    thread_id = new_thread_id()
    path = _session(tmp_path, id=thread_id)
    archived = tmp_path / ARCHIVED_SESSIONS / path.name
    archived.parent.mkdir()
    path.rename(archived)
    assert find_session(tmp_path, thread_id) == archived
    assert latest_session(tmp_path, cwd=None) is None


def test_of_the_files_of_a_thread_that_was_taken_back_the_newest_holds(
    tmp_path: Path,
) -> None:
    thread_id = new_thread_id()
    _session(tmp_path, id=thread_id)
    first = record("session_meta", meta(id=thread_id).payload())
    name = f"{thread_id}_{new_thread_id()}"
    second = session_file(tmp_path, [first], name, stamp="2026-11-21T09-00-00")
    assert find_session(tmp_path, thread_id) == second


def test_nothing_is_found_in_a_new_home(tmp_path: Path) -> None:
    assert find_session(tmp_path, new_thread_id()) is None
    assert find_session(tmp_path, "name") is None
    assert latest_session(tmp_path, cwd=tmp_path) is None


def test_a_session_is_found_by_the_name_that_it_has_now(tmp_path: Path) -> None:
    one, two = new_thread_id(), new_thread_id()
    first, second = _session(tmp_path, id=one), _session(tmp_path, id=two)
    _named(tmp_path, (one, "work"), (two, "play"), (two, "work"), (one, "old work"))
    assert find_session(tmp_path, "work") == second
    assert find_session(tmp_path, "old work") == first
    assert find_session(tmp_path, "play") is None
    _named(tmp_path, (two, "work"), (one, "work"))
    assert find_session(tmp_path, "work") == first


@pytest.mark.parametrize("name", ["*", "../../x", "[", ""])
def test_a_name_is_no_pattern(tmp_path: Path, name: str) -> None:
    _session(tmp_path)
    assert find_session(tmp_path, name) is None


def test_the_latest_session_is_the_one_used_last(tmp_path: Path) -> None:
    _session(tmp_path, stamp="2026-11-21T10-00-00", used_at=1000)
    resumed = _session(tmp_path, stamp="2026-11-20T10-00-00", used_at=2000)
    assert latest_session(tmp_path, cwd=Path("/repo")) == resumed


def test_of_sessions_used_at_once_the_younger_is_the_latest(tmp_path: Path) -> None:
    younger = _session(tmp_path, stamp="2026-11-21T10-00-00", used_at=1000)
    _session(tmp_path, stamp="2026-11-20T10-00-00", used_at=1000)
    assert latest_session(tmp_path, cwd=Path("/repo")) == younger


def test_the_latest_session_is_of_this_directory(tmp_path: Path) -> None:
    here = _session(tmp_path, used_at=1)
    elsewhere = _session(tmp_path, used_at=2, cwd="/elsewhere")
    _session(tmp_path, used_at=5, source={"subagent": "review"})
    broken = _session(tmp_path, used_at=6)
    broken.write_text("not a session\n", encoding="utf-8")
    assert latest_session(tmp_path, cwd=Path("/repo")) == here
    assert latest_session(tmp_path, cwd=None) == elsewhere


def test_a_directory_is_the_same_under_another_path(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    path = _session(tmp_path, cwd=str(tmp_path / "link"))
    assert latest_session(tmp_path, cwd=tmp_path / "repo") == path


@pytest.mark.parametrize(
    "link",
    [
        ("sessions/2026/loop", "."),
        ("sessions/2026/loop", ".."),
        ("sessions/2026/loop", "../.."),
        ("sessions/2026/loop", "loop"),
        ("sessions/2026/loop", "nowhere"),
        (
            "sessions/rollout-2026-01-01T00-00-00-{id}.jsonl",
            "rollout-2026-01-01T00-00-00-{id}.jsonl",
        ),
        ("sessions/again", "2026"),
        ("sessions/out", "../outside"),
    ],
)
def test_a_link_that_leads_round_in_a_circle_ends_no_search(
    tmp_path: Path, link: tuple[str, str]
) -> None:
    path = _session(tmp_path)
    identifier = path.stem[-36:]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to("../sessions")
    (tmp_path / "outside/self").symlink_to(".")
    place, target = (part.format(id=new_thread_id()) for part in link)
    (tmp_path / place).symlink_to(target)
    assert [*files_of_thread(tmp_path, identifier)] == [path]
    assert [found for found, _, _ in recent_sessions(tmp_path, cwd=None)] == [path]
    assert [found.id for found in metas_with(tmp_path, b"session_meta")] == [identifier]


def test_sessions_in_a_linked_folder_are_found_once(tmp_path: Path) -> None:
    path = _session(tmp_path)
    identifier = path.stem[-36:]
    path.parent.rename(tmp_path / "disk")
    path.parent.symlink_to(tmp_path / "disk")
    assert [*files_of_thread(tmp_path, identifier)] == [path]


def test_a_folder_with_a_name_that_no_folder_can_have_does_not_exist(
    tmp_path: Path,
) -> None:
    _session(tmp_path, cwd=f"/{'x' * 300}")
    assert "does not exist any more" in why_none(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_names_are_read_from_a_regular_file_alone(tmp_path: Path, kind: str) -> None:
    session = _session(tmp_path)
    thread_id = read_meta(session).id
    names = tmp_path / "session_index.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(names)
        case "folder":
            names.mkdir()
        case _:
            names.symlink_to("/dev/zero")
    assert thread_names(tmp_path) == {}
    assert find_session(tmp_path, thread_id) == session
    with pytest.raises(SessionError, match="cannot be written"):
        rename_thread(tmp_path, thread_id, "name")
    with pytest.raises(OSError, match="it is a "):
        forget_name(tmp_path, thread_id)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_session_file_that_is_not_regular_cannot_be_read(
    tmp_path: Path, kind: str
) -> None:
    session = _session(tmp_path)
    session.unlink()
    match kind:
        case "pipe":
            os.mkfifo(session)
        case "folder":
            session.mkdir()
        case _:
            session.symlink_to("/dev/zero")
    with pytest.raises(SessionError, match="cannot be read: it is a "):
        read_meta(session)
