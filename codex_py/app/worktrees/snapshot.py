"""Takes a snapshot of a work tree for agents that work beside it, and applies the diff of one to it.

The snapshot is a private commit, with which every agent begins. In the repository, only our own
references and the registered worktrees change. They are removed at the end of the run.
"""

import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.patching import git_three_way
from codex_py.app.worktrees.changes import copied_index
from codex_py.app.worktrees.worktree import Worktree, require_git, run_worktree
from codex_py.config.config import Config
from codex_py.config.paths import worktrees_folder
from codex_py.errors import PatchError
from codex_py.filesystem.denials import denials_of
from codex_py.patch.files.commit import Committed
from codex_py.patch.files.journal import Journal
from codex_py.patch.git import Git
from codex_py.patch.plan import writable_under
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.patch.undo.copies.store import store_path
from codex_py.patch.unified.plan import plan_unified
from codex_py.process.identity import is_over, process_name
from codex_py.protocol.frozen import frozen

_REFERENCES: Final = "refs/codex-py/"
_AUTHOR: Final = {
    "GIT_AUTHOR_NAME": "codex-py",
    "GIT_AUTHOR_EMAIL": "codex-py@localhost",
    "GIT_COMMITTER_NAME": "codex-py",
    "GIT_COMMITTER_EMAIL": "codex-py@localhost",
}


@frozen
class BaseSnapshot:
    id: str
    """The prefix for the names of the worktrees, by which the remains of a killed run are found."""
    purpose: str
    """A word for the names of the references."""
    message: str
    """The message of the commits."""
    git: Git
    root: Path
    tree: str
    """The id of a git tree with all files except ignored ones."""
    commit: str = ""

    def keep(
        self,
        name: str,
        tree: str,
        *parents: str,
    ) -> str:
        """Make a commit of a tree, which is kept until the run ends.

        Returns the id of the commit.
        """
        variables = {**self.git.variables, **_AUTHOR}
        git = replace(self.git, variables=variables)
        options = ["-m", self.message]
        for parent in parents:
            options += ["-p", parent]
        commit = git.output(self.root, "commit-tree", tree, *options)
        reference = f"{_REFERENCES}{self.purpose}/{self.id}/{name}"
        git.output(self.root, "update-ref", reference, commit)
        return commit

    def keep_worktree(self, name: str, worktree: Worktree) -> tuple[str, bytes]:
        """Keep the present contents of a worktree until the run ends.

        Returns the id of their git tree, and the diff from the snapshot to them. Raises a
        `CodexError` if git fails.
        """
        with copied_index(worktree.git, worktree.path) as git:
            tree = work_tree(git, worktree.path)
        self.keep(name, tree, self.commit)
        return tree, diff_between(self.git, self.root, self.tree, tree)

    def apply(
        self, diff: bytes, config: Config, environment: Mapping[str, str]
    ) -> Committed:
        """Apply a diff from the snapshot to the user's tree, as one step of the journal.

        It is merged with changes that were made there after the snapshot. The `notes` of the result
        tell the user about it.

        Raises:
            PatchError: the change does not fit, and nothing was written.
        """
        journal = Journal(config.home, config.cwd)
        journal.recover()
        merging = git_three_way(self.root, environment)
        plan = plan_unified(
            diff,
            self.root,
            strip=1,
            strict=True,
            three_way=merging,
        )
        if plan.conflicts:
            raise PatchError(
                f"it conflicts with changes in {plan.conflicts[0]}", kind="match"
            )
        if config.sandbox_policy().mode == "danger-full-access":
            may_write = None
        else:
            may_write = writable_under([self.root])
        return plan.checked(may_write).commit(journal)


@contextmanager
def snapshot_of(
    root: Path,
    config: Config,
    environment: Mapping[str, str],
    *,
    purpose: str,
    message: str,
) -> Generator[BaseSnapshot]:
    """Take a snapshot of a work tree, without denied files.

    At the end, all references of the run are removed. The remains of runs that were killed are
    removed at the start, whatever their purpose was.

    Args:
        purpose: a word for the names of the references.
        message: the message of the commits.

    Raises:
        CodexError: git is not installed, or fails, as it does while a merge has conflicts.
    """
    git = require_git(config.home, environment, root)
    _sweep(git, root, config.home)
    refuses = denials_of(config.files).refuses
    with aside(git.without_filters(root), keeps_objects=True) as copy:
        tree = work_tree(copy, root, lambda name: refuses(root / name))
    name = f"{process_name()}-{secrets.token_hex(3)}"
    taken = BaseSnapshot(name, purpose, message, git, root, tree)
    # Without a commit, git prints nothing, and the snapshot has no parent.
    head = git.run(root, "rev-parse", "--verify", "-q", "HEAD^{commit}")
    parents = head.stdout.decode().split()
    try:
        commit = taken.keep("base", tree, *parents)
        yield replace(taken, commit=commit)
    finally:
        _remove_references(git, root, f"{purpose}/{name}")


def sweep(
    root: Path,
    home: Path,
    environment: Mapping[str, str],
) -> None:
    """Remove the remains of killed runs from a repository. Raises a `CodexError` if git fails."""
    _sweep(require_git(home, environment, root), root, home)


def _sweep(
    git: Git,
    root: Path,
    home: Path,
) -> None:
    listed = git.output(root, "for-each-ref", "--format=%(refname)", _REFERENCES)
    references = [line.removeprefix(_REFERENCES) for line in listed.splitlines()]
    runs = {tuple(reference.split("/")[:2]) for reference in references}
    for purpose, run in runs:
        if is_over(run):
            _remove_worktrees(git, root, home, run)
            _remove_references(git, root, f"{purpose}/{run}")


def _remove_worktrees(
    git: Git,
    root: Path,
    home: Path,
    run: str,
) -> None:
    """Remove the worktrees of a run, the ones that git knows and those of which only a folder is left."""
    for path in _worktree_paths(git, root):
        is_of_run = path.parent.name.startswith(f"{run}-")
        if is_of_run and git.own_repository.has_tree(path):
            shutil.rmtree(path.parent, ignore_errors=True)
            shutil.rmtree(store_path(home, path), ignore_errors=True)
            # Twice `--force`: the worktree is locked if a kill interrupted its creation.
            run_worktree(git, root, "remove", "--force", "--force", str(path))
    for folder in worktrees_folder(home).glob(f"{run}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _worktree_paths(git: Git, root: Path) -> list[Path]:
    lines = run_worktree(git, root, "list", "--porcelain").splitlines()
    mark = "worktree "
    return [Path(line.removeprefix(mark)) for line in lines if line.startswith(mark)]


def _remove_references(
    git: Git,
    root: Path,
    name: str,
) -> None:
    git = replace(git, is_shielded=True)
    prefix = f"{_REFERENCES}{name}/"
    deletions = git.output(root, "for-each-ref", "--format=delete %(refname)", prefix)
    if deletions:
        git.output(root, "update-ref", "--stdin", stdin=f"{deletions}\n".encode())
