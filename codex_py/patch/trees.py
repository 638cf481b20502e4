"""Compares git trees, and makes one of a work tree without writing to its repository."""

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import CodexError
from codex_py.filesystem.own_folder import own_folder
from codex_py.patch.git import Git, batched_contents
from codex_py.protocol.patched_file import PatchedFile

_SUBMODULE = 0o160000


class _Side(NamedTuple):
    """A file in the old or in the new tree."""

    mode: int
    """0 if there is no file."""
    blob: str
    """The object id of the contents."""


class _Difference(NamedTuple):
    name: str
    before: _Side
    after: _Side


@contextmanager
def aside(git: Git, *, keeps_objects: bool = False) -> Generator[Git]:
    """Yield a git that works on a copy of the index.

    Args:
        keeps_objects: write new objects to the repository. If False, they are written to a folder
            that is removed at the end.

    Raises:
        CodexError: neither the home nor the repository can be written.
    """
    own = git.own_repository
    home = git.home
    if own.holds(git.home):
        # Files in such a home would be files of the tree.
        home = None
    with own_folder(home, "git", own.folder) as folder:
        index = folder / "index"
        objects = folder / "objects"
        objects.mkdir()
        own_index = git.variables.get("GIT_INDEX_FILE", own.folder / "index")
        with suppress(FileNotFoundError):
            # The copy needs the time of the index: git reads the files that are not older.
            shutil.copy2(own_index, index)
        variables = {"GIT_INDEX_FILE": str(index)}
        if not keeps_objects:
            variables["GIT_OBJECT_DIRECTORY"] = str(objects)
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(own.common / "objects")
        yield replace(git, variables={**git.variables, **variables})


def work_tree(
    git: Git,
    top: Path,
    left_out: Callable[[str], bool] = lambda _: False,
) -> str:
    """Write a git tree of all files except ignored ones, submodules and repositories.

    Afterwards the index has the same contents.

    Args:
        left_out: true for the names of other files that must be left out.

    Returns:
        The id of the tree.

    Raises:
        CodexError: git fails, as it does while a merge has conflicts.
    """
    differing = ("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    gone = git.names(top, *differing, "--diff-filter=D")
    changed = git.names(top, *differing, "--diff-filter=d")
    new = git.names(
        top,
        "ls-files",
        "-z",
        "--others",
        "--exclude-standard",
    )
    # A name with a slash is that of a repository.
    new_files = [name for name in new if not name.endswith("/")]
    files = [name for name in (*changed, *new_files) if not left_out(name)]
    # First, because a file may be gone so that another one could take the place of its folder.
    _update_index(git, top, gone, "--force-remove")
    _update_index(
        git,
        top,
        files,
        "--add",
        "--remove",
        "--replace",
    )
    return git.output(top, "write-tree")


def _update_index(
    git: Git,
    top: Path,
    names: Iterable[str],
    *words: str,
) -> None:
    stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
    git.output(top, "update-index", "-z", *words, "--stdin", stdin=stdin)


def empty_tree(git: Git, top: Path) -> str:
    """Return the id of the tree without files. Raises a `CodexError` if git fails."""
    return git.output(
        top,
        "hash-object",
        "-w",
        "-t",
        "tree",
        "--stdin",
    )


def files_between(
    git: Git,
    top: Path,
    old: str,
    new: str,
    left_out: Callable[[str], bool] = lambda _: False,
) -> list[PatchedFile]:
    """Compare two trees or commits. Submodules are left out.

    Args:
        left_out: true for the names of other files that must be left out.

    Raises:
        CodexError: git fails, or an object is missing.
    """
    fields = git.names(
        top,
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--raw",
        old,
        new,
    )
    found: list[_Difference] = []
    facts = fields[::2]
    names = fields[1::2]
    for fact, name in zip(facts, names, strict=True):
        old_mode, new_mode, old_id, new_id, _ = fact.removeprefix(":").split()
        before = _Side(int(old_mode, 8), old_id)
        after = _Side(int(new_mode, 8), new_id)
        is_submodule = _SUBMODULE in (before.mode, after.mode)
        if not is_submodule and not left_out(name):
            found.append(_Difference(name, before, after))
    sides = [side for each in found for side in (each.before, each.after)]
    asked = "\n".join([side.blob for side in sides if side.mode]).encode()
    printed = git.data(
        top,
        "cat-file",
        "--batch",
        stdin=asked,
    )
    contents = batched_contents(printed)
    return [
        PatchedFile.of(
            top / each.name,
            _next_contents(each.before, contents),
            _next_contents(each.after, contents),
            old_mode=each.before.mode or None,
            new_mode=each.after.mode or None,
        )
        for each in found
    ]


def _next_contents(side: _Side, contents: Iterator[bytes | None]) -> bytes | None:
    """Take the contents of a side, which come in the order of the sides; None if it has no file."""
    if not side.mode:
        return None
    data = next(contents, None)
    if data is None:
        raise CodexError(f"git has lost the object {side.blob}", code="git")
    return data


def diff_between(
    git: Git,
    top: Path,
    old: str,
    new: str,
) -> bytes:
    """Write the diff between two trees or commits, without submodules.

    `plan_unified` and `git apply` make the new tree from the old one with it, and the old one from
    the new one: binary contents are in it both ways.

    Raises:
        CodexError: git fails.
    """
    # The options override settings of the user.
    options = (
        "--binary",
        "--full-index",
        "--no-renames",
        "--no-color",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
    )
    return git.data(top, "diff-tree", "-r", "-p", *options, old, new)
