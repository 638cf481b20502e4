import asyncio
import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.user_programs import user_programs
from codex_py.app.worktrees.worktree import Worktree, new_worktree, open_worktree
from codex_py.config.config import load_config
from codex_py.errors import CodexError


@dataclass
class Repository:
    root: Path
    home: Path
    warnings: list[str] = field(default_factory=list[str])

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def git(self, *words: str, folder: Path | None = None) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *identity, *words]
        done = subprocess.run(
            command, cwd=folder or self.root, env=self.environment, capture_output=True, check=True
        )
        return done.stdout.decode()

    @contextmanager
    def tree(self, cwd: Path | None = None, **options: Any) -> Generator[Worktree]:
        made = open_worktree(self.make(cwd, **options), self.warnings.append)
        with asyncio.Runner() as runner:
            try:
                yield runner.run(made.__aenter__())
            finally:
                runner.run(made.__aexit__(None, None, None))

    def make(self, cwd: Path | None = None, **options: Any) -> Callable[[], Worktree]:
        return partial(new_worktree, cwd or self.root, self.home, self.environment, **options)

    @property
    def trees(self) -> int:
        return len(self.git("worktree", "list").splitlines()) - 1


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root, home = tmp_path / "repo", tmp_path / "home"
    (root / "sub").mkdir(parents=True)
    home.mkdir()
    made = Repository(root, home)
    made.git("init", "-q")
    (root / "sub" / "a.txt").write_text("one\n", encoding="utf-8")
    (root / ".gitignore").write_text("*.o\n", encoding="utf-8")
    made.git("add", "-A")
    made.git("commit", "-qm", "one")
    return made


def test_a_worktree_has_the_commit_and_not_the_changes(repository: Repository) -> None:
    (repository.root / "sub" / "a.txt").write_text("changed\n", encoding="utf-8")
    (repository.root / "new.txt").touch()
    with repository.tree(repository.root / "sub") as tree:
        assert tree.cwd == tree.path / "sub"
        assert (tree.cwd / "a.txt").read_text(encoding="utf-8") == "one\n"
        assert not (tree.path / "new.txt").exists()
        folder, name = tree.path.relative_to(repository.home / "worktrees").parts
        assert name == "repo"
        assert len(folder) == 4
        assert int(folder, 16) >= 0
        assert repository.git("rev-parse", "--abbrev-ref", "HEAD", folder=tree.path) == "HEAD\n"
        assert repository.git("status", "--porcelain", folder=tree.path) == ""
        assert tree.is_unchanged()
    assert not [*(repository.home / "worktrees").iterdir()]
    assert repository.trees == 0


def test_files_commits_and_removed_folders_count_as_changes(repository: Repository) -> None:
    with repository.tree() as tree:
        (tree.path / "a.o").touch()
        assert tree.is_unchanged()
        (tree.path / "b.txt").write_text("new\n", encoding="utf-8")
        assert not tree.is_unchanged()
        repository.git("add", "-A", folder=tree.path)
        repository.git("commit", "-qm", "two", folder=tree.path)
        assert not tree.is_unchanged()
        assert f"The changes are in {tree.path}," in tree.remark()
    assert (tree.path / "b.txt").exists()
    assert repository.warnings == [f"The git worktree {tree.path} has changes and is kept."]


def test_a_mode_or_an_empty_file_is_a_change(repository: Repository) -> None:
    with repository.tree() as tree:
        file = next(
            path for path in sorted(tree.path.rglob("*")) if path.is_file() and path.name != ".git"
        )
        file.chmod(0o755)
        assert not tree.is_unchanged()
        file.chmod(0o644)
        assert tree.is_unchanged()
        (tree.path / "__init__.py").touch()
        assert not tree.is_unchanged()


def test_more_changes_than_can_be_compared_are_changes(repository: Repository) -> None:
    with repository.tree() as tree:
        for number in range(501):
            (tree.path / f"{number}.txt").touch()
        assert not tree.is_unchanged()


def test_a_folder_that_the_commit_lacks_is_replaced_by_the_top(repository: Repository) -> None:
    (repository.root / "new").mkdir()
    with repository.tree(repository.root / "new") as tree:
        assert tree.cwd == tree.path


def test_nothing_that_the_repository_names_is_run(repository: Repository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = repository.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    hook.chmod(0o755)
    for name in ("evil", "e=v.il"):
        repository.git("config", f"filter.{name}.clean", "cat")
    (repository.root / ".gitattributes").write_text(
        "a.txt filter=evil\nb.txt filter=e=v.il\n", encoding="utf-8"
    )
    (repository.root / "b.txt").write_text("two\n", encoding="utf-8")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "two")
    config = repository.root / ".git" / "config"
    text = config.read_text(encoding="utf-8")
    for name in ("evil", "e=v.il"):
        program = f"touch {ran}; cat"
        text += f'[filter "{name}"]\nsmudge = "{program}"\nclean = "{program}"\nrequired = true\n'
    text += f'[core]\nfsmonitor = "touch {ran}"\nsshCommand = "touch {ran}"\n'
    config.write_text(text, encoding="utf-8")
    with repository.tree() as tree:
        assert (tree.path / "b.txt").read_text(encoding="utf-8") == "two\n"
        assert not ran.exists()
        assert tree.is_unchanged()
        assert not ran.exists()
        (tree.path / "sub" / "a.txt").write_text("one \n", encoding="utf-8")
        assert not tree.is_unchanged()
        assert not ran.exists()
    assert not ran.exists()


def test_a_submodule_runs_nothing_either(repository: Repository, tmp_path: Path) -> None:
    ran, module = tmp_path / "ran", tmp_path / "module"
    for folder in (module, repository.root / "module"):
        folder.mkdir()
        repository.git("init", "-q", folder=folder)
        (folder / "a.txt").write_text("one\n", encoding="utf-8")
        repository.git("add", "-A", folder=folder)
        repository.git("commit", "-qm", "one", folder=folder)
    repository.git("add", "module")
    repository.git("commit", "-qm", "two")
    for with_changes in (False, True):
        with repository.tree(with_changes=with_changes) as tree:
            inner = tree.path / "module"
            inner.rmdir()
            subprocess.run(["cp", "-r", str(repository.root / "module"), str(inner)], check=True)
            repository.git("config", "filter.evil.clean", f"touch {ran}; cat", folder=inner)
            (inner / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
            (inner / "a.txt").write_text("two\n", encoding="utf-8")
            assert tree.is_unchanged()
            assert not ran.exists()


def test_another_git_folder_in_place_of_its_own_is_not_believed(
    repository: Repository, tmp_path: Path
) -> None:
    with repository.tree() as tree:
        (tree.path / ".git").write_text(f"gitdir: {tmp_path}\n", encoding="utf-8")
        assert tree.is_unchanged()
        (tree.path / "sub" / "a.txt").unlink()
        assert not tree.is_unchanged()


def test_a_folder_that_someone_removed_is_unchanged(repository: Repository) -> None:
    with repository.tree() as tree:
        subprocess.run(["rm", "-r", str(tree.path)], check=True)
        assert tree.is_unchanged()
    assert repository.trees == 0


def test_a_cancellation_leaves_no_worktree(repository: Repository) -> None:
    async def main() -> None:
        made = open_worktree(repository.make(), print)
        entering = asyncio.ensure_future(made.__aenter__())
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()

    asyncio.run(main())
    assert [*(repository.home / "worktrees").iterdir()] == []
    assert repository.trees == 0


def test_without_a_repository_or_a_commit_there_is_no_worktree(
    repository: Repository, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(CodexError, match="needs a git repository"), repository.tree(bare):
        pass
    repository.git("init", "-q", folder=bare)
    with pytest.raises(CodexError, match="needs a commit"), repository.tree(bare):
        pass
    assert not (repository.home / "worktrees").exists()


def test_a_name_is_that_of_the_folder_and_taken_once(repository: Repository) -> None:
    with repository.tree(name="fix-1.2") as tree:
        assert tree.path == repository.home / "worktrees" / "fix-1.2" / "repo"
        with pytest.raises(CodexError, match="there is a worktree 'fix-1\\.2' already"):
            repository.make(name="fix-1.2")()
        assert tree.path.is_dir()


def change_everything(repository: Repository) -> None:
    """One change of each kind, on top of a second commit."""
    root = repository.root
    for name in ("gone", "staged-gone", "renamed", "mode", "both", "turned", "link"):
        (root / name).write_text(f"{name}\n", encoding="utf-8")
    (root / "folder").mkdir()
    (root / "folder" / "inner").write_text("inner\n", encoding="utf-8")
    (root / "pointer").symlink_to("gone")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "two")
    (root / "gone").unlink()
    repository.git("rm", "-q", "staged-gone")
    repository.git("mv", "renamed", "sub/renamed")
    (root / "mode").chmod(0o755)
    (root / "both").write_text("staged\n", encoding="utf-8")
    repository.git("add", "both")
    (root / "both").write_text("unstaged\n", encoding="utf-8")
    (root / "binary").write_bytes(bytes(range(256)) * 10)
    (root / "sub" / "new \u00e9\n.txt").write_text("new\n", encoding="utf-8")
    (root / "turned").unlink()
    (root / "turned").mkdir()
    (root / "turned" / "into").write_text("a folder\n", encoding="utf-8")
    subprocess.run(["rm", "-r", str(root / "folder")], check=True)
    (root / "folder").symlink_to("/etc")
    (root / "pointer").unlink()
    (root / "pointer").mkdir()
    (root / "pointer" / "x").write_text("x\n", encoding="utf-8")
    (root / "link").unlink()
    (root / "link").symlink_to("nowhere/")
    (root / "ignored.o").touch()


def test_changes_of_every_kind_are_carried_over(repository: Repository) -> None:
    change_everything(repository)
    index = repository.root / ".git" / "index"
    before, status = index.read_bytes(), repository.git("status", "--porcelain=v2", "-uall")
    assert index.read_bytes() == before
    repository.git("init", "-q", "nested")
    with repository.tree(repository.root / "sub", with_changes=True) as tree:
        assert index.read_bytes() == before
        found = repository.git("status", "--porcelain=v2", "-uall", folder=tree.path)
        assert found == status
        left, right = (
            {
                path.relative_to(top): (
                    path.lstat().st_mode,
                    os.readlink(path) if path.is_symlink() else path.read_bytes(),  # noqa: PTH115
                )
                for folder, _, names in os.walk(top)
                for path in (Path(folder, name) for name in names)
                if ".git" not in path.parts and path.suffix != ".o"
            }
            for top in (repository.root, tree.path)
        )
        assert left == right
        assert (tree.path / "folder").readlink() == Path("/etc")
        assert not (tree.path / "ignored.o").exists()
        assert tree.is_unchanged()
        assert not (tree.path / ".git" / "codex-py-index").exists()
    # What was carried over is still in the original.
    assert repository.trees == 0
    with repository.tree(with_changes=True) as tree:
        (tree.path / "binary").write_bytes(b"other")
        assert not tree.is_unchanged()
    assert tree.path.is_dir()


def test_what_cannot_be_carried_over_leaves_nothing_behind(repository: Repository) -> None:
    for branch, text in (("one", "1\n"), ("two", "2\n")):
        repository.git("checkout", "-q", "-b", branch, "HEAD~0" if branch == "one" else "HEAD~1")
        (repository.root / "sub" / "a.txt").write_text(text, encoding="utf-8")
        repository.git("commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "one")
    with (
        pytest.raises(CodexError, match="git write-tree failed"),
        repository.tree(with_changes=True),
    ):
        pass
    assert [*(repository.home / "worktrees").iterdir()] == []
    assert repository.trees == 0


def test_a_git_that_fails_half_way_leaves_nothing_behind(repository: Repository) -> None:
    (blob,) = repository.git("rev-parse", "HEAD:sub/a.txt").split()
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CodexError, match="git reset failed"), repository.tree():
        pass
    assert [*(repository.home / "worktrees").iterdir()] == []
    assert repository.trees == 0


def test_the_original_cannot_be_written_to_from_a_worktree(repository: Repository) -> None:
    config = load_config(cwd=repository.root, environment=repository.environment)
    shared = (repository.root / "sub", repository.root.parent, Path("/usr/share"))
    own = replace(config.sandbox_workspace_write, writable_roots=shared)
    config = replace(config, sandbox_workspace_write=own, sandbox_mode="workspace-write")
    with repository.tree() as tree:
        moved = tree.config(config, {"TMPDIR": str(repository.root.parent)})
        policy = moved.sandbox_policy()
        assert policy.writable_roots == (tree.path, Path("/usr/share"))
        assert policy.exclude_tmpdir_env_var
        assert (moved.cwd, moved.project_root) == (tree.path, tree.path)
        barred = user_programs(moved, repository.environment).barred
        assert {tree.path, repository.root} <= {*barred}
