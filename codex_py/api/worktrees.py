"""Git repositories, and worktrees for work that must not touch the files of the user.

git is started such that no program runs that the repository names.

`project_root` finds the top of a repository. `temporary_name` names a worktree such that
`sweep_temporary` removes it if this process is killed.

`snapshot_of` takes a `BaseSnapshot` of a work tree with its uncommitted changes, without touching it: a
commit with which several agents can begin, each in a worktree, and the names of whose worktrees begin with
its `id`. `keep_worktree` keeps what an agent left and returns the diff, and `apply` brings such a diff into
the user's files, where `codex-py undo` knows it. Nothing of it stays in the repository afterwards, and
`codex-py worktree list` removes the remains of a run that was killed.
"""

from codex_py.app.worktrees.snapshot import BaseSnapshot, snapshot_of
from codex_py.app.worktrees.temporary import sweep_temporary, temporary_name
from codex_py.app.worktrees.worktree import Worktree
from codex_py.config.paths import project_root

__all__ = [
    "BaseSnapshot",
    "Worktree",
    "project_root",
    "snapshot_of",
    "sweep_temporary",
    "temporary_name",
]
