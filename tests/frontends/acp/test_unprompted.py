from pathlib import Path

from codex_py.frontends.acp.unprompted import UnpromptedSessions
from codex_py.protocol.ids import new_thread_id


def test_ids_are_kept_until_they_are_removed(tmp_path: Path) -> None:
    session = new_thread_id()
    UnpromptedSessions(tmp_path).add(session)
    kept = UnpromptedSessions(tmp_path)
    assert session in kept
    assert session.upper() in kept
    kept.remove(session)
    kept.remove(session)
    assert session not in kept


def test_the_oldest_ids_are_forgotten(tmp_path: Path) -> None:
    kept = UnpromptedSessions(tmp_path)
    ids = [new_thread_id() for _ in range(202)]
    for session in ids:
        kept.add(session)
    assert [session in kept for session in ids] == [False, False, *[True] * 200]


def test_what_is_no_id_is_never_a_path(tmp_path: Path) -> None:
    kept = UnpromptedSessions(tmp_path)
    for text in ("", "../x", "name"):
        kept.add(text)
        kept.remove(text)
        assert text not in kept
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    kept = UnpromptedSessions(home)
    session = new_thread_id()
    kept.add(session)
    kept.remove(session)
    assert session not in kept
