"""What others do in a folder while a sandbox makes and removes placeholders there is not taken for the session's."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codex_py.filesystem.folder_times import FolderTimes
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import run_times
from codex_py.patch.undo.plan import plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.sandbox.placeholders import Placeholders
from tests.patch.undo.test_recorder import passed, write

MOMENTS = (
    "before the placeholders",
    "before the command",
    "after the command",
    "between two placeholders",
    "after the placeholders",
)


def replace(path: Path) -> None:
    """As an editor saves a file."""
    write(path.with_name("saved"), "theirs\n")
    path.with_name("saved").replace(path)


EDITS: Mapping[str, Callable[[Path], object]] = {
    "edited": lambda root: write(root / "theirs", "edited\n"),
    "saved": lambda root: replace(root / "theirs"),
    "new": lambda root: write(root / "new"),
    "mode": lambda root: (root / "theirs").chmod(0o600),
    "moved in": lambda root: (root.parent / "elsewhere").rename(root / "new"),
}
REMOVALS: Mapping[str, Callable[[Path], object]] = {
    "removed": lambda root: (root / "theirs").unlink(),
    "moved out": lambda root: (root / "theirs").rename(root.parent / "out"),
    "moved": lambda root: (root / "theirs").rename(root / "src/theirs"),
    "folder removed": lambda root: [
        (root / "folder/inner").unlink(),
        (root / "folder").rmdir(),
    ],
    "folder moved out": lambda root: (root / "folder").rename(root.parent / "out"),
}
THEIRS = {"theirs", "new", "src/theirs", "folder/inner"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    os.umask(0o022)
    # However slow this machine is.
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)
    root = tmp_path / "work"
    for folder in ("src", "folder"):
        (root / folder).mkdir(parents=True)
    for name in ("mine", "theirs", "src/mine", "folder/inner"):
        write(root / name, "old\n")
    write(tmp_path / "elsewhere", "old\n")
    passed(root)
    return root


def turn(
    root: Path,
    command: Callable[[], object],
    moment: str,
    others: Callable[[Path], object],
) -> None:
    """A turn with one confined command, and others who do something at one moment of it."""

    def reached(name: str) -> None:
        passed(root)
        if name == moment:
            others(root)
            passed(root)

    times = FolderTimes()
    first, second = (Placeholders(folder_times=times) for _ in range(2))
    recorder = TurnRecorder(
        root.parent / "home", root, os.environ, "one", folder_times=times
    )
    recorder.copy()
    reached("before the placeholders")
    first.hold([root / ".codex"])
    second.hold([root / ".agents"])
    reached("before the command")
    recorder.begin_life()
    command()
    recorder.end_life()
    reached("after the command")
    first.release()
    reached("between two placeholders")
    second.release()
    reached("after the placeholders")
    recorder.end_turn(1, is_new=True)


def outcome(root: Path) -> tuple[set[str], set[str]]:
    """The names that an undo changes, and those of them that it asks about."""
    plan = plan_undo(Journal(root.parent / "home", root))
    changed = {os.path.relpath(file.path, root) for file in plan.changes}
    asked = {
        name
        for name in changed
        if any(f"{root / name}" in doubt for doubt in plan.doubts)
    }
    return changed, asked


@pytest.mark.parametrize("moment", ["never", *MOMENTS])
@pytest.mark.parametrize("edit", EDITS)
def test_files_that_others_write_beside_placeholders_stay(
    root: Path, edit: str, moment: str
) -> None:
    turn(root, lambda: write(root / "mine"), moment, EDITS[edit])
    assert outcome(root) == ({"mine"}, set())


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("removal", REMOVALS)
def test_files_that_others_remove_beside_placeholders_are_not_restored_unasked(
    root: Path, removal: str, moment: str
) -> None:
    turn(root, lambda: write(root / "mine"), moment, REMOVALS[removal])
    changed, asked = outcome(root)
    assert changed - asked == {"mine"}
    assert asked <= THEIRS


@pytest.mark.parametrize("moment", MOMENTS[2:])
@pytest.mark.parametrize("removal", REMOVALS)
def test_files_that_a_command_and_then_others_removed_in_one_folder_are_asked_about(
    root: Path, removal: str, moment: str
) -> None:
    turn(root, (root / "mine").unlink, moment, REMOVALS[removal])
    changed, asked = outcome(root)
    assert "mine" in asked
    assert changed == asked


@pytest.mark.parametrize("moment", MOMENTS)
def test_files_that_others_make_beside_a_command_that_removes_some_stay(
    root: Path, moment: str
) -> None:
    turn(root, (root / "mine").unlink, moment, EDITS["new"])
    assert outcome(root)[0] == {"mine"}


def test_files_that_a_command_alone_removed_beside_placeholders_are_not_asked_about(
    root: Path,
) -> None:
    turn(root, (root / "mine").unlink, "never", lambda _: None)
    assert outcome(root) == ({"mine"}, set())
