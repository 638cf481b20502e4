"""Find the files of a directory that the names in a unified diff mean."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codex_py.patch.diff.names import refuse_long, stripped
from codex_py.patch.unified.hunks import FileDiff

REMOVING = frozenset({"delete", "uncopy"})
"""Operations that leave nothing at the new name."""

_MAX_LOOKED_FOR = 100
"""The number of files that are looked for to guess the leading directories; more would say the
same."""


class Target(NamedTuple):
    """A file of the diff with its paths."""

    diff: FileDiff
    old: str
    """The absolute old path; `new` is absolute too, and the same for a file that keeps its name."""
    new: str
    old_shown: str
    """The old name in the diff, without the directories that are left out."""
    new_shown: str


def targets_of(
    files: Sequence[FileDiff], root: Path, strip: int | None
) -> list[Target]:
    """The files of a diff with their paths.

    Args:
        root: absolute; names are relative to it.
        strip: how many leading directories to leave out of names. None guesses for the whole
            diff: 1 where names begin with `a/` and `b/`, else 0, unless more of the first
            files exist the other way.

    Raises:
        PatchError: a name is too short for that, or leads out of `root`.
    """
    if strip is not None:
        count = strip
    else:
        count = _guessed_strip(files, root)
    return [_target(file, root, count) for file in files]


def vacated(targets: Sequence[Target]) -> set[str]:
    """Paths that a diff removes, if only to put something else there."""
    removing = {"rename", *REMOVING}
    return {target.old for target in targets if target.diff.operation in removing}


def _names(file: FileDiff, count: int) -> tuple[str | None, str | None]:
    # The names of renames and copies have no prefix to leave out.
    count = count if file.has_prefix else max(count - 1, 0)
    return stripped(file.old_name, count), stripped(file.new_name, count)


def _guessed_strip(files: Sequence[FileDiff], root: Path) -> int:
    prefixed = sum(_has_git_prefix(file) for file in files) * 2 >= len(files)
    guesses = (1, 0) if prefixed else (0, 1)
    changed = [file for file in files if file.operation != "add"][:_MAX_LOOKED_FOR]
    found: dict[int, int] = {}
    for count in guesses:
        found[count] = sum(_exists(file, root, count) for file in changed)
        if found[count] == len(changed):
            return count
    return max(guesses, key=lambda count: found[count])


def _has_git_prefix(file: FileDiff) -> bool:
    prefixes = {file.old_name[:2], file.new_name[:2]}
    return not file.has_prefix or all(
        len(prefix) == 2 and prefix[1] == "/" and prefix[0] in "abciow12"
        for prefix in prefixes
    )


def _exists(
    file: FileDiff,
    root: Path,
    count: int,
) -> bool:
    return any(
        name and _is_inside(name) and os.path.lexists(f"{root}/{name}")
        for name in _names(file, count)
    )


def _is_inside(name: str) -> bool:
    return (
        name[0] != "/"
        and "\0" not in name
        and (".." not in name or ".." not in name.split("/"))
    )


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
        # Diffs come from strangers, so this is refused as by `git apply`; in envelopes it is not.
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
    """The name that is meant if they differ, as in `--- f.orig`: by the rule of `patch`, the shortest."""
    if file.operation == "add":
        return new
    if file.operation == "delete":
        return old
    existing = [name for name in (old, new) if os.path.isfile(root / name)]  # noqa: PTH113 -- any name

    def length(name: str) -> tuple[int, int, int]:
        last = PurePosixPath(name).name
        return name.count("/"), len(last), len(name)

    return min(existing or [new], key=length)
