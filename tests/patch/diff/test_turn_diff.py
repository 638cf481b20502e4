import os
from pathlib import Path

import pytest

from codex_py.patch.diff import turn_diff
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.protocol.event_data import event_data
from codex_py.protocol.events import (
    FilesPatched,
    TurnCompleted,
)
from codex_py.protocol.patched_file import ChangeKind, PatchedFile
from codex_py.protocol.stream import Usage
from tests.patch.trees import git, tree

ROOT = Path("/p")
REGULAR = 0o100644
CHANGES: list[
    tuple[str, ChangeKind, bytes | None, bytes | None, int | None, int | None]
] = [
    ("a", "update", b"1\n2\n", b"1\n3", REGULAR, REGULAR),
    ("s.sh", "update", b"run\n", b"run\n", REGULAR, 0o100755),
    ("gone", "delete", b"x", None, REGULAR, None),
    ('über "\n', "add", None, b"", None, None),
]


def patched(
    name: str,
    old: bytes | None,
    new: bytes | None,
    *,
    move_to: str | None = None,
    replaced: bytes | None = None,
) -> PatchedFile:
    return PatchedFile(
        ROOT / name,
        "add" if old is None else "delete" if new is None else "update",
        ROOT / move_to if move_to else None,
        old,
        new,
        replaced,
        old_mode=None if old is None else REGULAR,
        new_mode=None if new is None else REGULAR,
    )


def net_diff(*files: PatchedFile) -> str:
    changes = NetChanges()
    for file in files:
        changes.add([file])
    return changes.diff(ROOT)


def test_several_patches_of_a_file_come_to_one_difference():
    assert net_diff(
        patched("a", b"1\n2\n", b"1\nx\n"),
        patched("b", None, b"new\n"),
        patched("a", b"1\nx\n", b"1\n3\n"),
    ) == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
        "diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n"
    )


def test_a_file_that_is_as_it_was_before_is_not_shown():
    assert (
        net_diff(
            patched("a", b"1\n", b"2\n"),
            patched("b", None, b"x\n"),
            patched("c", b"gone\n", None),
            patched("a", b"2\n", b"1\n"),
            patched("b", b"x\n", None),
            patched("c", None, b"gone\n"),
        )
        == ""
    )


def test_a_file_is_followed_through_its_moves():
    assert net_diff(
        patched("a", b"1\n", b"1\n", move_to="b"),
        patched("b", b"1\n", b"2\n", move_to="c"),
    ) == (
        "diff --git a/a b/c\nrename from a\nrename to c\n--- a/a\n+++ b/c\n@@ -1 +1 @@\n-1\n+2\n"
    )


def test_a_file_that_is_moved_there_and_back_has_not_moved():
    assert (
        net_diff(
            patched("a", b"1\n", b"1\n", move_to="b"),
            patched("b", b"1\n", b"1\n", move_to="a"),
        )
        == ""
    )


def test_a_move_onto_another_file_is_a_removal_and_an_update():
    assert net_diff(patched("a", b"1\n", b"1\n", move_to="b", replaced=b"old\n")) == (
        "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
        "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-old\n+1\n"
    )


def test_large_contents_are_not_kept_but_told_apart():
    large, larger = b"x" * 5_000_000, b"y" * 5_000_001
    assert net_diff(patched("a", large, larger)) == (
        "diff --git a/a b/a\nNot shown: 5000000 bytes become 5000001\n"
    )
    assert net_diff(patched("a", large, larger), patched("a", larger, large)) == ""


def test_all_contents_together_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turn_diff, "_MAX_KEPT_TOGETHER", 32 * 1024 * 1024)
    changes = NetChanges()
    for number in range(20):
        changes.add([patched(str(number), None, os.urandom(2_000_000))])
    assert changes.kept_bytes <= 32 * 1024 * 1024
    changes.add([patched(str(number), b"", None) for number in range(20)])
    assert (changes.kept_bytes, changes.diff(ROOT)) == (0, "")


def test_a_file_that_was_removed_unread_is_named():
    removed = PatchedFile(ROOT / "a", "delete", None, None, None, old_mode=0o100755)
    assert net_diff(removed) == "diff --git a/a b/a\ndeleted file mode 100755\n"
    assert net_diff(removed, patched("a", None, b"x\n")) == (
        "diff --git a/a b/a\nold mode 100755\nnew mode 100644\nNot shown: the old contents were not read\n"
    )


def test_git_takes_the_difference(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "s.sh").write_bytes(b"run\n")
    (tmp_path / "gone").write_bytes(b"x")
    git(tmp_path, "init", "-q")
    changes = NetChanges()
    changes.add(
        [
            PatchedFile(
                tmp_path / name,
                kind,
                None,
                old,
                new,
                old_mode=old_mode,
                new_mode=new_mode,
            )
            for name, kind, old, new, old_mode, new_mode in CHANGES
        ]
    )
    (tmp_path / "the.diff").write_text(changes.diff(tmp_path), encoding="utf-8")
    git(tmp_path, "apply", "the.diff")
    (tmp_path / "the.diff").unlink()
    assert tree(tmp_path) == {"a": b"1\n3", "s.sh*": b"run\n", 'über "\n': b""}


def test_a_line_without_a_difference_does_not_name_it():
    data = event_data(TurnCompleted(Usage()))
    assert data is not None
    assert list(data) == ["type", "usage"]
    assert event_data(FilesPatched([])) is None
