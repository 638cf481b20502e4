"""Finds the files that the names in a unified diff stand for."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codex_py.patch.diff.names import refuse_long, stripped
from codex_py.patch.unified.hunks import FileDiff

REMOVING = frozenset({"delete", "uncopy"})
"""Operations that leave nothing at the new name."""

_MAX_LOOKED_FOR = 100
"""The number of files that are looked for to guess the leading directories. More would give the same
result."""


class Target(NamedTuple):
    """A file of the diff with its paths."""

    diff: FileDiff
    old: str
    """The old path, absolute."""
    new: str
    """The new path, absolute; the same as `old` for a file that keeps its name."""
    old_shown: str
    """The old name in the diff, without the leading directories that are left out."""
    new_shown: str
    """The new name in the same form."""


def targets_of(
    files: Sequence[FileDiff],
    root: Path,
    strip: int | None,
) -> list[Target]:
    """Find the paths of the files of a diff.

    Args:
        root: absolute; names are relative to it.
        strip: the number of leading directories to leave out of names. None guesses for the whole
            diff: 1 if most names begin with `a/` and `b/`, else 0; the other way round if more of the
            first files exist then.

    Raises:
        PatchError: a name is too short for that, or leads out of `root`.
    """
    if strip is None:
        strip = _guessed_strip(files, root)
    return [_target(file, root, strip) for file in files]


def vacated(targets: Sequence[Target]) -> set[str]:
    """Return the paths that a diff removes, even if it puts something else there."""
    removing = {"rename", *REMOVING}
    return {target.old for target in targets if target.diff.operation in removing}


def _names(file: FileDiff, count: int) -> tuple[str | None, str | None]:
    """The old and the new name without leading directories; None for a name that has too few."""
    if not file.has_prefix:
        # The names of renames and copies have no `a/` or `b/` to leave out.
        count = max(count - 1, 0)
    return stripped(file.old_name, count), stripped(file.new_name, count)


def _guessed_strip(files: Sequence[FileDiff], root: Path) -> int:
    """Guess the number of leading directories to leave out; see `targets_of`."""
    prefixed = [file for file in files if _has_git_prefix(file)]
    guesses = (0, 1)
    if len(prefixed) * 2 >= len(files):
        guesses = (1, 0)
    changed = [file for file in files if file.operation != "add"][:_MAX_LOOKED_FOR]
    found: dict[int, int] = {}
    for count in guesses:
        found[count] = sum(_exists(file, root, count) for file in changed)
        if found[count] == len(changed):
            return count
    return max(guesses, key=lambda count: found[count])


def _has_git_prefix(file: FileDiff) -> bool:
    """True if both names begin with `a/`, `b/` or another prefix that git writes.

    Renames and copies count as well: git wrote them, without prefixes.
    """
    if not file.has_prefix:
        return True
    names = (file.old_name, file.new_name)
    return all(name[1:2] == "/" and name[0] in "abciow12" for name in names)


def _exists(
    file: FileDiff,
    root: Path,
    count: int,
) -> bool:
    """True if there is an entry at one of the names of a file."""
    names = [name for name in _names(file, count) if name and _is_inside(name)]
    return any(os.path.lexists(f"{root}/{name}") for name in names)


def _is_inside(name: str) -> bool:
    """True for a relative name without `..` and NUL."""
    if name[0] == "/" or "\0" in name:
        return False
    # Most names have no `..`, and need not be split.
    return ".." not in name or ".." not in name.split("/")


def _target(
    file: FileDiff,
    root: Path,
    count: int,
) -> Target:
    old, new = _names(file, count)
    if old is None or new is None:
        raise file.refusal(
            f"{file.new_name!r} has fewer than {count} leading directories to leave out"
        )
    for name in (old, new):
        refuse_long(name)
        # Envelopes may have such names. Diffs come from strangers, and `git apply` refuses them too.
        if not _is_inside(name):
            raise file.refusal(
                f"{name!r} leads out of the directory that is patched", "refused"
            )
    if old != new and file.operation in {"update", "add", "delete"}:
        old = _one_name(file, root, old, new)
        new = old
    old_path = os.path.normpath(f"{root}/{old}")
    new_path = old_path
    if old != new:
        new_path = os.path.normpath(f"{root}/{new}")
    return Target(file, old_path, new_path, old, new)


def _one_name(
    file: FileDiff,
    root: Path,
    old: str,
    new: str,
) -> str:
    """Choose between two names that differ, as in `--- f.orig`.

    By the rule of `patch`, it is the shortest of those that exist; the new one if none exists.
    """
    if file.operation == "add":
        return new
    if file.operation == "delete":
        return old
    existing = [name for name in (old, new) if os.path.isfile(root / name)]

    def length(name: str) -> tuple[int, int, int]:
        last = PurePosixPath(name).name
        return name.count("/"), len(last), len(name)

    return min(existing or [new], key=length)
