"""Tests `app/worktrees/changes.py` and `app/worktrees/worktree.py`."""

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
from codex_py.programs import programs_outside


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
            command,
            cwd=folder or self.root,
            env=self.environment,
            capture_output=True,
            check=True,
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
        return partial(
            new_worktree, cwd or self.root, self.home, self.environment, **options
        )

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
        assert (
            repository.git("rev-parse", "--abbrev-ref", "HEAD", folder=tree.path)
            == "HEAD\n"
        )
        assert repository.git("status", "--porcelain", folder=tree.path) == ""
        assert not tree.unsaved()
    assert not [*(repository.home / "worktrees").iterdir()]
    assert repository.trees == 0


def test_files_commits_and_removed_folders_count_as_changes(
    repository: Repository,
) -> None:
    with repository.tree() as tree:
        (tree.path / "a.o").touch()
        assert not tree.unsaved()
        (tree.path / "b.txt").write_text("new\n", encoding="utf-8")
        assert tree.unsaved()
        repository.git("add", "-A", folder=tree.path)
        repository.git("commit", "-qm", "two", folder=tree.path)
        assert tree.unsaved()
        assert f"The changes are in {tree.path}," in tree.remark()
    assert (tree.path / "b.txt").exists()
    assert repository.warnings == [
        f"The git worktree {tree.path} has changes and is kept."
    ]


def test_a_mode_or_an_empty_file_is_a_change(repository: Repository) -> None:
    with repository.tree() as tree:
        file = next(
            path
            for path in sorted(tree.path.rglob("*"))
            if path.is_file() and path.name != ".git"
        )
        file.chmod(0o755)
        assert tree.unsaved()
        file.chmod(0o644)
        assert not tree.unsaved()
        (tree.path / "__init__.py").touch()
        assert tree.unsaved()


def test_more_changes_than_can_be_compared_are_changes(repository: Repository) -> None:
    with repository.tree() as tree:
        for number in range(501):
            (tree.path / f"{number}.txt").touch()
        assert tree.unsaved()


def test_a_folder_that_the_commit_lacks_is_replaced_by_the_top(
    repository: Repository,
) -> None:
    (repository.root / "new").mkdir()
    with repository.tree(repository.root / "new") as tree:
        assert tree.cwd == tree.path


def test_nothing_that_the_repository_names_is_run(
    repository: Repository, tmp_path: Path
) -> None:
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
        assert not tree.unsaved()
        assert not ran.exists()
        (tree.path / "sub" / "a.txt").write_text("one \n", encoding="utf-8")
        assert tree.unsaved()
        assert not ran.exists()
    assert not ran.exists()


def test_a_submodule_runs_nothing_either(
    repository: Repository, tmp_path: Path
) -> None:
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
            subprocess.run(
                ["cp", "-r", str(repository.root / "module"), str(inner)], check=True
            )
            repository.git(
                "config", "filter.evil.clean", f"touch {ran}; cat", folder=inner
            )
            (inner / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
            (inner / "a.txt").write_text("two\n", encoding="utf-8")
            assert tree.unsaved() == "changes in the submodule module"
            assert not ran.exists()


def test_another_git_folder_in_place_of_its_own_is_not_believed(
    repository: Repository, tmp_path: Path
) -> None:
    with repository.tree() as tree:
        (tree.path / ".git").write_text(f"gitdir: {tmp_path}\n", encoding="utf-8")
        assert not tree.unsaved()
        (tree.path / "sub" / "a.txt").unlink()
        assert tree.unsaved()


HIDDEN = {
    "a repository in the tree": (
        "git init -q n; echo precious > n/y",
        "a repository of its own in n",
    ),
    "one with a commit in an ignored folder": (
        "echo x > s.o; mkdir -p a.o/b; cd a.o/b; git init -q c; cd c; git commit -qm y --allow-empty",
        "a repository of its own in a.o/b/c",
    ),
    "one around tracked files": ("git init -q sub", "a repository of its own in sub"),
    "one in place of its own": ("rm .git; git init -q", "a repository of its own in ."),
    "an edit of a file assumed unchanged": (
        "git update-index --assume-unchanged sub/a.txt; echo 2 > sub/a.txt",
        "changes",
    ),
    "an edit of a skipped file": (
        "git update-index --skip-worktree sub/a.txt; echo 2 > sub/a.txt",
        "changes",
    ),
    "another line ending": ("printf 'one\\r\\n' > sub/a.txt", "changes"),
    "staged contents": ("echo 2 > b; git add b; rm b", "changes"),
    "an edit within the second of the checkout": (
        "touch -r sub/a.txt t; echo two > sub/a.txt; sed -i s/two/eno/ sub/a.txt; touch -r t sub/a.txt; rm t",
        "changes",
    ),
    "a commit that was reset": (
        "echo 2 > b; git add b; git commit -qm two; git reset -q --hard HEAD~1",
        "commits that no branch has",
    ),
    "a commit that a reference of the worktree alone has": (
        "git update-ref refs/worktree/x $(git commit-tree -m x HEAD^{tree})",
        "commits that no branch has",
    ),
    "a stash": ("echo 2 > sub/a.txt; git stash -q", "a stash"),
    "a merge": (
        "git checkout -q -b x; git commit -qm x --allow-empty; git checkout -q --detach HEAD~1;"
        "git merge -q --no-commit --no-ff x",
        "a merge, rebase or bisection in progress",
    ),
    "a file in the folder of a submodule": ("echo x > module/x", "changes"),
    "a file in place of a submodule": ("rmdir module; echo x > module", "changes"),
    "a commit in a submodule": (
        "git -C $MODULE branch -f b; rmdir module; git clone -q $MODULE module; cd module;"
        "git checkout -q --detach; git commit -qm x --allow-empty; git checkout -q b",
        "commits that no branch has in the submodule module",
    ),
    "a repository in a submodule": (
        "rmdir module; git clone -q $MODULE module; git init -q module/n",
        "a repository of its own in n in the submodule module",
    ),
}


@pytest.mark.parametrize("kind", ["separate", "linked", "submodule"])
def test_programs_of_the_tree_that_a_worktree_is_made_from_are_not_found(
    repository: Repository, kind: str
) -> None:
    # Other places of a test are in the folder for temporary files, which is barred anyway.
    root = repository.home / "tree/inner"
    root.parent.mkdir()
    match kind:
        case "separate":
            repository.git(
                "clone", f"--separate-git-dir={repository.home}/store", ".", str(root)
            )
        case "linked":
            repository.git("worktree", "add", str(root))
        case _:
            repository.git("init", str(root.parent))
            words = (
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "add",
                str(repository.root),
            )
            repository.git(*words, "inner", folder=root.parent)
    with repository.tree(root) as tree:
        outside = programs_outside(repository.home, repository.environment, tree.path)
        may_use = outside.test()
        assert not may_use(root / ".venv/bin")
        assert may_use(root.parent / ".venv/bin") is (kind != "submodule")


@pytest.mark.parametrize(("command", "unsaved"), HIDDEN.values(), ids=HIDDEN)
def test_a_worktree_is_kept_for_work_that_git_status_does_not_show(
    repository: Repository, command: str, unsaved: str
) -> None:
    add_submodule(repository)
    with repository.tree() as tree:
        script(repository, tree, command)
        assert tree.unsaved() == unsaved
        assert f"The changes are in {tree.path}," in tree.remark()
        with pytest.raises(CodexError, match=f"it has {unsaved}"):
            tree.remove()
    assert repository.warnings == [
        f"The git worktree {tree.path} has {unsaved} and is kept."
    ]
    assert tree.path.is_dir()


@pytest.mark.parametrize(
    "command",
    [
        "rmdir module; git clone -q $MODULE module",
        "mkdir -p sub/n/.git",
        "git checkout -q -b x; git commit -qm x --allow-empty; git checkout -q --detach HEAD~1",
        "touch sub/a.txt; git update-index --assume-unchanged sub/a.txt",
        "git update-index --skip-worktree sub/a.txt; rm sub/a.txt",
        "git -C $MODULE stash; cd $ROOT; echo 2 > sub/a.txt; git stash -q",
        "mkdir -p node_modules/n; touch node_modules/n/a.o",
    ],
)
def test_a_worktree_is_removed_if_everything_is_elsewhere_too(
    repository: Repository, command: str
) -> None:
    add_submodule(repository)
    with repository.tree() as tree:
        script(repository, tree, command)
        assert tree.unsaved() == ""
    assert (repository.warnings, repository.trees) == ([], 0)


def test_staged_changes_are_compared_with_those_that_were_carried_over(
    repository: Repository,
) -> None:
    (repository.root / "sub" / "a.txt").write_text("two\n", encoding="utf-8")
    with repository.tree(with_changes=True) as tree:
        script(repository, tree, "echo 3 > sub/a.txt; git add .; echo two > sub/a.txt")
        assert tree.unsaved() == "changes"


def test_a_tree_that_is_written_to_while_it_is_removed_is_kept(
    repository: Repository,
) -> None:
    """git reads a file of the repository that is a pipe, and so waits for the writer, which writes once the tree is
    moved."""
    pipe = repository.root / ".git" / "info" / "exclude"
    with repository.tree() as tree:
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        aside = tree.path.with_name(".removed")
        write = f"while :; do [ -d {aside} ] && echo 2 > new.txt; : > {pipe}; done"
        writer = subprocess.Popen(["sh", "-c", write], cwd=tree.path)
    writer.kill()
    writer.wait()
    assert repository.warnings == [
        f"The git worktree {tree.path} could not be removed: it has changes"
    ]
    assert (tree.path / "new.txt").read_text(encoding="utf-8") == "2\n"


def test_folders_that_are_too_deep_to_be_removed_are_told(
    repository: Repository,
) -> None:
    with repository.tree() as tree:
        folder = os.open(tree.path, os.O_RDONLY)
        for _ in range(1100):
            os.mkdir("d", dir_fd=folder)
            inner = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
    (warning,) = repository.warnings
    assert warning.startswith(f"The git worktree {tree.path} could not be removed: ")
    subprocess.run(["rm", "-r", str(tree.path.parent)], check=True)


def test_ignored_files_that_go_with_a_worktree_are_named(
    repository: Repository,
) -> None:
    with repository.tree() as tree:
        script(
            repository,
            tree,
            "touch a.o; mkdir b.o __pycache__; touch b.o/x __pycache__/x.o",
        )
    assert repository.warnings == [
        f"The git worktree {tree.path} was removed, and with it ignored files: a.o, b.o/"
    ]


def script(repository: Repository, tree: Worktree, command: str) -> None:
    variables = repository.environment | {
        "MODULE": str(repository.root.parent / "module"),
        "ROOT": str(repository.root),
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "a",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "a@b",
    }
    subprocess.run(["sh", "-ec", command], cwd=tree.path, env=variables, check=True)


def add_submodule(repository: Repository) -> None:
    """Commit a submodule `module`, whose repository is beside the one of the tests."""
    module = repository.root.parent / "module"
    module.mkdir()
    repository.git("init", "-q", folder=module)
    repository.git("commit", "-qm", "one", "--allow-empty", folder=module)
    repository.git("clone", "-q", str(module), "module")
    repository.git("add", "module")
    repository.git("commit", "-qm", "two")


def test_a_folder_that_someone_removed_is_nothing_to_keep(
    repository: Repository,
) -> None:
    with repository.tree() as tree:
        subprocess.run(["rm", "-r", str(tree.path)], check=True)
        assert not tree.unsaved()
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
    with (
        pytest.raises(CodexError, match="needs a git repository"),
        repository.tree(bare),
    ):
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
    before, status = (
        index.read_bytes(),
        repository.git("status", "--porcelain=v2", "-uall"),
    )
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
        assert not tree.unsaved()
        assert not (tree.path / ".git" / "codex-py-index").exists()
    # What was carried over is still in the original.
    assert repository.trees == 0
    with repository.tree(with_changes=True) as tree:
        (tree.path / "binary").write_bytes(b"other")
        assert tree.unsaved()
    assert tree.path.is_dir()


def test_a_worktree_that_cannot_be_filled_leaves_nothing_behind(
    repository: Repository,
) -> None:
    for branch, text in (("one", "1\n"), ("two", "2\n")):
        repository.git(
            "checkout", "-q", "-b", branch, "HEAD~0" if branch == "one" else "HEAD~1"
        )
        (repository.root / "sub" / "a.txt").write_text(text, encoding="utf-8")
        repository.git("commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "one")
    with (
        pytest.raises(CodexError, match="`git merge` with conflicts is in progress"),
        repository.tree(with_changes=True),
    ):
        pass
    assert [*(repository.home / "worktrees").iterdir()] == []
    assert repository.trees == 0


def test_a_git_that_fails_half_way_leaves_nothing_behind(
    repository: Repository,
) -> None:
    (blob,) = repository.git("rev-parse", "HEAD:sub/a.txt").split()
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CodexError, match="git reset failed"), repository.tree():
        pass
    assert [*(repository.home / "worktrees").iterdir()] == []
    assert repository.trees == 0


def test_the_original_cannot_be_written_to_from_a_worktree(
    repository: Repository,
) -> None:
    config = load_config(cwd=repository.root, environment=repository.environment)
    shared = (repository.root / "sub", repository.root.parent, Path("/usr/share"))
    own = replace(config.sandbox_workspace_write, writable_roots=shared)
    config = replace(
        config, sandbox_workspace_write=own, sandbox_mode="workspace-write"
    )
    with repository.tree() as tree:
        moved = tree.config(config, {"TMPDIR": str(repository.root.parent)})
        policy = moved.sandbox_policy()
        assert policy.writable_roots == (tree.path, Path("/usr/share"))
        assert policy.exclude_tmpdir_env_var
        assert (moved.cwd, moved.project_root) == (tree.path, tree.path)
        barred = user_programs(moved, repository.environment).folders
        assert {tree.path, repository.root} <= {*barred}


@pytest.fixture
def wide(repository: Repository) -> Repository:
    """More folders to leave out of a sparse checkout."""
    for name in ("a/x", "b/y", "c/d/z"):
        (repository.root / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.root / name).write_text(f"{name}\n", encoding="utf-8")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "two")
    return repository


@pytest.mark.parametrize(
    "words",
    [
        ["--cone", "a"],
        ["--cone", "--sparse-index", "a"],
        ["--no-cone", "/a/", "!/c/"],
        ["--no-cone", "x"],
        ["--cone", "c/d", "b"],
    ],
)
@pytest.mark.parametrize("change", ["", "echo n >> {}; echo new > new", "rm {}"])
def test_changes_in_a_sparse_checkout_are_carried_over_sparsely(
    wide: Repository, words: list[str], change: str
) -> None:
    wide.git("sparse-checkout", "set", *words)
    changed = next(name for name in ("a/x", "c/d/z") if (wide.root / name).exists())
    subprocess.run(["sh", "-c", change.format(changed)], cwd=wide.root, check=True)
    before = [
        wide.git(*listed) for listed in (["ls-files", "-t"], ["status", "--porcelain"])
    ]
    with wide.tree(with_changes=True) as tree:
        for listed, said in zip(
            (["ls-files", "-t"], ["status", "--porcelain"]), before, strict=True
        ):
            assert wide.git(*listed, folder=tree.path) == said
        files = [
            path
            for path in wide.root.rglob("*")
            if path.is_file() and ".git" not in path.parts
        ]
        assert all((tree.path / path.relative_to(wide.root)).exists() for path in files)
        assert tree.unsaved() == ""
    assert not wide.warnings
    assert wide.trees == 0


def test_a_file_outside_of_a_sparse_checkout_that_is_there_is_carried_over(
    wide: Repository,
) -> None:
    wide.git("sparse-checkout", "set", "a")
    (wide.root / "b").mkdir()
    (wide.root / "b/y").write_text("mine\n", encoding="utf-8")
    wide.git("status")
    with wide.tree(with_changes=True) as tree:
        assert (tree.path / "b/y").read_text(encoding="utf-8") == "mine\n"
        assert not (tree.path / "c").exists()
        assert wide.git("status", "--porcelain", folder=tree.path) == " M b/y\n"


@pytest.mark.parametrize("value", ["true", "input"])
def test_a_guard_of_line_ends_stops_no_copy(repository: Repository, value: str) -> None:
    path = repository.root / "sub/a.txt"
    repository.git("config", "core.autocrlf", value)
    repository.git("config", "core.safecrlf", "true")
    path.write_bytes(b"one\ntwo\r\n" if value == "input" else b"one\ntwo\n")
    (repository.root / "new.txt").write_bytes(b"a\nb\r\n")
    with repository.tree(with_changes=True) as tree:
        assert b"two" in (tree.path / "sub/a.txt").read_bytes()
        assert (tree.path / "new.txt").exists()


def _conflict(repository: Repository, *words: str) -> None:
    """Run a command that ends with a conflict in `sub/a.txt`."""
    path = repository.root / "sub/a.txt"
    main = repository.git("branch", "--show-current").strip()
    repository.git("checkout", "-qb", "side")
    path.write_text("side\n", encoding="utf-8")
    repository.git("commit", "-qam", "side")
    patch = repository.git("format-patch", "-1", "--stdout")
    (repository.home / "mail").write_text(patch, encoding="utf-8")
    repository.git("checkout", "-q", main)
    path.write_text("main\n", encoding="utf-8")
    if words[0] == "stash":
        repository.git("stash")
        path.write_text("other\n", encoding="utf-8")
    repository.git("commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        repository.git(*(word.format(mail=repository.home / "mail") for word in words))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["merge", "side"], "merge"),
        (["rebase", "side"], "rebase"),
        (["rebase", "--apply", "side"], "rebase"),
        (["cherry-pick", "side"], "cherry-pick"),
        (["revert", "HEAD~1"], "revert"),
        (["am", "-3", "{mail}"], "am"),
        (["stash", "pop"], None),
    ],
)
def test_changes_with_conflicts_are_refused_by_the_name_of_what_is_in_progress(
    repository: Repository, words: list[str], what: str | None
) -> None:
    if what == "revert":
        for text in ("two\n", "three\n"):
            (repository.root / "sub/a.txt").write_text(text, encoding="utf-8")
            repository.git("commit", "-qam", text)
    _conflict(repository, *words)
    state = repository.git("status")
    progress = (
        f"a `git {what}` with conflicts is in progress"
        if what
        else "there are conflicts"
    )
    with pytest.raises(CodexError) as told, repository.tree(with_changes=True):
        pass
    assert progress in str(told.value)
    assert "sub/a.txt" in str(told.value)
    assert "\n" not in str(told.value)
    assert repository.trees == 0
    assert repository.git("status") == state
    with repository.tree() as tree:
        assert tree.path.is_dir()
