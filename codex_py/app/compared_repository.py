"""Compares the work tree of a repository with an earlier state of it, as git sees both.

Every change of a file counts, whoever made it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from codex_py.app.options import SessionSetup
from codex_py.config.paths import project_root
from codex_py.errors import UsageError
from codex_py.filesystem.denials import denials_of
from codex_py.patch.git import Git, repository_git
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.patch.undo.copies.changes import identity, open_for_writing
from codex_py.programs import programs_outside


class RepositoryChanges(NamedTuple):
    """The changes of a work tree since an earlier state."""

    diff: bytes
    """The diff as git writes it."""
    files: list[dict[str, str | None]]
    """The changed files: `path`, and the names of their blobs `before` and `after`. A blob is None if
    there is no file."""


class EarlierTree(NamedTuple):
    """A state of the work tree to compare with; see `ComparedRepository.remember`."""

    git: Git
    tree: str
    head: str | None
    """The commit of HEAD; None in a repository without one."""


class ComparedRepository:
    """Compares the work tree of a session's repository.

    Raises:
        CodexError: git is not installed.
        UsageError: the session is in no git repository.
    """

    def __init__(self, setup: SessionSetup) -> None:
        cwd = setup.config.cwd
        root = project_root(cwd, (".git",))
        if root is None:
            raise UsageError(f"{cwd} is in no git repository")
        self._top: Path = root
        programs = programs_outside(setup.config.home, setup.environment, root)
        self._git = repository_git(programs, setup.environment, root)
        self._setup = setup

    @contextmanager
    def remember(self) -> Generator[EarlierTree]:
        """Remember the present state of the work tree, to compare with it within the context."""
        # Nothing is written to the repository.
        with aside(self._git) as git:
            done = git.run(self._top, "rev-parse", "--verify", "--quiet", "HEAD")
            head = done.stdout.decode().strip()
            yield EarlierTree(git, self._tree(git), head or None)

    def changes(self, earlier: EarlierTree) -> RepositoryChanges:
        """Return the changes since the earlier state."""
        git = earlier.git
        after = self._tree(git)
        options = ("-r", "-z", "--no-renames", "--ignore-submodules=all")
        fields = git.names(self._top, "diff-tree", *options, earlier.tree, after)
        files: list[dict[str, str | None]] = []
        # The modes and blobs of a file and its path take turns.
        pairs = zip(fields[::2], fields[1::2], strict=True)
        for blobs, path in pairs:
            _, _, old_id, new_id, *_ = blobs.split()
            old = _blob(old_id)
            new = _blob(new_id)
            files.append({"path": path, "before": old, "after": new})
        diff = diff_between(git, self._top, earlier.tree, after)
        return RepositoryChanges(diff, files)

    def _tree(self, git: Git) -> str:
        """Return the name of a git tree with the present files."""
        own = open_for_writing()
        # Commands may have changed the configuration meanwhile.
        git = git.without_filters(self._top)
        # A log file that our own output is redirected to is not a change.
        denials = denials_of(self._setup.config.files)

        def is_left_out(name: str) -> bool:
            path = self._top / name
            return identity(path) in own or denials.refuses(path)

        return work_tree(git, self._top, is_left_out)


def _blob(name: str) -> str | None:
    """Return the name of a blob as git prints it.

    A name of zeros means that there is no file, and becomes None.
    """
    if name.strip("0"):
        return name
    return None
