"""Looks at the files that patches of a turn have written: commands may have changed them since.

Links are not followed, neither at a path nor above it, since a command may have made them.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.patch.files.handles import Directories
from codex_py.patch.files.modes import SUBMODULE
from codex_py.protocol.patched_file import PatchedFile

_MAX_BYTES: Final = 10 * 1024 * 1024
"""The size of the largest file whose contents are read."""


def paths_of(files: Iterable[PatchedFile]) -> set[Path]:
    """Return the old paths of patched files, and the new paths of those that were moved.

    Submodules are left out: they are folders on disk.
    """
    paths: set[Path] = set()
    for file in files:
        if not is_submodule(file):
            paths |= {file.path, file.destination}
    return paths


def is_submodule(file: PatchedFile) -> bool:
    return SUBMODULE in (file.old_mode, file.new_mode)


def is_there(path: Path) -> bool:
    """True if there is an entry other than a folder, or if nobody can tell."""
    try:
        with Directories() as directories:
            status = directories.status(str(path))
    except OSError:
        return True
    return status is not None and not status.is_directory


def state_on_disk(path: Path) -> PatchedFile | None:
    """Return what is at a path now, as a change that makes it from nothing.

    If there is no entry, or a folder, the change makes nothing.

    Returns:
        None if the contents are not known: the file is too large, not regular, or cannot be read.
    """
    try:
        with Directories() as directories:
            status = directories.status(str(path))
            if status is None or status.is_directory:
                return PatchedFile.of(path, None, None)
            is_readable = status.is_file and status.size <= _MAX_BYTES
            if not is_readable and not status.is_link:
                return None
            contents = directories.contents(str(path), status)
            return PatchedFile.of(path, None, contents, new_mode=status.mode)
    except OSError:
        return None


def written_inodes(root: Path, files: Iterable[PatchedFile]) -> Sequence[int]:
    """Return the inodes of the files that still have the contents that patches gave them.

    Files on another device than the root are left out, since inodes are unique only on one device.
    """
    found: list[int] = []
    with suppress(OSError):
        device = os.lstat(root).st_dev
        for file in files:
            inode = _inode_of_written(file, device)
            if inode is not None:
                found.append(inode)
    return found


def _inode_of_written(file: PatchedFile, device: int) -> int | None:
    """Return the inode; None if the file has other contents now, or is on another device."""
    if not file.new:
        return None
    now = state_on_disk(file.path)
    if now is None or now.new != file.new:
        return None
    with suppress(OSError):
        status = os.lstat(file.path)
        if status.st_dev == device and stat.S_ISREG(status.st_mode):
            return status.st_ino
    return None
