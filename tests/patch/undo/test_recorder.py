"""What a turn is recorded to have changed, beside others who change files in the same folder.

Also tests `patch/undo/author.py`.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.change import EntryChange, JournalEntry, patched_files
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies.run_times import RunTimes
from codex_py.patch.undo.copies.store import stores
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.protocol.patched_file import PatchedFile
from tests.support.patching import enveloped, patch, tree


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
    turn.begin_life()
    work()
    turn.end_life()
    # The time of a file system passes in steps.
    passed(root)


def passed(root: Path) -> None:
    run_times = RunTimes(root)
    now, deadline = run_times.now_ns(), time.monotonic() + 10
    while run_times.now_ns() == now and time.monotonic() < deadline:
        os.sched_yield()


def ended(turn: TurnRecorder, root: Path) -> tuple[str, JournalEntry]:
    diff = turn.end_turn(1, is_new=True)
    found = journal(root)
    return diff, found.read(found.numbers()[0])


def names(root: Path, paths: Sequence[str | EntryChange | PatchedFile]) -> list[str]:
    texts = (path if isinstance(path, str) else str(path.path) for path in paths)
    return sorted(os.path.relpath(text, root) for text in texts)


@pytest.mark.parametrize("copies_between", [False, True])
def test_files_that_the_user_saves_while_the_model_thinks_are_left_alone(
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
    assert names(root, entry.turn.of_others) == sorted(
        {"my new", "notes", "src/a"} - {*removed}
    )
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
    monkeypatch.setattr("codex_py.patch.undo.copies.run_times._LONG_NS", 0)
    turn = recorder(root)
    turn.copy()
    turn.begin_life()
    passed(root)
    write(root / "mine")
    passed(root)
    turn.end_life()
    _, entry = ended(turn, root)
    assert entry.turn is not None
    assert names(root, entry.turn.unsure) == ["mine"]


@pytest.mark.parametrize("by_undo", [False, True])
def test_changes_by_an_undo_or_the_patch_of_another_do_not_belong_to_the_turn(
    root: Path, by_undo: bool
) -> None:
    if by_undo:
        patch(journal(root), "*** Add File: patched", "+x")
    turn = recorder(root)
    turn.copy()
    turn.begin_life()
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
def test_a_branch_that_was_switched_makes_changes_doubtful(
    root: Path, is_confined: bool
) -> None:
    git = ("git", "-c", "user.email=a@example.com", "-c", "user.name=a")
    for words in ("init -qb main", "add -A", "commit -qm 1", "checkout -qb other"):
        subprocess.run([*git, *words.split()], cwd=root, check=True)
    write(root / "src/a", "on other\n")
    for words in ("commit -qam 2", "checkout -q main"):
        subprocess.run([*git, *words.split()], cwd=root, check=True)
    turn = recorder(root)
    turn.copy()
    turn.will_run(is_confined=is_confined)
    turn.begin_life()
    write(root / "mine")
    subprocess.run([*git, "checkout", "-q", "other"], cwd=root, check=True)
    turn.end_life()
    _, entry = ended(turn, root)
    assert entry.turn is not None
    assert names(root, entry.turn.unsure) == ["mine", "src/a"]
    assert entry.turn.switched == (("main", "other") if is_confined else ())


def test_changes_that_two_sessions_may_both_have_made_are_undone_by_force_alone(
    root: Path,
) -> None:
    turns = [recorder(root, name) for name in ("one", "two")]
    for turn in turns:
        turn.copy()
        turn.begin_life()
    for name in ("mine", "shared"):
        write(root / name)
    for turn in turns:
        turn.end_life()
        ended(turn, root)
    with pytest.raises(
        EditedSince, match="turn 1 of session one may have changed it"
    ) as caught:
        plan_undo(journal(root))
    assert caught.value.diff.count("diff --git") == 2
    assert (root / "shared").exists()
    plan_undo(journal(root), force=True).commit()
    assert not (root / "shared").exists()
    # Nothing of the other is left to take back, and nobody edited it.
    assert plan_undo(journal(root)).changes == []


def test_sessions_side_by_side_are_undone_each_by_itself(root: Path) -> None:
    turns = {name: recorder(root, name) for name in ("mine", "notes")}
    for turn in turns.values():
        turn.copy()
    passed(root)
    for name, turn in turns.items():
        life(root, turn, partial(write, root / name))
    for name, turn in turns.items():
        assert names(root, ended(turn, root)[1].changes) == [name]
    plan_undo(journal(root)).commit()
    assert (root / "mine").read_text(encoding="utf-8") == "new\n"
    assert (root / "notes").read_text(encoding="utf-8") == "old\n"


def test_a_session_that_is_still_at_work_is_told_of_before_an_undo(root: Path) -> None:
    turn, other = recorder(root), recorder(root, "another")
    other.copy()
    turn.copy()
    life(root, turn, lambda: write(root / "mine"))
    ended(turn, root)
    assert plan_undo(journal(root)).doubts == [
        "Session another has been at work here since before."
    ]
    ended_diff = other.end_turn(1, is_new=True)
    assert (ended_diff, plan_undo(journal(root)).doubts) == ("", [])


def test_a_turn_that_changed_only_what_is_not_kept_is_named_and_passed_over(
    root: Path,
) -> None:
    def large() -> None:
        with (root / "large").open("wb") as file:
            file.truncate(11 * 1024**2)

    turn = recorder(root)
    turn.copy()
    life(root, turn, large)
    ended(turn, root)
    with pytest.raises(CodexError, match="large changed, and was not kept"):
        plan_undo(journal(root))
    turn.copy()
    life(root, turn, lambda: write(root / "mine"))
    ended(turn, root)
    turn.copy()
    life(root, turn, (root / "large").unlink)
    ended(turn, root)
    plan = plan_undo(journal(root))
    assert (names(root, plan.changes), names(root, plan.unkept)) == (
        ["mine"],
        ["large"],
    )


@pytest.mark.parametrize("has_command", [False, True])
def test_of_patches_that_cancel_out_none_is_undone_alone(
    root: Path, has_command: bool
) -> None:
    turn = recorder(root)
    turn.copy()
    life(root, turn, lambda: write(root / "notes"))
    ended(turn, root)
    first = patch(journal(root), "*** Add File: made", "+text")
    turn.patched([PatchedFile.of(root / "made", None, b"text\n")], first.number)
    if has_command:
        turn.copy()
        life(root, turn, (root / "made").unlink)
    else:
        second = patch(journal(root), "*** Delete File: made")
        turn.patched([PatchedFile.of(root / "made", b"text\n", None)], second.number)
    assert turn.is_open
    assert ended(turn, root)[0] == ""
    plan = plan_undo(journal(root))
    assert names(root, plan.changes) == ["notes"]


def test_an_entry_tells_of_a_move_as_the_end_of_its_turn_does(root: Path) -> None:
    turn = recorder(root)
    moved = patch(
        journal(root), "*** Update File: notes", "*** Move to: kept", "@@", "-old", "+x"
    )
    file = PatchedFile.of(root / "notes", b"old\n", b"x\n", move_to=root / "kept")
    turn.patched([file], moved.number)
    turn.copy()
    life(root, turn, lambda: write(root / "mine"))
    diff, entry = ended(turn, root)
    assert "rename from notes\nrename to kept" in diff
    told = git_diff(patched_files(entry.changes), root)
    assert sorted(told.split("diff --git ")) == sorted(diff.split("diff --git "))
    plan_undo(journal(root)).commit()
    assert names(root, [str(path) for path in root.iterdir()]) == [
        "mine",
        "notes",
        "src",
    ]


LONG = "".join(f"line {number}\n" for number in range(400))


@pytest.mark.parametrize("has_command", [False, True])
@pytest.mark.parametrize(
    ("link", "target", "to", "text"),
    [
        ("link", "notes", "moved", "old\n"),
        ("link", "notes", "moved", LONG),
        ("link", "notes", "src/a", "old\n"),
        ("link", "notes", "run", "old\n"),
        ("link", "notes", "other link", "old\n"),
        ("src/link", "../notes", "deep/er/moved", "old\n"),
        ("link", "link to the link", "moved", "old\n"),
        ("link", "{root}/notes", "moved", "old\n"),
        ("link", "src/a", "moved", "old\n"),
    ],
)
def test_a_link_that_a_patch_moves_leads_where_it_led_after_an_undo(
    root: Path, *, link: str, target: str, to: str, text: str, has_command: bool
) -> None:
    (root / "notes").write_text(text, encoding="utf-8")
    (root / "run").write_text("program\n", encoding="utf-8")
    (root / "run").chmod(0o755)
    (root / "other link").symlink_to("mine")
    (root / "link to the link").symlink_to("notes")
    (root / link).symlink_to(target.format(root=root))
    last = text.splitlines()[-1]
    old = tree(root)
    turn = recorder(root)
    lines = (f"*** Update File: {link}", f"*** Move to: {to}", "@@", f"-{last}", "+new")
    plan = plan_patch(enveloped(*lines), root)
    turn.patched(plan.changes, plan.commit(journal(root)).number)
    if has_command:
        turn.copy()
        life(root, turn, lambda: write(root / "of a command"))
    diff, _ = ended(turn, root)
    new = tree(root)
    assert not (root / link).is_symlink()
    assert f"deleted file mode 120000\n--- a/{link}\n" in diff
    plan_undo(journal(root)).commit()
    assert tree(root) == old
    plan_undo(journal(root), Entries(journal(root)).newest_undo()).commit()
    assert tree(root) == new


@pytest.mark.parametrize("by", ["patch", "patch before a command", "command"])
def test_folders_of_a_turn_go_with_its_files_and_earlier_ones_stay(
    root: Path, by: str
) -> None:
    (root / "empty").mkdir()
    old = tree(root)
    turn = recorder(root)

    def work() -> None:
        for name in ("tests/deep/b", "empty/b"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            write(root / name)

    if by != "command":
        done = patch(
            journal(root),
            "*** Add File: tests/deep/a",
            "+1",
            "*** Add File: empty/a",
            "+1",
        )
        files = [
            PatchedFile.of(root / n, None, b"1\n") for n in ("tests/deep/a", "empty/a")
        ]
        turn.patched(files, done.number)
    if by != "patch":
        turn.copy()
        life(root, turn, work)
    ended(turn, root)
    new = tree(root)
    plan_undo(journal(root)).commit()
    assert tree(root) == old
    plan_undo(journal(root), Entries(journal(root)).newest_undo()).commit()
    assert tree(root) == new


def test_a_folder_that_somebody_uses_stays_after_an_undo(root: Path) -> None:
    turn = recorder(root)
    done = patch(journal(root), "*** Add File: tests/a", "+1")
    turn.patched([PatchedFile.of(root / "tests/a", None, b"1\n")], done.number)
    ended(turn, root)
    write(root / "tests/mine")
    plan_undo(journal(root)).commit()
    assert list((root / "tests").iterdir()) == [root / "tests/mine"]


@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
@pytest.mark.parametrize(
    "name", ["state", "index", "config", "packs", "HEAD", "info/exclude", "problem"]
)
def test_a_file_of_the_store_that_is_not_regular_is_written_anew(
    root: Path, name: str, kind: str
) -> None:
    turn = recorder(root)
    turn.copy()
    passed(root)
    life(root, turn, lambda: write(root / "src/a"))
    ended(turn, root)
    (store,) = [
        path for path in stores(root.parent / "home").iterdir() if path.is_dir()
    ]
    file = store / name
    file.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to("nowhere")
        case _:
            file.symlink_to("/dev/zero")
    again = recorder(root, "two")
    again.copy()
    passed(root)
    life(root, again, lambda: write(root / "src/a", "newer\n"))
    _, entry = ended(again, root)
    assert names(root, entry.changes) == ["src/a"]
