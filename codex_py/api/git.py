"""Git, run such that a repository decides nothing: its hooks and settings start no program.

`repository_root` finds the work tree around a folder, and `git_for` makes the `Git` for it. `Git.output`
runs a command and returns its output, `data` its bytes, and `names` a list of names; they raise a
`CodexError` if the command fails. Commands that look at files need `Git.without_filters`.
`object_contents` reads many files of commits at once, and `linked_work_trees` lists all work trees of
the repository.

`work_tree` makes a tree of the files that are there now, committed or not, and needs a git from `aside`:
that works on a copy of the index, so that the repository stays as it is. `empty_tree` is the tree without
files, to compare with. `for_another_tree` drops the variables that lead git to the tree of a hook.
`uncommitted_changes` is a diff of all that changed since the last commit, and
`git_info` reads the commit, the branch and the address without starting git.
"""

from codex_py.app.patching import uncommitted_changes
from codex_py.config.paths import repository_root
from codex_py.filesystem.git import for_another_tree
from codex_py.patch.git import Git, git_for, linked_work_trees, object_contents
from codex_py.patch.trees import aside, empty_tree, work_tree
from codex_py.rollout.git_info import git_info

__all__ = [
    "Git",
    "aside",
    "empty_tree",
    "for_another_tree",
    "git_for",
    "git_info",
    "linked_work_trees",
    "object_contents",
    "repository_root",
    "uncommitted_changes",
    "work_tree",
]
