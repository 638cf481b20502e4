"""Also tests `patch/undo/entries.py`."""

import random
import stat
from pathlib import Path

import pytest

from codex_py.errors import CodexError, ExitCode, PatchError
from codex_py.patch.files import transaction
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, plan_undo
from codex_py.protocol.patched_file import PatchedFile
from tests.support.patching import patch, tree
from tests.support.searches import sample


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    root = tmp_path / "root"
    root.mkdir()
    return Journal(tmp_path / "home", root)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")


def test_an_undo_brings_everything_back_and_undoing_that_does_it_again(
    journal: Journal,
):
    root = journal.cwd
    write(root, changed="1\n", removed="r\n", moved="m\n", name="n\n")
    (root / "moved").chmod(0o750)
    (root / "removed").chmod(0o600)
    (root / "link").symlink_to("changed")
    old = tree(root)
    patch(
        journal,
        *(
            "*** Update File: changed",
            "-1",
            "+2",
            "*** Delete File: removed",
            "*** Add File: a/b/c",
        ),
        *(
            "*** Update File: moved",
            "*** Move to: a/moved",
            "-m",
            "+n",
            "*** Delete File: link",
        ),
        *("*** Delete File: name", "*** Add File: name/below", "+x"),
    )
    new = tree(root)
    undone = plan_undo(journal).commit()
    assert (tree(root), undone.number) == (old, 2)
    plan_undo(journal, 2).commit()
    assert tree(root) == new
    assert [journal.read(number).undoes for number in journal.numbers()] == [2, 1, None]
    # The patch is in force again, and can be undone once more.
    plan_undo(journal).commit()
    assert tree(root) == old


def test_the_newest_undo_is_neither_one_taken_back_nor_one_of_another_folder(
    journal: Journal,
):
    patch(journal, "*** Add File: a", "+1")
    plan_undo(journal).commit()
    assert Entries(journal).newest_undo() == 2
    elsewhere = Journal(journal.cwd.parent / "home", journal.cwd.parent / "elsewhere")
    with pytest.raises(CodexError, match="nothing to redo"):
        Entries(elsewhere).newest_undo()
    plan_undo(journal, 2).commit()
    with pytest.raises(CodexError, match="nothing to redo"):
        Entries(journal).newest_undo()
    plan_undo(journal).commit()
    assert Entries(journal).newest_undo() == 4


@pytest.mark.parametrize("seed", sample(range(40)))
def test_undo_and_redo_are_exact_for_any_patch(journal: Journal, seed: int):
    choose = random.Random(seed)
    root = journal.cwd
    names = ["a", "b", "c", "d/a", "d/b", "d/e/a", "a/x", "b/y/z"]
    states = [tree(root)]
    for _ in range(12):
        try:
            patch(journal, *random_sections(choose, root, names))
        except PatchError:
            assert tree(root) == states[-1]
        else:
            states.append(tree(root))
    undone: list[int] = []
    for state in reversed(states[:-1]):
        number = plan_undo(journal).commit().number
        assert number is not None
        undone.append(number)
        assert tree(root) == state
    for number, state in zip(reversed(undone), states[1:], strict=True):
        plan_undo(journal, number).commit()
        assert tree(root) == state


def random_sections(choose: random.Random, root: Path, names: list[str]) -> list[str]:
    lines: list[str] = []
    for name in choose.sample(names, 3):
        there = (root / name).is_file()
        text = (root / name).read_text(encoding="utf-8") if there else ""
        match choose.randrange(4) if there else 4:
            case 0:
                lines += [f"*** Delete File: {name}"]
            case 1:
                lines += [
                    f"*** Update File: {name}",
                    f"*** Move to: {choose.choice(names)}",
                ]
                lines += [f"-{line}" for line in text.splitlines()] + [
                    f"+{choose.random()}"
                ]
            case 2:
                lines += [f"*** Update File: {name}", f"+{choose.random()}"]
            case _:
                lines += [f"*** Add File: {name}", f"+{choose.random()}"]
    return lines


def test_the_changes_of_an_undo_can_be_shown_first(journal: Journal):
    write(journal.cwd, a="1\n", b="2\n")
    patch(
        journal,
        "*** Update File: a",
        "-1",
        "+x",
        "*** Delete File: b",
        "*** Add File: c",
    )
    plan = plan_undo(journal)
    assert plan.entry.number == 1
    mode = (journal.cwd / "a").stat().st_mode
    assert plan.changes == [
        PatchedFile(
            journal.cwd / "a", "update", None, b"x\n", b"1\n", None, mode, mode
        ),
        PatchedFile(journal.cwd / "b", "add", None, None, b"2\n", None, None, mode),
        PatchedFile(journal.cwd / "c", "delete", None, b"", None, None, mode),
    ]


def test_edits_since_are_not_overwritten(journal: Journal):
    root = journal.cwd
    write(root, a="1\n", b="1\n", gone="1\n")
    patch(
        journal,
        *("*** Update File: a", "-1", "+2", "*** Update File: b", "-1", "+2"),
        *("*** Delete File: gone", "*** Add File: made", "+x"),
    )
    write(root, a="2\nmine\n", gone="back\n")
    (root / "made").unlink()
    now = tree(root)
    with pytest.raises(EditedSince) as caught:
        plan_undo(journal)
    assert str(caught.value) == (
        f"patch 1 was not undone: edited since: {root}/a, {root}/gone, {root}/made"
    )
    assert caught.value.exit_code == ExitCode.PATCH
    assert caught.value.diff == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 2\n+mine\n"
        "diff --git a/gone b/gone\nnew file mode 100644\n--- /dev/null\n+++ b/gone\n@@ -0,0 +1 @@\n+back\n"
        "diff --git a/made b/made\ndeleted file mode 100644\n--- a/made\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    assert tree(root) == now
    # By force, and even that can be undone.
    forced = plan_undo(journal, force=True).commit().number
    assert {name: contents for name, (_, contents) in tree(root).items()} == {
        "a": b"1\n",
        "b": b"1\n",
        "gone": b"1\n",
    }
    plan_undo(journal, forced).commit()
    assert tree(root) == now


def test_later_patches_of_the_same_file_are_undone_first(journal: Journal):
    write(journal.cwd, a="1\n")
    patch(journal, "*** Update File: a", "-1", "+2")
    patch(journal, "*** Update File: a", "-2", "+3")
    with pytest.raises(EditedSince):
        plan_undo(journal, 1)
    plan_undo(journal).commit()
    plan_undo(journal).commit()
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "1\n"


def test_the_last_patch_is_that_of_the_working_directory_or_below(journal: Journal):
    root = journal.cwd
    home = root.parent / "home"
    (root / "sub").mkdir()
    patch(Journal(home, root / "sub"), "*** Add File: a")
    patch(Journal(home, root.parent), "*** Add File: b")
    assert plan_undo(journal).entry.number == 1
    assert plan_undo(Journal(home, root.parent)).entry.number == 2
    with pytest.raises(
        CodexError, match=r"^nothing to undo: no patch and no turn changed anything in "
    ) as caught:
        plan_undo(Journal(home, root / "elsewhere"))
    assert caught.value.exit_code == ExitCode.TURN_FAILED


def test_a_patch_is_undone_once(journal: Journal):
    patch(journal, "*** Add File: a")
    plan_undo(journal).commit()
    with pytest.raises(
        CodexError, match=r"^nothing to undo: everything that was changed is undone "
    ):
        plan_undo(journal)
    with pytest.raises(
        CodexError, match=r"^patch 1 is undone already; undoing 2 brings it back$"
    ):
        plan_undo(journal, 1)
    with pytest.raises(
        CodexError, match=r"^there is no patch 7; see `codex-py undo --list`$"
    ):
        plan_undo(journal, 7)


def test_a_patch_says_if_it_cannot_be_undone(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transaction, "MAX_KEPT", 100)
    write(journal.cwd, big="1\n" * 100, small="1\n")
    committed = patch(
        journal,
        *("*** Update File: big", "-1", "+2", "*** Update File: small", "-1", "+2"),
    )
    assert committed.notes == (
        f"This patch cannot be undone: what was in {journal.cwd}/big is too large to be kept, or cannot "
        "be read.",
    )
    assert set(tree(journal.cwd)) == {"big", "small"}
    with pytest.raises(
        CodexError, match=r"^patch 1 cannot be undone: what was in .* was not kept$"
    ):
        plan_undo(journal)


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00" * 100])
def test_a_damaged_record_is_not_passed_over(journal: Journal, damage: bytes):
    root = journal.cwd
    for name in ("first", "second", "third"):
        patch(journal, f"*** Add File: {name}\n+x")
    (record,) = (root.parent / "home").rglob("2.committed")
    record.write_bytes(damage)
    # The newest one can be read.
    plan_undo(journal).commit()
    assert {path.name for path in root.iterdir()} == {"first", "second"}
    with pytest.raises(
        CodexError,
        match=r"the record of patch 2 is damaged.*; `codex-py undo 1` undoes the newest",
    ):
        plan_undo(journal)
    plan_undo(journal, 1).commit()
    assert {path.name for path in root.iterdir()} == {"second"}
    with pytest.raises(CodexError, match="the record of patch 2 is damaged"):
        plan_undo(journal)


def test_a_mode_that_was_changed_since_stays(journal: Journal):
    write(journal.cwd, a="1\n")
    patch(journal, "*** Update File: a", "-1", "+2")
    (journal.cwd / "a").chmod(0o755)
    plan_undo(journal).commit()
    assert stat.S_IMODE((journal.cwd / "a").stat().st_mode) == 0o755
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "1\n"


def test_files_that_someone_put_into_a_new_directory_stay(journal: Journal):
    patch(journal, "*** Add File: d/a")
    write(journal.cwd / "d", mine="m\n")
    plan_undo(journal).commit()
    assert list(tree(journal.cwd)) == ["d", "d/mine"]
