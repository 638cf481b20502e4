"""Compares trees of git, and makes one of a work tree without writing to its repository."""

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.filesystem.own_folder import own_folder
from codex_py.patch.git import Git, batched_contents
from codex_py.protocol.patched_file import PatchedFile

_SUBMODULE = 0o160000


@contextmanager
def aside(git: Git, *, keeps_objects: bool = False) -> Generator[Git]:
    """A git with a copy of the index. Unless it `keeps_objects`, new objects are in a folder that
    is removed at the end.

    Raises:
        CodexError: neither the home nor the repository can be written.
    """
    own = git.own_repository
    # Files of a home in the work tree would be files of the tree.
    home = None if own.holds(git.home) else git.home
    with own_folder(home, "git", own.folder) as folder:
        index = folder / "index"
        objects = folder / "objects"
        objects.mkdir()
        own_index = git.variables.get("GIT_INDEX_FILE", own.folder / "index")
        with suppress(FileNotFoundError):
            # With its time: git compares the contents of files that are not older.
            shutil.copy2(own_index, index)
        variables = {"GIT_INDEX_FILE": str(index)}
        if not keeps_objects:
            variables["GIT_OBJECT_DIRECTORY"] = str(objects)
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(own.common / "objects")
        yield replace(git, variables={**git.variables, **variables})


def work_tree(
    git: Git, top: Path, left_out: Callable[[str], bool] = lambda _: False
) -> str:
    """Write a git tree of all files except ignored ones, submodules and repositories. Returns its
    id; the index has the same contents then.

    Args:
        left_out: true for the names of further files that are not looked at.

    Raises:
        CodexError: git fails, as it does while a merge has conflicts.
    """
    differing = ("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    gone = git.names(top, *differing, "--diff-filter=D")
    changed = git.names(top, *differing, "--diff-filter=d")
    new = git.names(top, "ls-files", "-z", "--others", "--exclude-standard")
    found = [*changed, *(name for name in new if not name.endswith("/"))]
    files = [name for name in found if not left_out(name)]
    # A file may be gone because its folder has become another file.
    for names, *words in (
        (gone, "--force-remove"),
        (files, "--add", "--remove", "--replace"),
    ):
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        git.output(top, "update-index", "-z", *words, "--stdin", stdin=stdin)
    return git.output(top, "write-tree")


def empty_tree(git: Git, top: Path) -> str:
    """The id of the tree without files. Raises a `CodexError`."""
    return git.output(top, "hash-object", "-w", "-t", "tree", "--stdin")


def files_between(
    git: Git,
    top: Path,
    old: str,
    new: str,
    left_out: Callable[[str], bool] = lambda _: False,
) -> list[PatchedFile]:
    """The files that differ between two trees or commits, without submodules and those `left_out` by their name.
    Raises a `CodexError`."""
    fields = git.names(top, "diff-tree", "-r", "-z", "--no-renames", "--raw", old, new)
    found: list[tuple[str, Sequence[int], Sequence[str]]] = []
    facts = fields[::2]
    names = fields[1::2]
    for fact, name in zip(facts, names, strict=True):
        *modes, old_id, new_id, _ = fact.removeprefix(":").split()
        kinds = [int(mode, 8) for mode in modes]
        if _SUBMODULE not in kinds and not left_out(name):
            found.append((name, kinds, [old_id, new_id]))
    wanted = [
        blob
        for _, kinds, ids in found
        for kind, blob in zip(kinds, ids, strict=True)
        if kind
    ]
    asked = "\n".join(wanted).encode()
    printed = git.data(top, "cat-file", "--batch", stdin=asked)
    contents = batched_contents(printed)

    def content(kind: int, blob: str) -> bytes | None:
        """The next contents, if there is a file."""
        if not kind:
            return None
        data = next(contents, None)
        if data is None:
            raise CodexError(f"git has lost the object {blob}", code="git")
        return data

    return [
        PatchedFile.of(
            top / name,
            *map(content, kinds, ids),
            old_mode=kinds[0] or None,
            new_mode=kinds[1] or None,
        )
        for name, kinds, ids in found
    ]


def diff_between(
    git: Git,
    top: Path,
    old: str,
    new: str,
) -> bytes:
    """The diff between two trees or commits, with binary contents in both directions, without
    submodules.

    With it, `plan_unified` and `git apply` make the new tree from the old one. Raises a
    `CodexError` if git fails.
    """
    form = ("--binary", "--full-index", "--no-renames", "--no-color", "--src-prefix=a/")
    off = (
        "--dst-prefix=b/",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
    )
    return git.data(top, "diff-tree", "-r", "-p", *form, *off, old, new)
