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
_SHARED = ("--exclude=refs/worktree/*", "--exclude=refs/bisect/*", "--all")
"""References that remain without the worktree, as options of `git rev-list`."""
_STASH = re.compile(rb"^(\d+) (?:WIP on|On) \(no branch\): ", re.MULTILINE)
_REBUILT = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"})


def carry_over(
    source: Git, root: Path, git: Git, path: Path, rules: FileRules
) -> tuple[str, str]:
    """Copy changed, new and deleted files, and the index.

    Returns the ids of two trees: the index, and all files.

    The original stays as it is, and so does its index. Ignored files, changes in submodules,
    repositories in the tree, and denied files are left out. Files go through git, like the files of
    a commit. Files that a sparse checkout leaves out are left out of the copy.

    Args:
        source: the git for the original, whose top is `root`.
        git: the git for the worktree, whose top is `path`.

    Raises:
        CodexError: there are conflicts, or git fails.
        OSError: the index cannot be copied.
    """
    with copied_index(source, root) as copied:
        _refuse_conflicts(copied, root)
        staged = copied.output(root, "write-tree")
        refuses = denials_of(rules).refuses
        files = work_tree(copied, root, lambda name: refuses(root / name))
        # git prints `S name` for files that are left out, else `H name`.
        entries = [
            each.split(" ", 1) for each in copied.names(root, "ls-files", "-z", "-t")
        ]
    git = git.without_filters(path)
    git.output(path, "read-tree", "--reset", "-u", files)
    _check_out(git, path, [name for flag, name in entries if flag != "S"])
    git.output(path, "read-tree", staged)
    _leave_out(git, path, [name for flag, name in entries if flag == "S"])
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
        git.output(
            path, "update-index", "-z", "--no-skip-worktree", "--stdin", stdin=stdin
        )
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
        git.output(
            path, "update-index", "-z", "--skip-worktree", "--stdin", stdin=stdin
        )


def _missing(path: Path, names: Sequence[str]) -> bytes:
    """Return the names of missing files, each with a NUL after it."""
    missing = (name for name in names if not os.path.lexists(path / name))
    return b"".join(os.fsencode(name) + b"\0" for name in missing)


def _refuse_conflicts(copied: Git, root: Path) -> None:
    """Raises a `CodexError` if the index has conflicts."""
    entries = copied.names(root, "ls-files", "-z", "--unmerged")
    names = sorted({entry.split("\t", 1)[1] for entry in entries})
    if not names:
        return
    folder = copied.own_repository.folder
    commands = (
        command for name, command in _COMMANDS.items() if (folder / name).exists()
    )
    command = next(commands, None)
    what = "there are conflicts"
    end = "resolve them first"
    if command is not None:
        what = f"a `git {command}` with conflicts is in progress"
        end = f"finish it first, or end it with `git {command} --abort`"
    raise CodexError(
        f"the changes in {root} cannot be carried over: {what} ({some_of(names)}); {end}",
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
    found = _unsaved(git, path, carried, _SHARED)
    if found:
        return found
    made = Path(git.variables["GIT_DIR"], "commondir").stat().st_mtime
    listed = git.run(
        path, "rev-list", "-g", "--format=%ct %s", "refs/stash", "--"
    ).stdout
    if any(int(time) >= int(made) for time in _STASH.findall(listed)):
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
    git_dir = Path(git.variables["GIT_DIR"])
    if any((git_dir / name).exists() for name in _IN_PROGRESS):
        return "a merge, rebase or bisection in progress"
    with copied_index(git, path) as copied:
        # An entry is `H 100644 <id> 0<TAB>name`. Nearly all are of plain files and links that are
        # not hidden.
        entries = copied.names(path, "ls-files", "-z", "-v", "--stage")
        rare = [
            each.split("\t", 1)
            for each in entries
            if not each.startswith(("H 10", "H 12"))
        ]
        is_hidden = any(
            flags[0] in "Ss" and os.path.lexists(path / name) for flags, name in rare
        )
        if is_hidden or _differs(copied, path, carried):
            return "changes"
    heads = git.output(path, "rev-list", "-g", "HEAD") + "\nORIG_HEAD\n"
    lost = ("rev-list", "-n1", "--ignore-missing", "--stdin", "--all", "--not", *saved)
    if git.output(path, *lost, stdin=heads.encode()):
        return "commits that no branch has"
    submodules: set[Path] = set()
    for flags, name in rare:
        if flags[2:].startswith("160000"):
            submodules.add(path / name)
    for folder in _repositories(path, git.variables["GIT_DIR"]):
        name = folder.relative_to(path)
        if folder not in submodules:
            return f"a repository of its own in {name}"
        submodules.remove(folder)
        inner = _unsaved(for_tree(git, folder), folder, (), ("--remotes",))
        if inner:
            return f"{inner} in the submodule {name}"
    # git does not look at files in the folder of a submodule that is not checked out.
    for folder in submodules:
        if folder.is_dir() and any(folder.iterdir()):
            return "changes"
    return ""


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
    folders = [str(top)]
    for folder in folders:
        with os.scandir(folder) as found:
            inner = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        dot_git = Path(folder, ".git")
        # A placeholder of the sandbox is an empty folder. The file at the top names `own`, or a
        # repository elsewhere.
        if dot_git.is_dir():
            is_other = any(dot_git.iterdir())
        else:
            is_other = folder != str(top)
        if ".git" in inner and str(dot_git) != own and is_other:
            yield Path(folder)
        else:
            folders += (
                f"{folder}/{name}" for name, is_folder in inner.items() if is_folder
            )
