"""Git repositories, and worktrees for work that must not touch the files of the user.

git is started such that no program runs that the repository names.

`project_root` finds the top of a repository. `temporary_name` names a worktree such that
`sweep_temporary` removes it if this process is killed.
"""

from codex_py.app.worktrees.temporary import sweep_temporary, temporary_name
from codex_py.app.worktrees.worktree import Worktree
from codex_py.config.paths import project_root

__all__ = ["Worktree", "project_root", "sweep_temporary", "temporary_name"]
