"""Copies of a work tree, and what was changed between two of them.

Also tests `patch/undo/copies/changes.py` and `patch/undo/copies/store.py`.
"""

import os
import resource
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.patch.undo.copies import snapshots as copying
from codex_py.patch.undo.copies import store
from codex_py.patch.undo.copies.changes import Changes, changes_between
from codex_py.patch.undo.copies.snapshots import Snapshots
from codex_py.patch.undo.copies.store import SnapshotError
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.patch.undo.running_turns import recover_turns
from tests.support.git import git

Version: TypeAlias = tuple[int, bytes]
Change: TypeAlias = tuple[str, Version | None, Version | None]

FILE, PROGRAM = stat.S_IFREG | 0o644, stat.S_IFREG | 0o755


@pytest.fixture(autouse=True)
def umask() -> None:
    os.umask(0o022)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    for name, text in {
        "a": "a\n",
        "src/b": "b\n",
        "src/c": "c\n",
        ".gitignore": "*.log\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def copies(root: Path, environment: Mapping[str, str] = os.environ) -> Snapshots:
    dot_git = root / ".git"
    home = root.parent / "home"
    return Snapshots(home, root, dot_git if dot_git.exists() else None, environment)


def changed(root: Path, changes: Changes) -> list[Change]:
    """By path relative to the root: mode and contents, before and after."""
    return [
        (
            str(file.path.relative_to(root)),
            None if file.old is None else (file.old_mode or 0, file.old),
            None if file.new is None else (file.new_mode or 0, file.new),
        )
        for file in changes.files
    ]


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_kind_of_change_is_seen_and_the_users_repository_is_untouched(root: Path):
    (root / "a").write_text("edited\n", encoding="utf-8")
    (root / "untracked").write_text("u\n", encoding="utf-8")
    (root / "ignored.log").write_text("i\n", encoding="utf-8")
    (root / "private").write_text("p\n", encoding="utf-8")
    (root / "private").chmod(0o600)
    (root / "old link").symlink_to("a")
    repository = contents(root / ".git")
    snapshots = copies(root)
    before = snapshots.take()
    (root / "a").write_bytes(b"\0\r\nbinary")
    shutil.rmtree(root / "src")
    for name in ("untracked", "ignored.log", "private", "old link"):
        (root / name).unlink()
    (root / "src").write_text("a file now\n", encoding="utf-8")
    (root / "untracked").mkdir()
    (root / "untracked" / "below").touch(mode=0o755)
    (root / "new\nname\udcff").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    changes = changes_between(snapshots.store, before, snapshots.take())
    assert sorted(changed(root, changes)) == [
        ("a", (FILE, b"edited\n"), (FILE, b"\0\r\nbinary")),
        ("ignored.log", (FILE, b"i\n"), None),
        ("new\nname\udcff", None, (stat.S_IFLNK, b"nowhere")),
        ("old link", (stat.S_IFLNK, b"a"), None),
        ("private", (stat.S_IFREG | 0o600, b"p\n"), None),
        ("src", None, (FILE, b"a file now\n")),
        ("src/b", (FILE, b"b\n"), None),
        ("src/c", (FILE, b"c\n"), None),
        ("untracked", (FILE, b"u\n"), None),
        ("untracked/below", None, (PROGRAM, b"")),
    ]
    unkept = [str(root / "pipe")]
    assert (changes.folders, changes.unkept) == ([str(root / "untracked")], unkept)
    assert contents(root / ".git") == repository


def test_copies_of_the_same_files_are_the_same_in_every_process(root: Path):
    before = copies(root).take()
    os.utime(root / "a")
    assert copies(root).take() == before


def test_nothing_that_a_repository_names_is_run_or_changes_what_is_kept(root: Path):
    trace = root.parent / "trace"
    run = f"sh -c 'echo run >>{trace}; cat'"
    for key in ("filter.x.clean", "filter.x.smudge", "core.fsmonitor", "diff.external"):
        git(root, "config", key, run)
    git(root, "config", "core.autocrlf", "true")
    hook = root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho hook >>{trace}\n", encoding="utf-8")
    hook.chmod(0o755)
    (root / ".gitattributes").write_text(
        "* filter=x text eol=crlf ident\n", encoding="utf-8"
    )
    (root / "a").write_bytes(b"one\r\ntwo\n$Id$\n")
    snapshots = copies(root)
    before = snapshots.take()
    (root / "a").unlink()
    changes = changes_between(snapshots.store, before, snapshots.take())
    assert changed(root, changes) == [("a", (FILE, b"one\r\ntwo\n$Id$\n"), None)]
    assert not trace.exists()


def test_files_that_are_not_kept_are_named_if_they_changed(root: Path):
    with (root / "large").open("wb") as file:
        file.truncate(5 * 1024**3)
    nested = root / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "x").touch()
    (root / ".GIT").mkdir()
    (root / ".GIT" / "config").touch()
    (root / ".log").mkdir()
    (root / ".log" / "many.log").touch()
    snapshots = copies(root)
    before = snapshots.take()
    assert set(before.unkept) == {"large", "nested/.git", ".log/"}
    (root / "large").chmod(0o600)
    assert changes_between(snapshots.store, before, snapshots.take()).unkept == [
        str(root / "large")
    ]
    (root / "large").unlink()
    (root / ".GIT" / "config").unlink()
    assert changes_between(snapshots.store, before, snapshots.take()) == (
        [],
        [],
        [str(root / "large")],
    )


def test_a_file_that_grows_too_large_is_not_kept_as_it_was(root: Path):
    snapshots = copies(root)
    before = snapshots.take()
    with (root / "a").open("ab") as file:
        file.truncate(11 * 1024**2)
    changes = changes_between(snapshots.store, before, after := snapshots.take())
    assert (changed(root, changes), changes.unkept) == (
        [("a", (FILE, b"a\n"), None)],
        [str(root / "a")],
    )
    assert snapshots.take() == after


def test_new_files_are_seen_after_any_number_of_copies_without_change(root: Path):
    (root / "ignored.log").touch()
    snapshots = copies(root)
    before = [snapshots.take() for _ in range(3)][-1]
    (root / "src" / "new").touch()
    (root / "folder").mkdir()
    (root / "folder" / "new").touch()
    after = [snapshots.take() for _ in range(3)][-1]
    (root / ".gitignore").write_text("", encoding="utf-8")
    (root / "src" / "was ignored.log").touch()
    last = snapshots.take()
    names = [
        [name for name, *_ in changed(root, changes_between(snapshots.store, *pair))]
        for pair in ((before, after), (after, last))
    ]
    assert names == [["folder/new", "src/new"], [".gitignore", "src/was ignored.log"]]


def test_an_ignored_file_is_kept_only_if_it_is_small(root: Path):
    (root / "large.log").write_bytes(b"x" * 2_000_000)
    snapshots = copies(root)
    before = [snapshots.take() for _ in range(3)][-1]
    (root / "large.log").write_bytes(b"y" * 3_000_000)
    assert changes_between(snapshots.store, before, snapshots.take()) == (
        [],
        [],
        [str(root / "large.log")],
    )


def test_a_submodule_and_a_file_named_like_one_do_not_matter(root: Path):
    (root / "sub").mkdir()
    (root / "sub" / ".git").write_text("gitdir: /nowhere\n", encoding="utf-8")
    (root / "sub" / "x").write_text("x\n", encoding="utf-8")
    commit = "0123456789012345678901234567890123456789"
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    snapshots = copies(root)
    before = snapshots.take()
    (root / "a").unlink()
    assert [
        name
        for name, *_ in changed(
            root, changes_between(snapshots.store, before, snapshots.take())
        )
    ] == ["a"]


def test_objects_that_the_user_lost_are_copied_again(root: Path):
    snapshots = copies(root)
    snapshots.take()
    # The contents stay in the work tree, and nowhere in the repository.
    git(root, "rm", "-rq", "--cached", ".")
    git(root, "commit", "-q", "--amend", "--allow-empty", "-m", "nothing")
    git(root, "reflog", "expire", "--expire=all", "--all")
    git(root, "gc", "-q", "--prune=now")
    later = copies(root)
    before = later.take()
    shutil.rmtree(root / "src")
    found = changed(root, changes_between(later.store, before, later.take()))
    assert found == [
        ("src/b", (FILE, b"b\n"), None),
        ("src/c", (FILE, b"c\n"), None),
    ]


def test_a_repository_that_is_gone_at_the_end_is_reported_not_guessed(root: Path):
    (root / "new").write_text("n\n", encoding="utf-8")
    snapshots = copies(root)
    before = snapshots.take()
    for name in (".git", "src", "new"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    changes = changes_between(snapshots.store, before, snapshots.take())
    # Only the repository had what was committed.
    assert changed(root, changes) == [("new", (FILE, b"n\n"), None)]
    assert changes.unkept == [str(root / "src/b"), str(root / "src/c")]


def test_a_damaged_store_is_begun_anew(root: Path):
    snapshots = copies(root)
    before = snapshots.take()
    (snapshots.store.path / "index").write_bytes(b"damaged")
    (snapshots.store.path / "index.lock").touch()
    assert copies(root).take() == before
    (snapshots.store.path / "state").write_bytes(b"[")
    assert copies(root).take() == before


def test_a_folder_without_a_repository_is_copied_if_it_is_a_project(tmp_path: Path):
    root = tmp_path / "plain"
    root.mkdir()
    (root / "a").write_text("a\n", encoding="utf-8")
    snapshots = copies(root)
    before = snapshots.take()
    (root / "a").unlink()
    assert [
        name
        for name, *_ in changed(
            root, changes_between(snapshots.store, before, snapshots.take())
        )
    ] == ["a"]
    for folder in (root, tmp_path):
        with pytest.raises(SnapshotError, match="is no project"):
            copies(folder, {**os.environ, "HOME": str(root)}).take()


def test_without_git_there_are_no_copies(root: Path):
    with pytest.raises(SnapshotError, match="git is not installed"):
        copies(root, {"PATH": str(root)}).take()


def test_the_home_of_the_program_is_not_copied(root: Path):
    home = root / ".codex"
    home.mkdir()
    (home / "auth.json").write_text("key", encoding="utf-8")
    snapshots = Snapshots(home, root, root / ".git", os.environ)
    before = snapshots.take()
    (home / "auth.json").write_text("other", encoding="utf-8")
    assert changes_between(snapshots.store, before, snapshots.take()) == ([], [], [])


@pytest.mark.parametrize("left", [b"", b'{"root": "/"', b"{}", b"[]"])
def test_a_damaged_record_of_a_turn_is_told_of_once(root: Path, left: bytes) -> None:
    home = root.parent / "home"
    recorder = TurnRecorder(home, root, os.environ, "thread")
    recorder.copy()
    (record,) = copies(root).store.path.glob("thread.*")
    assert recover_turns(home, root, os.environ) == []
    recorder.end_turn(1, is_new=True)
    assert not record.exists()
    record.write_bytes(left)
    assert recover_turns(home, root, os.environ) == [
        "A turn was cut off and cannot be undone: its record is damaged."
    ]
    # Stores with a record are never pruned.
    assert not record.exists()


def test_a_store_that_is_too_large_is_begun_anew(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("changed\n", encoding="utf-8")
    first = copies(root)
    before = first.take()
    monkeypatch.setattr(store, "_MAX_KB", 0)
    mark, turn = first.store.path / "objects" / "mark", first.store.path / "x.turn"
    mark.mkdir()
    turn.touch()
    assert copies(root).take() == before
    # A turn that runs, or was cut off, needs its copy.
    assert mark.exists()
    turn.unlink()
    later = copies(root)
    assert later.take() == before
    assert not mark.exists()
    assert changes_between(later.store, before, later.take()) == ([], [], [])


def test_permissions_that_git_does_not_keep_are_kept(root: Path):
    snapshots = copies(root)
    before = snapshots.take()
    (root / "a").chmod(0o600)
    changes = changes_between(snapshots.store, before, middle := snapshots.take())
    private = (stat.S_IFREG | 0o600, b"a\n")
    assert changed(root, changes) == [("a", (FILE, b"a\n"), private)]
    (root / "a").chmod(0o644)
    changes = changes_between(snapshots.store, middle, snapshots.take())
    assert changed(root, changes) == [("a", private, (FILE, b"a\n"))]


def test_repositories_inside_of_this_one_are_copied_too(root: Path):
    for name in ("inner", "inner/deeper"):
        (root / name).mkdir()
        git(root / name, "init", "-q")
        (root / name / "a").write_text("a\n", encoding="utf-8")
    (root / "inner/.gitignore").write_text("*.o\n", encoding="utf-8")
    snapshots = copies(root)
    before = snapshots.take()
    (root / "inner/a").write_text("b\n", encoding="utf-8")
    (root / "inner/new").touch()
    (root / "inner/x.o").touch()
    changes = changes_between(snapshots.store, before, middle := snapshots.take())
    assert changed(root, changes) == [
        ("inner/a", (FILE, b"a\n"), (FILE, b"b\n")),
        ("inner/new", None, (FILE, b"")),
        ("inner/x.o", None, (FILE, b"")),
    ]
    shutil.rmtree(root / "inner/deeper")
    changes = changes_between(copies(root).store, middle, copies(root).take())
    assert [name for name, *_ in changed(root, changes)] == ["inner/deeper/a"]
    assert changes.unkept == [str(root / "inner/deeper/.git")]


def test_ignored_folders_are_named_if_they_changed(root: Path):
    (root / ".gitignore").write_text("build/\ncache/\nsame/\n", encoding="utf-8")
    for name in ("build/deep", "cache", "same"):
        (root / name).mkdir(parents=True)
        (root / name / "x").touch()
    snapshots = copies(root)
    before = snapshots.take()
    (root / "build/deep/x").write_text("x", encoding="utf-8")
    (root / "cache/x").unlink()
    # The time of a file system passes in steps.
    os.utime(root / "build/deep/x")
    changes = changes_between(snapshots.store, before, snapshots.take())
    assert changes == ([], [], [str(root / "build"), str(root / "cache")])


def test_a_copy_that_fails_leaves_nothing_half_written(root: Path):
    snapshots = copies(root)
    before = snapshots.take()
    (root / "new").write_bytes(os.urandom(200_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As on a full disk, a part of the object is written.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(SnapshotError, match="cannot copy"):
            snapshots.take()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [*snapshots.store.path.glob("objects/*/tmp_obj_*")] == []
    assert (
        changed(root, changes_between(snapshots.store, before, snapshots.take()))[0][0]
        == "new"
    )


def test_pipes_and_sockets_that_come_or_go_are_named(root: Path):
    (root / "ignored.log").mkdir()
    for name in ("old", "c/d/old", "ignored.log/old"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)
    snapshots = copies(root)
    before = snapshots.take()
    (root / "c/d/old").unlink()
    (root / "empty").mkdir()
    os.mkfifo(root / "empty/new")
    (root / "old").unlink()
    (root / "old").write_bytes(b"text")
    changes = changes_between(snapshots.store, before, snapshots.take())
    assert changes.unkept == [
        str(root / name) for name in ("c/d/old", "empty/new", "old")
    ]


def test_a_file_in_a_folder_that_was_empty_is_seen(root: Path):
    (root / "empty/deep").mkdir(parents=True)
    snapshots = copies(root)
    # From the third on, a copy looks at what has changed alone.
    *_, before = [snapshots.take() for _ in range(3)]
    (root / "empty/deep/new").write_text("1", encoding="utf-8")
    changes = changes_between(snapshots.store, before, snapshots.take())
    assert changed(root, changes) == [("empty/deep/new", None, (FILE, b"1"))]


def wait_for_another_time(root: Path) -> None:
    """From now on, nothing that changes gets a time that a folder has."""
    newest = max(path.lstat().st_ctime_ns for path in (root, *root.rglob("*")))
    probe = root.parent / "probe"
    probe.touch()
    while probe.stat().st_ctime_ns <= newest:
        probe.touch()


def add(root: Path) -> None:
    (root / "new").touch()


def add_below(root: Path) -> None:
    (root / "src/new").touch()


def add_ignored(root: Path) -> None:
    (root / "src/is.log").touch()


def empty_the_folder(root: Path) -> None:
    (root / "src/b").unlink()
    (root / "src/c").unlink()


def replace_the_folder(root: Path) -> None:
    (root / "src").rename(root / "moved")
    (root / "src").mkdir()
    (root / "src/b").write_text("b\n", encoding="utf-8")


def make_a_repository_inside(root: Path) -> None:
    git(root, "init", "-q", "src/inner")
    (root / "src/inner/new").touch()


@pytest.mark.parametrize("recent_s", [0.0, 2.0])
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (add, ["new"]),
        (add_below, ["src/new"]),
        (add_ignored, ["src/is.log"]),
        (empty_the_folder, ["src/b", "src/c"]),
        (replace_the_folder, ["moved/b", "moved/c", "src/c"]),
        (make_a_repository_inside, ["src/inner/new"]),
    ],
)
def test_new_and_removed_files_are_seen_in_folders_with_unchanged_times(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    names: list[str],
    recent_s: float,
):
    monkeypatch.setattr(copying, "_RECENT_S", recent_s)
    snapshots = copies(root)
    *_, before = [snapshots.take() for _ in range(4)]
    wait_for_another_time(root)
    change(root)
    after = snapshots.take()
    assert [
        name
        for name, *_ in changed(root, changes_between(snapshots.store, before, after))
    ] == names
    # An empty folder was there before the next turn.
    assert ("src/" in snapshots.take().empty) == (change is empty_the_folder)
    wait_for_another_time(root)
    (root / "later").touch()
    assert snapshots.take().tree != after.tree
