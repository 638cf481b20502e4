"""git, in a repository that would have it run something else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.patch.git import Git, find_git, repository_git
from codex_py.programs import programs_outside
from tests.support.hostile_repository import HostileRepository, make_hostile_repository

MISSING = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hostile(tmp_path: Path) -> HostileRepository:
    return make_hostile_repository(tmp_path / "repo", tmp_path / "marker")


@pytest.fixture
def git(hostile: HostileRepository) -> Git:
    variables = {**os.environ, **hostile.environment}
    found = find_git(programs_outside(hostile.root, variables, hostile.root), variables)
    assert not Path(found.program).is_relative_to(hostile.root)
    return found


def test_the_repository_is_as_hostile_as_it_looks(hostile: HostileRepository) -> None:
    subprocess.run(
        ["git", "cat-file", "blob", MISSING],
        cwd=hostile.root,
        capture_output=True,
        check=False,
    )
    assert hostile.marker.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["cat-file", "blob", "HEAD:f"],
        ["cat-file", "blob", MISSING],
        ["merge-file", "-p", "f", "f", "f"],
    ],
    ids=["cat-file", "cat-file of what is missing", "merge-file"],
)
def test_nothing_that_it_names_is_run(
    hostile: HostileRepository, git: Git, words: list[str]
) -> None:
    done = git.run(hostile.root, *words)
    assert (done.stdout == b"a\nb\nc\nd\ne\n") is (MISSING not in words), done.stderr
    assert not hostile.marker.exists()


def test_an_interrupt_of_the_terminal_does_not_reach_one_that_tidies_up(
    tmp_path: Path,
) -> None:
    program = tmp_path / "git"
    program.write_text(
        f"#!{sys.executable}\nimport os\nprint(os.getpgrp())\n", encoding="utf-8"
    )
    program.chmod(0o755)
    assert (
        int(
            Git(str(program), tmp_path, {}, is_shielded=True).output(tmp_path, "status")
        )
        != os.getpgrp()
    )


def _script(path: Path, text: str) -> Git:
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)
    return Git(str(path), path.parent, {})


def test_a_git_that_cannot_be_run_is_told_in_words(tmp_path: Path) -> None:
    works = _script(tmp_path / "git", "#!/bin/sh\n")
    gone = tmp_path / "gone"
    file = tmp_path / "file"
    file.touch()
    for git, folder, cause in (
        (works, gone, "No such file or directory"),
        (works, file, "Not a directory"),
        (
            Git(str(tmp_path / "none"), tmp_path, {}),
            tmp_path,
            "No such file or directory",
        ),
        (
            _script(tmp_path / "odd", "#!/none/sh\n"),
            tmp_path,
            "No such file or directory",
        ),
    ):
        with pytest.raises(CodexError) as caught:
            git.run(folder, "status")
        assert str(caught.value) == f"git could not be run in {folder}: {cause}"


def test_a_git_that_does_not_end_is_told_by_its_command_alone(tmp_path: Path) -> None:
    git = _script(tmp_path / "git", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(CodexError) as caught:
        git.run(tmp_path, "status", timeout_s=0.1)
    assert str(caught.value) == f"git status did not end within 0.1 s in {tmp_path}"


def test_a_commit_of_ours_runs_no_hooks(
    tmp_path: Path, git: Git, hostile: HostileRepository
) -> None:
    (hostile.root / ".gitattributes").unlink()
    done = git.run(
        hostile.root,
        *(
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.invalid",
            "commit",
            "-qam",
            "Second",
        ),
    )
    assert done.returncode == 0, done.stderr
    assert not hostile.marker.exists()


def test_a_git_that_is_linked_into_the_tree_is_none(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "bin"
    tree.mkdir()
    outside.mkdir()
    (tree / "evil").write_text("#!/bin/sh\n", encoding="ascii")
    (tree / "evil").chmod(0o755)
    (outside / "git").symlink_to(tree / "evil")
    for path, why in (
        (str(outside), f"cannot be used: .*, {outside}/git"),
        ("", "is not installed"),
    ):
        variables = {"PATH": path, "HOME": str(tmp_path)}
        with pytest.raises(CodexError, match=f"^git {why}$"):
            find_git(programs_outside(tmp_path, variables, tree), variables)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_repository_of_somebody_else_is_refused_with_the_advice_of_git(
    tmp_path: Path,
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 12345, -1)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    programs = programs_outside(tmp_path / "home", environment, tmp_path)
    with pytest.raises(CodexError) as error:
        repository_git(programs, environment, tmp_path)
    advice = f"git config --global --add safe.directory {tmp_path}"
    assert str(error.value).endswith(f"if you trust it, run: {advice}")


@pytest.mark.parametrize(
    "settings",
    [
        "[include] path = ../pipe\n",
        "[include]\n\tpath = {root}/pipe\n",
        '[INCLUDE]\n\tPath = "~/pipe"\n',
        "[include]\n\tpath = ../link\n",
        "[include]\n\tpath = more\n",
        '[includeIf "gitdir:/"]\n\tpath = ../pipe\n',
        '[includeIf "onbranch:main"]\n\tpath = ../pipe\n',
    ],
)
def test_a_repository_whose_settings_include_a_pipe_is_refused_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    monkeypatch.setattr("codex_py.patch.git._SETTINGS_TIMEOUT_S", 0.5)
    tree = tmp_path / "tree"
    subprocess.run(["git", "init", "-qb", "main", tree], check=True)
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to("pipe")
    (tree / ".git/more").write_text("[include]\n\tpath = ../pipe\n", encoding="ascii")
    with (tree / ".git/config").open("a", encoding="ascii") as file:
        file.write(settings.format(root=tree))
    variables = {**os.environ, "HOME": str(tree)}
    with pytest.raises(CodexError, match="look at the files that they include"):
        repository_git(
            programs_outside(tmp_path / "home", variables, tree), variables, tree
        )


def test_a_repository_whose_settings_include_a_file_is_read(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    subprocess.run(["git", "init", "-qb", "main", tree], check=True)
    (tree / ".git/more").write_text("[user]\n\tname = included\n", encoding="ascii")
    with (tree / ".git/config").open("a", encoding="ascii") as file:
        file.write("[include]\n\tpath = more\n\tpath = missing\n")
    git = repository_git(
        programs_outside(tmp_path / "home", os.environ, tree), os.environ, tree
    )
    assert git.output(tree, "config", "user.name") == "included"
