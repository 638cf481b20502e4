"""The difference between a work tree and its last commit, in odd states too."""

import os
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.patch.diff.work_tree import MAX_FILES, work_tree_changes
from codex_py.patch.git import repository_git
from codex_py.programs import programs_outside
from tests.patch.trees import git, write

_IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@a")


def commit(root: Path, *words: str) -> None:
    git(root, "add", "-A")
    git(root, *_IDENTITY, "commit", "-q", "-m", "x", *words)


def changes(root: Path) -> tuple[dict[str, bytes | None], list[str]]:
    safe = repository_git(
        programs_outside(root / "home", os.environ, root), os.environ, root
    )
    files, unread = work_tree_changes(safe, root)
    return {str(file.path.relative_to(root)): file.new for file in files}, unread


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write(root, {"a": b"a\n", "b": b"b\n", "c": b"c\n1\n2\n3\n"})
    git(root, "init", "-q")
    commit(root)
    return root


def test_all_changes_are_found_and_the_repository_stays_as_it_is(root: Path):
    write(root, {"a": b"A\n", "new": b"n\n", "staged": b"s\n"})
    (root / "b").unlink()
    git(root, "add", "staged")
    before = {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}
    assert changes(root) == (
        {"a": b"A\n", "b": None, "new": b"n\n", "staged": b"s\n"},
        [],
    )
    assert {
        path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")
    } == before


def test_without_a_commit_all_files_are_new(tmp_path: Path):
    write(tmp_path, {"staged": b"s\n", "new": b"n\n"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "staged")
    assert changes(tmp_path) == ({"staged": b"s\n", "new": b"n\n"}, [])


def test_large_files_are_named_staged_or_not(root: Path):
    write(root, dict.fromkeys(("a", "new", "staged"), b"x" * 1_000_001))
    git(root, "add", "staged")
    assert changes(root) == ({}, ["a", "new", "staged"])


def test_a_merge_with_conflicts_is_as_the_files_are(root: Path):
    git(root, "checkout", "-q", "-b", "other")
    write(root, {"a": b"theirs\n"})
    (root / "b").unlink()
    (root / "c").rename(root / "theirs")
    commit(root)
    git(root, "checkout", "-q", "-")
    write(root, {"a": b"ours\n", "b": b"B\n"})
    (root / "c").rename(root / "ours")
    commit(root)
    git(root, *_IDENTITY, "merge", "-q", "other", codes=(1,))
    found, unread = changes(root)
    marked = b"<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"
    assert (found, unread) == ({"a": marked, "theirs": b"c\n1\n2\n3\n"}, [])


def test_lines_that_git_converts_are_no_change(root: Path):
    git(root, "config", "core.autocrlf", "true")
    write(root, {"a": b"a\r\n", "b": b"B\r\n"})
    assert changes(root) == ({"b": b"B\n"}, [])


def test_too_many_files_are_not_read(root: Path):
    write(root, {f"n{number}": b"" for number in range(MAX_FILES + 1)})
    with pytest.raises(CodexError, match="more than 500 files differ"):
        changes(root)
    git(root, "add", "-A")
    with pytest.raises(CodexError, match="more than 500 files differ"):
        changes(root)
