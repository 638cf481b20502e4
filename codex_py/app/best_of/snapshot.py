"""A private commit of the present work tree: several attempts begin with it, and one returns to it.

In the repository, only references of our own and registered worktrees change. They are removed with
the run.
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

_REFERENCES: Final = "refs/codex-py/best/"
_AUTHOR: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "codex-py"), ("EMAIL", "codex-py@localhost"))
}


@frozen
class BaseSnapshot:
    id: str
    """The prefix of the worktrees' names."""
    git: Git
    root: Path
    tree: str
    """The id of a git tree with all files except ignored ones."""
    commit: str = ""

    def keep(self, name: str, tree: str, *parents: str) -> str:
        """Make a commit of a tree, which is kept until the run ends.

        Returns the id of the commit.
        """
        git = replace(self.git, variables={**self.git.variables, **_AUTHOR})
        words = [word for parent in parents for word in ("-p", parent)]
        commit = git.output(
            self.root, "commit-tree", tree, *words, "-m", "codex-py exec --best-of"
        )
        git.output(self.root, "update-ref", f"{_REFERENCES}{self.id}/{name}", commit)
        return commit

    def changed(self, name: str, worktree: Worktree) -> tuple[str, bytes]:
        """Return the git tree of a worktree, which is kept, and its diff. Raises a `CodexError`."""
        with copied_index(worktree.git, worktree.path) as git:
            tree = work_tree(git, worktree.path)
        self.keep(name, tree, self.commit)
        return tree, diff_between(self.git, self.root, self.tree, tree)

    def apply(
        self, diff: bytes, config: Config, environment: Mapping[str, str]
    ) -> Committed:
        """Apply a change to the user's tree, as one step of the journal.

        Later changes there are merged.

        Raises:
            PatchError: the change does not fit, and nothing was written.
        """
        journal = Journal(config.home, config.cwd)
        journal.recover()
        merging = git_three_way(self.root, environment)
        plan = plan_unified(diff, self.root, strip=1, strict=True, three_way=merging)
        if plan.conflicts:
            raise PatchError(
                f"it conflicts with changes in {plan.conflicts[0]}", kind="match"
            )
        is_free = config.sandbox_policy().mode == "danger-full-access"
        return plan.checked(None if is_free else writable_under([self.root])).commit(
            journal
        )


@contextmanager
def snapshot_of(
    root: Path, config: Config, environment: Mapping[str, str]
) -> Generator[BaseSnapshot]:
    """Take a snapshot of a work tree, without denied files.

    At the end, all references of the run are removed.

    Raises a `CodexError` if git is not installed, or fails, as it does while a merge has conflicts.
    """
    git = sweep(root, config.home, environment)
    refuses = denials_of(config.files).refuses
    with aside(git.without_filters(root), keeps_objects=True) as copy:
        tree = work_tree(copy, root, lambda name: refuses(root / name))
    taken = BaseSnapshot(f"{process_name()}-{secrets.token_hex(3)}", git, root, tree)
    head = (
        git.run(root, "rev-parse", "--verify", "-q", "HEAD^{commit}")
        .stdout.decode()
        .split()
    )
    try:
        yield replace(taken, commit=taken.keep("base", taken.tree, *head))
    finally:
        _remove_references(git, root, taken.id)


def sweep(root: Path, home: Path, environment: Mapping[str, str]) -> Git:
    """Remove the remains of killed runs from a repository.

    Returns its git. Raises a `CodexError` if git fails.
    """
    git = require_git(home, environment, root)
    names = git.output(
        root, "for-each-ref", "--format=%(refname)", _REFERENCES
    ).splitlines()
    for name in {name.removeprefix(_REFERENCES).partition("/")[0] for name in names}:
        if not is_over(name):
            continue
        worktrees = run_worktree(git, root, "list", "--porcelain").splitlines()
        for path in [
            Path(line[9:]) for line in worktrees if line.startswith("worktree ")
        ]:
            if path.parent.name.startswith(f"{name}-") and git.own_repository.has_tree(
                path
            ):
                for folder in (path.parent, store_path(home, path)):
                    shutil.rmtree(folder, ignore_errors=True)
                # Twice `--force`: the worktree is locked if a kill interrupted its creation.
                run_worktree(git, root, "remove", "--force", "--force", str(path))
        for folder in worktrees_folder(home).glob(f"{name}-*"):
            shutil.rmtree(folder, ignore_errors=True)
        _remove_references(git, root, name)
    return git


def _remove_references(git: Git, root: Path, name: str) -> None:
    git = replace(git, is_shielded=True)
    prefix = f"{_REFERENCES}{name}/"
    deletions = git.output(root, "for-each-ref", "--format=delete %(refname)", prefix)
    git.output(
        root,
        "update-ref",
        "--stdin",
        stdin=f"{deletions}\n".encode() if deletions else b"",
    )
