import os
import subprocess
from pathlib import Path

import pytest

from codex_py.rollout.git_info import git_info

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def _git(cwd: Path, *arguments: str) -> str:
    command = ["git", "-C", str(cwd), *arguments]
    run = subprocess.run(
        command,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return run.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit on `main`."""
    path = tmp_path / "repo"
    path.mkdir()
    _git(path, "init", "-q", "-b", "main")
    _git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def test_a_repository_says_where_it_is(repo: Path) -> None:
    _git(repo, "remote", "add", "fork", "https://example.com/fork.git")
    _git(repo, "remote", "add", "origin", "git@example.com:a/b.git")
    (repo / "sub").mkdir()
    assert git_info(repo / "sub") == {
        "commit_hash": _git(repo, "rev-parse", "HEAD"),
        "branch": "main",
        "repository_url": "git@example.com:a/b.git",
    }


def test_packed_references_are_read(repo: Path) -> None:
    _git(repo, "checkout", "-q", "-b", "topic/one")
    _git(repo, "pack-refs", "--all")
    assert git_info(repo) == {
        "commit_hash": _git(repo, "rev-parse", "HEAD"),
        "branch": "topic/one",
    }


def test_a_detached_head_has_no_branch(repo: Path) -> None:
    _git(repo, "checkout", "-q", "--detach")
    assert git_info(repo) == {"commit_hash": _git(repo, "rev-parse", "HEAD")}


def test_a_worktree_has_a_branch_of_its_own_and_shares_the_rest(
    repo: Path, tmp_path: Path
) -> None:
    _git(repo, "remote", "add", "origin", "https://example.com/a.git")
    _git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    _git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "second")
    assert git_info(tmp_path / "tree") == {
        "commit_hash": _git(tmp_path / "tree", "rev-parse", "HEAD"),
        "branch": "other",
        "repository_url": "https://example.com/a.git",
    }


def test_a_repository_without_a_commit_has_a_branch(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q", "-b", "main")
    assert git_info(tmp_path) == {"branch": "main"}


def test_a_password_is_not_recorded(repo: Path) -> None:
    _git(repo, "remote", "add", "origin", "https://user:secret@example.com/a.git")
    assert git_info(repo)["repository_url"] == "https://example.com/a.git"


@pytest.mark.parametrize("content", ["", "gitdir: /nowhere/at/all\n", "\x00\xff"])
def test_a_broken_repository_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content, encoding="utf-8")
    assert git_info(tmp_path) == {}


def test_a_pipe_in_place_of_a_file_is_not_waited_for(repo: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    os.mkfifo(repo / ".git" / "HEAD")
    assert "branch" not in git_info(repo)


@pytest.mark.timeout(10)
def test_files_of_any_size_are_read_in_part(repo: Path) -> None:
    _git(repo, "remote", "add", "origin", "https://example.com/a.git")
    _git(repo, "pack-refs", "--all")
    expected = git_info(repo)
    assert expected["repository_url"] == "https://example.com/a.git"
    with (repo / ".git" / "config").open("ab") as file:
        file.truncate(8 << 30)
    assert git_info(repo) == expected
    with (repo / ".git" / "HEAD").open("ab") as file:
        file.truncate(8 << 30)
    assert git_info(repo) == {**expected, "branch": "main"}


def test_nothing_is_waited_for(repo: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    os.mkfifo(repo / ".git" / "HEAD")
    assert git_info(repo) == {}
