"""What a turn is recorded to have changed, beside others who change files in the same folder."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from codex_py.patch.copies.lives import Lives
from codex_py.patch.files.change import Entry, FileChange
from codex_py.patch.files.journal import Journal
from codex_py.patch.turns import TurnRecorder
from codex_py.patch.undo import plan_undo
from tests.support.patching import patch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    os.umask(0o022)
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    for name in ("mine", "notes", "src/a"):
        (root / name).write_text("old\n", encoding="utf-8")
    return root


def recorder(root: Path, thread: str = "one") -> TurnRecorder:
    return TurnRecorder(root.parent / "home", root, os.environ, thread)


def journal(root: Path) -> Journal:
    return Journal(root.parent / "home", root)


def write(path: Path, text: str = "new\n") -> None:
    path.write_text(text, encoding="utf-8")


def life(root: Path, turn: TurnRecorder, work: Callable[[], object]) -> None:
    """A command that does some work."""
    turn.begin_life(is_confined=True)
    work()
    turn.end_life()
    # The time of a file system passes in steps.
    passed(root)


def passed(root: Path) -> None:
    lives = Lives(root)
    now, deadline = lives.now_ns(), time.monotonic() + 10
    while lives.now_ns() == now and time.monotonic() < deadline:
        os.sched_yield()


def ended(turn: TurnRecorder, root: Path) -> tuple[str, Entry]:
    diff = turn.end_turn(1, is_new=True)
    found = journal(root)
    return diff, found.read(found.numbers()[0])


def names(root: Path, paths: Sequence[str | FileChange]) -> list[str]:
    texts = (path if isinstance(path, str) else path.path for path in paths)
    return sorted(os.path.relpath(text, root) for text in texts)


@pytest.mark.parametrize("copies_between", [False, True])
def test_what_the_user_saves_while_the_model_thinks_is_left_alone(
    root: Path, copies_between: bool
) -> None:
    turn = recorder(root)
    turn.copy()
    passed(root)
    write(root / "notes")
    passed(root)
    life(root, turn, lambda: write(root / "mine"))
    if copies_between:
        turn.copy()
    write(root / "my new")
    (root / "src/a").unlink()
    passed(root)
    life(root, turn, lambda: None)
    diff, entry = ended(turn, root)
    assert entry.turn is not None
    # A folder tells only when the last file went: here before or after the command.
    removed = [] if copies_between else ["src/a"]
    assert names(root, entry.changes) == ["mine", *removed]
    assert names(root, entry.turn.unsure) == removed
    assert names(root, entry.turn.of_others) == sorted({"my new", "notes", "src/a"} - {*removed})
    assert diff.count("diff --git") == 1 + len(removed)
    plan_undo(journal(root)).commit()
    assert (root / "mine").read_text(encoding="utf-8") == "old\n"
    kept = [(root / name).read_text(encoding="utf-8") for name in ("my new", "notes")]
    assert kept == ["new\n", "new\n"]


def test_an_undo_goes_back_to_the_edit_of_another_and_not_further(root: Path) -> None:
    turn = recorder(root)
    turn.copy()
    life(root, turn, lambda: write(root / "mine", "1\n"))
    turn.copy()
    write(root / "mine", "edited\n")
    passed(root)
    turn.copy()
    life(root, turn, lambda: write(root / "mine", "2\n"))
    assert "-edited\n+2\n" in ended(turn, root)[0]
    plan_undo(journal(root)).commit()
    assert (root / "mine").read_text(encoding="utf-8") == "edited\n"


def test_a_folder_that_a_command_moves_is_its_change(root: Path) -> None:
    turn = recorder(root)
    turn.copy()
    passed(root)
    life(root, turn, lambda: (root / "src").rename(root / "lib"))
    assert names(root, ended(turn, root)[1].changes) == ["lib/a", "src/a"]


def test_a_change_in_a_long_command_may_be_that_of_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codex_py.patch.copies.lives._LONG_NS", 0)
    turn = recorder(root)
    turn.copy()
    turn.begin_life(is_confined=True)
    passed(root)
    write(root / "mine")
    passed(root)
    turn.end_life()
    _, entry = ended(turn, root)
    assert entry.turn is not None
    assert names(root, entry.turn.unsure) == ["mine"]


@pytest.mark.parametrize("by_undo", [False, True])
def test_what_an_undo_or_a_patch_of_another_did_meanwhile_is_not_the_turns(
    root: Path, by_undo: bool
) -> None:
    if by_undo:
        patch(journal(root), "*** Add File: patched", "+x")
    turn = recorder(root)
    turn.copy()
    turn.begin_life(is_confined=True)
    if by_undo:
        plan_undo(journal(root)).commit()
    else:
        patch(journal(root), "*** Add File: patched", "+x")
    write(root / "mine")
    turn.end_life()
    diff, entry = ended(turn, root)
    assert names(root, entry.changes) == ["mine"]
    assert "patched" not in diff
    plan_undo(journal(root)).commit()
    assert (root / "patched").exists() is not by_undo


@pytest.mark.parametrize("is_confined", [False, True])
def test_a_branch_that_was_switched_makes_changes_doubtful(root: Path, is_confined: bool) -> None:
    git = ("git", "-c", "user.email=a@example.com", "-c", "user.name=a")
    for words in ("init -qb main", "add -A", "commit -qm 1", "checkout -qb other"):
        subprocess.run([*git, *words.split()], cwd=root, check=True)
    write(root / "src/a", "on other\n")
    for words in ("commit -qam 2", "checkout -q main"):
        subprocess.run([*git, *words.split()], cwd=root, check=True)
    turn = recorder(root)
    turn.copy()
    turn.begin_life(is_confined=is_confined)
    write(root / "mine")
    subprocess.run([*git, "checkout", "-q", "other"], cwd=root, check=True)
    turn.end_life()
    _, entry = ended(turn, root)
    assert entry.turn is not None
    assert names(root, entry.turn.unsure) == ["mine", "src/a"]
    assert entry.turn.switched == (("main", "other") if is_confined else ())
