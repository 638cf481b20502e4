"""Compares two copies of a work tree."""

import fcntl
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codex_py.patch.undo.copies.snapshots import Snapshot, usual_modes
from codex_py.patch.undo.copies.store import ALONE, CopyStore
from codex_py.protocol.patched_file import PatchedFile

_Sides = list[tuple[int, str]]
"""The mode (0 if there is no file) and the blob of a file, before and after."""


class Changes(NamedTuple):
    """The differences between two copies. Paths are absolute."""

    files: list[PatchedFile]
    folders: list[str]
    """New folders, the outermost first."""
    unkept: list[str]
    """Further changed files, whose contents are not known."""


def changes_between(
    store: CopyStore, old: Snapshot, new: Snapshot, first: Snapshot | None = None
) -> Changes:
    """Return the differences between two copies, without the files that this process writes.

    Args:
        first: the first copy of the turn; None if it is `old`.

    Raises:
        SnapshotError: git cannot compare them.
    """
    first = first or old
    root = store.root
    own = open_for_writing()
    unkept = _differing_names(old.unkept, new.unkept)
    found, folders = _differences(store, old, new)
    found |= _with_new_modes(store, old, new, found)
    # Another session may have copied what was left out here.
    for name in filter(first.had_unkept, list(found)):
        del found[name]
    folders = [name for name in folders if not first.had_unkept(name)]
    contents = store.blobs(_blobs_of(found.values()))
    usual = usual_modes()
    files: list[PatchedFile] = []
    for path, sides in found.items():
        if not contents.keys() >= _blobs_of([sides]):
            unkept.add(path)
            continue
        if identity(root / path) in own:
            continue
        (old_mode, old_blob), (new_mode, new_blob) = sides
        file = PatchedFile.of(
            root / path,
            contents[old_blob] if old_mode else None,
            contents[new_blob] if new_mode else None,
            old_mode=_full_mode(old_mode, old, path, usual),
            new_mode=_full_mode(new_mode, new, path, usual),
        )
        files.append(file)
    paths = [root / path for path in sorted(unkept)]
    names = [str(path) for path in paths if identity(path) not in own]
    return Changes(files, [str(root / name) for name in folders], names)


def _differing_names(old: Mapping[str, object], new: Mapping[str, object]) -> set[str]:
    """The names with another value in one of two tables, or with none."""
    names = old.keys() | new.keys()
    return {name for name in names if old.get(name) != new.get(name)}


def _blobs_of(files: Iterable[_Sides]) -> set[str]:
    """The blobs of all sides on which there is a file."""
    blobs: set[str] = set()
    for sides in files:
        blobs.update(blob for mode, blob in sides if mode)
    return blobs


def _differences(
    store: CopyStore, old: Snapshot, new: Snapshot
) -> tuple[dict[str, _Sides], list[str]]:
    """Return the sides of each file that differs, by path, and the new folders.

    Paths are relative to the root.
    """
    found: dict[str, _Sides] = {}
    folders: list[str] = []
    words = ("diff-tree", "-r", "-t", "-z", "--no-renames", "--raw", old.tree, new.tree)
    if old.tree != new.tree:
        fields = store.names(*words, variables=ALONE)
    else:
        fields = []
    for meta, name in zip(fields[::2], fields[1::2], strict=True):
        *modes, old_id, new_id = meta.removeprefix(":").split()[:4]
        was, now = (int(mode, 8) for mode in modes)
        is_new = stat.S_ISDIR(now) and not stat.S_ISDIR(was)
        if is_new and not f"{name}/".startswith(tuple(old.empty)):
            folders.append(name)
        # Git knows a folder only by its files.
        if stat.S_ISDIR(was):
            was = 0
        if stat.S_ISDIR(now):
            now = 0
        if was or now:
            found[name] = [(was, old_id), (now, new_id)]
    return found, folders


def _full_mode(
    mode: int, copy: Snapshot, path: str, usual: Mapping[int, int]
) -> int | None:
    """Return the full mode of a file in a copy; None if there is no file.

    Git keeps only one permission bit.
    """
    if stat.S_ISREG(mode):
        return stat.S_IFREG | copy.modes.get(path, usual[mode & 0o100])
    return mode or None


def _with_new_modes(
    store: CopyStore, old: Snapshot, new: Snapshot, seen: Iterable[str]
) -> dict[str, _Sides]:
    """Return the files that differ only in permission bits that git does not keep.

    So git has the same mode and the same blob for both sides.
    """
    names = _differing_names(old.modes, new.modes).difference(seen)
    found: dict[str, _Sides] = {}
    if not names:
        return found
    words = ("ls-tree", "-r", "-z", "--full-tree", new.tree)
    for line in store.names(*words, variables=ALONE):
        meta, _, name = line.partition("\t")
        if name in names:
            mode, _, blob = meta.split()
            side = (int(mode, 8), blob)
            found[name] = [side, side]
    return found


def open_for_writing() -> set[tuple[int, int]]:
    """Return the files that this process writes, such as a log of its output, as device and inode.

    Without `/dev/fd`, they are not known, and the set is empty.
    """
    found: set[tuple[int, int]] = set()
    with suppress(OSError):
        for descriptor in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):
                status = os.fstat(descriptor)
                access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
                if stat.S_ISREG(status.st_mode) and access != os.O_RDONLY:
                    found.add((status.st_dev, status.st_ino))
    return found


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a path; None if it cannot be looked at."""
    with suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None
