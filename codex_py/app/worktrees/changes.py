"""Copies uncommitted changes into a git worktree, and finds the work that would be lost with it.

`git status` is not enough for that. It shows no repository inside another, no file that the index
hides, and no commit that only the reflog holds, which is removed with the worktree.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.filesystem.denials import denials_of
from codex_py.patch.git import Git, for_tree
from codex_py.patch.trees import aside, work_tree
from codex_py.protocol.file_rules import FileRules
from codex_py.streams.terminal import some_of

_IN_PROGRESS = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
"""Files in a repository's folder while a command is in progress; see gitrepository-layout(5)."""
_COMMANDS = {
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "rebase-merge": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
"""The commands that leave such files, the surest sign first."""
_REMAINING = ("--exclude=refs/worktree/*", "--exclude=refs/bisect/*", "--all")
"""References that remain without the worktree, as options of `git rev-list`."""
_STASH = re.compile(rb"^(\d+) (?:WIP on|On) \(no branch\): ", re.MULTILINE)
"""Matches the time of a stash that was made with HEAD detached, as in a worktree."""
_REBUILT = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"})
"""The names of folders that tools make again."""


def carry_over(
    source: Git,
    root: Path,
    git: Git,
    path: Path,
    rules: FileRules,
) -> tuple[str, str]:
    """Copy changed, new and deleted files, and the index, from a work tree into a worktree.

    Returns the ids of two trees: the index, and all files.

    The original stays as it is, and so does its index. Ignored files, changes in submodules,
    repositories in the tree, and denied files are left out. Files go through git, like the files of
    a commit. Files that a sparse checkout leaves out are left out of the copy.

    Args:
        source: the git for the original, whose top is `root`.
        git: the git for the worktree, whose top is `path`.
        rules: the rules with the denied files.

    Raises:
        CodexError: there are conflicts, or git fails.
        OSError: the index cannot be copied.
    """
    with copied_index(source, root) as copied:
        _refuse_conflicts(copied, root)
        staged = copied.output(root, "write-tree")
        refuses = denials_of(rules).refuses
        files = work_tree(copied, root, lambda name: refuses(root / name))
        entries = copied.names(root, "ls-files", "-z", "-t")
    present: list[str] = []
    left_out: list[str] = []
    for entry in entries:
        # git prints `S name` for files that are left out, else `H name`.
        flag, name = entry.split(" ", 1)
        if flag == "S":
            left_out.append(name)
        else:
            present.append(name)
    git = git.without_filters(path)
    # First write all files, as if they were staged; then give the index the staged ones alone.
    git.output(path, "read-tree", "--reset", "-u", files)
    _check_out(git, path, present)
    git.output(path, "read-tree", staged)
    _leave_out(git, path, left_out)
    # The exit code only says that files differ from the index.
    git.run(path, "update-index", "-q", "--refresh")
    return staged, files


def _check_out(
    git: Git,
    path: Path,
    names: Sequence[str],
) -> None:
    """Write files that the original has although a sparse checkout would leave them out.

    Raises a `CodexError`.
    """
    stdin = _missing(path, names)
    if stdin:
        mark = ("update-index", "-z", "--no-skip-worktree", "--stdin")
        git.output(path, *mark, stdin=stdin)
        git.output(path, "checkout-index", "-f", "-z", "--stdin", stdin=stdin)


def _leave_out(
    git: Git,
    path: Path,
    names: Sequence[str],
) -> None:
    """Mark files that a sparse checkout leaves out, so that git does not take them for deleted.

    Raises a `CodexError`.
    """
    stdin = _missing(path, names)
    if stdin:
        mark = ("update-index", "-z", "--skip-worktree", "--stdin")
        git.output(path, *mark, stdin=stdin)


def _missing(path: Path, names: Sequence[str]) -> bytes:
    """Return the names of missing files, each with a NUL after it."""
    missing = (name for name in names if not os.path.lexists(path / name))
    return b"".join(os.fsencode(name) + b"\0" for name in missing)


def _refuse_conflicts(copied: Git, root: Path) -> None:
    """Raise a `CodexError` if the index has conflicts."""
    entries = copied.names(root, "ls-files", "-z", "--unmerged")
    if not entries:
        return
    conflicts: set[str] = set()
    for entry in entries:
        _, name = entry.split("\t", 1)
        conflicts.add(name)
    names = sorted(conflicts)
    folder = copied.own_repository.folder
    signs = [name for name in _COMMANDS if (folder / name).exists()]
    what = "there are conflicts"
    advice = "resolve them first"
    if signs:
        command = _COMMANDS[signs[0]]
        what = f"a `git {command}` with conflicts is in progress"
        advice = f"finish it first, or end it with `git {command} --abort`"
    raise CodexError(
        f"the changes in {root} cannot be carried over: {what} ({some_of(names)}); {advice}",
        code="worktree",
    )


def copied_index(git: Git, top: Path) -> AbstractContextManager[Git]:
    """Return a git that uses a copy of the index: git also writes to an index to read it."""
    return aside(git.without_filters(top), keeps_objects=True)


def unsaved_work(
    git: Git,
    path: Path,
    carried: Sequence[str] = (),
) -> str:
    """Name work of a worktree that exists nowhere else, such as "changes"; empty without any.

    Ignored files do not count. A stash that was made there counts, although it stays: nobody would
    look for it in the repository.

    Args:
        git: the git for the worktree. HEAD is the commit that was checked out.
        carried: the result of `carry_over`.

    Raises:
        CodexError, OSError: the work cannot be found out.
    """
    found = _unsaved(git, path, carried, _REMAINING)
    if found:
        return found
    # git writes this file when it makes the worktree.
    made = Path(git.variables["GIT_DIR"], "commondir").stat().st_mtime
    listed = git.run(path, "rev-list", "-g", "--format=%ct %s", "refs/stash", "--")
    times = _STASH.findall(listed.stdout)
    if any(int(time) >= int(made) for time in times):
        return "a stash"
    return ""


def ignored_files(git: Git, path: Path) -> list[str]:
    """Return the relative paths of ignored files and folders.

    Folders that tools rebuild, such as `node_modules`, are left out. Raises a `CodexError`.
    """
    ignored = ("--others", "--ignored", "--exclude-standard", "--directory")
    names = git.names(path, "ls-files", "-z", *ignored)
    return [name for name in names if _REBUILT.isdisjoint(name.split("/"))]


def _unsaved(
    git: Git,
    path: Path,
    carried: Sequence[str],
    saved: Sequence[str],
) -> str:
    """See `unsaved_work`. `saved`: the references that remain, as options of `git rev-list`."""
    git_dir = Path(git.variables["GIT_DIR"])
    if any((git_dir / name).exists() for name in _IN_PROGRESS):
        return "a merge, rebase or bisection in progress"
    with copied_index(git, path) as copied:
        left_out, submodules = _rare_entries(copied, path)
        is_there = any(os.path.lexists(path / name) for name in left_out)
        if is_there or _differs(copied, path, carried):
            return "changes"
    heads = git.output(path, "rev-list", "-g", "HEAD") + "\nORIG_HEAD\n"
    lost = ("rev-list", "-n1", "--ignore-missing", "--stdin", "--all", "--not", *saved)
    if git.output(path, *lost, stdin=heads.encode()):
        return "commits that no branch has"
    return _unsaved_inside(git, path, submodules)


def _unsaved_inside(git: Git, path: Path, names: Sequence[str]) -> str:
    """See `unsaved_work`; only for repositories in a tree. `names`: those of its submodules."""
    not_checked_out = {path / name for name in names}
    for folder in _repositories(path, git.variables["GIT_DIR"]):
        name = folder.relative_to(path)
        if folder not in not_checked_out:
            return f"a repository of its own in {name}"
        not_checked_out.remove(folder)
        own_git = for_tree(git, folder)
        inner = _unsaved(own_git, folder, carried=(), saved=("--remotes",))
        if inner:
            return f"{inner} in the submodule {name}"
    # git does not look at files in the folder of a submodule that is not checked out.
    for folder in not_checked_out:
        if folder.is_dir() and any(folder.iterdir()):
            return "changes"
    return ""


def _rare_entries(copied: Git, path: Path) -> tuple[list[str], list[str]]:
    """The names in the index that a sparse checkout leaves out, and those of submodules."""
    left_out: list[str] = []
    submodules: list[str] = []
    for entry in copied.names(path, "ls-files", "-z", "-v", "--stage"):
        # git prints `TAG MODE ID 0`, a tab and the name. Nearly all are ordinary files and links.
        if entry.startswith(("H 10", "H 12")):
            continue
        flags, name = entry.split("\t", 1)
        tag, mode, _ = flags.split(" ", 2)
        if tag in {"S", "s"}:
            left_out.append(name)
        if mode == "160000":
            submodules.append(name)
    return left_out, submodules


def _differs(
    copied: Git,
    path: Path,
    carried: Sequence[str],
) -> bool:
    """Compare the index and the files with HEAD, or with the trees that were carried over."""
    staged, files = carried or ("HEAD", "")
    if copied.run(path, "diff-index", "--cached", "--quiet", staged).returncode:
        return True
    # This checks the files that the index marks as unchanged, too.
    has_changed = copied.run(path, "update-index", "--really-refresh").returncode != 0
    if files:
        return work_tree(copied, path) != files
    new = copied.names(path, "ls-files", "-z", "--others", "--exclude-standard")
    return has_changed or any(not name.endswith("/") for name in new)


def _repositories(top: Path, own: str) -> Iterator[Path]:
    """Yield the outermost folders of a tree with a repository other than `own`.

    Raises an `OSError`.
    """
    # The loop appends the folders inside to the list that it goes through.
    folders = [str(top)]
    for folder in folders:
        with os.scandir(folder) as found:
            inner = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        if ".git" in inner and _is_other(Path(folder, ".git"), top, own):
            yield Path(folder)
            continue
        for name, is_folder in inner.items():
            if is_folder:
                folders.append(f"{folder}/{name}")


def _is_other(dot_git: Path, top: Path, own: str) -> bool:
    """True if a `.git` in the tree at `top` belongs to a repository other than `own`."""
    if str(dot_git) == own:
        return False
    if dot_git.is_dir():
        # A placeholder of the sandbox is an empty folder.
        return any(dot_git.iterdir())
    # The file at the top names `own`, or a repository elsewhere.
    return dot_git.parent != top
