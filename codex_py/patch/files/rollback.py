"""Take back the changes of an entry that was not carried out to its end.

By whoever failed to, or by the next process if that one was killed: so every step looks at what is there,
does nothing twice, and may itself be cut off and begun again.
"""

import os
import stat
from contextlib import suppress
from itertools import zip_longest

from codex_py.patch.files.change import Change, Entry, Status
from codex_py.patch.files.handles import (
    NOT_REPLACEABLE,
    Directories,
    read_file,
    rewrite,
    split,
    unlink_if_there,
    write_new,
)


def roll_back(entry: Entry, directories: Directories) -> list[str]:
    """Put back what was there before any of the changes.

    A file that has other contents than before and after is somebody's work, and stays.

    Returns:
        The paths that could not be put back.
    """
    lost: dict[str, None] = {}
    for change in reversed(entry.changes):
        if change.exists:
            try:
                _take_back(change, directories)
            except OSError:
                lost[change.path] = None
    for folder in reversed(entry.made):
        # Not empty, or not made yet.
        with suppress(OSError):
            directories.remove(folder)
    for folder in reversed(entry.obsolete):
        with suppress(OSError):
            directories.make(folder)
        if (mode := entry.modes.get(folder)) is not None:
            # By itself, in case that making it was cut off just before.
            with suppress(OSError):
                directories.set_mode(folder, mode)
    for change in reversed(entry.changes):
        if change.aside is not None:
            try:
                _bring_from_aside(change, change.aside, directories)
            except OSError:
                lost[change.path] = None
    return list(lost)


def finish(entry: Entry, directories: Directories) -> None:
    """Remove what is left over when all changes are made. What can not be removed stays."""
    for change in entry.changes:
        if change.aside is not None and not change.in_journal:
            folder, name = split(change.aside)
            with suppress(OSError):
                os.unlink(name, dir_fd=directories.handle(folder))
    for folder in entry.obsolete:
        with suppress(OSError):
            directories.remove(folder)


def _take_back(change: Change, directories: Directories) -> None:
    """Undo the writing of one file.

    Raises:
        OSError: it could not be undone, or there is something else now.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        unlink_if_there(change.temporary, dir_fd=directories.handle(change.folder))
    found = directories.status(change.folder, change.name)
    if found is None:
        if change.before is not None and change.aside is None:
            raise FileNotFoundError
        return
    # Times are too coarse to tell that a file was not overwritten in place.
    untouched = Status.of(found) == change.before
    if stat.S_ISDIR(found.st_mode) or (untouched and change.aside is not None):
        # A directory that was to give way to the file, or what was to be set aside.
        return
    folder = directories.handle(change.folder)
    contents = _contents(change.name, found, folder)
    if untouched and contents == change.old:
        return
    if change.before is None or change.aside is not None:
        if not change.made(contents):
            raise FileExistsError
        os.unlink(change.name, dir_fd=folder)
    elif change.made(contents) or _is_torn(contents, change):
        _restore(change, change.before, found, folder)
    elif contents != change.old:
        raise FileExistsError


def _bring_from_aside(change: Change, aside: str, directories: Directories) -> None:
    folder, name = split(aside)
    if directories.status(folder, name) is None:
        return
    if directories.status(change.folder, change.name) is not None:
        raise FileExistsError
    source = directories.handle(folder)
    os.rename(name, change.name, src_dir_fd=source, dst_dir_fd=directories.handle(change.folder))


def _contents(name: str, found: os.stat_result, folder: int) -> bytes:
    if stat.S_ISLNK(found.st_mode):
        return os.fsencode(os.readlink(name, dir_fd=folder))
    return read_file(name, found, dir_fd=folder)


def _is_torn(contents: bytes, change: Change) -> bool:
    """Whether this is the file while it is overwritten in place, or while that is taken back."""
    old, new = change.old, change.new
    if old is None or new is None:
        return False
    shortest, longest = sorted((len(old), len(new)))
    # However often that was cut off, each byte is an old or a new one.
    return shortest <= len(contents) <= longest and all(
        byte in pair for byte, pair in zip(contents, zip_longest(old, new), strict=False)
    )


def _restore(change: Change, before: Status, found: os.stat_result, folder: int) -> None:
    old = change.old or b""
    if not change.in_place:
        try:
            if stat.S_ISLNK(before.mode):
                os.symlink(old, change.temporary, dir_fd=folder)
            else:
                owner = (before.user, before.group)
                write_new(change.temporary, old, before.permissions, owner, dir_fd=folder)
            os.rename(change.temporary, change.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            unlink_if_there(change.temporary, dir_fd=folder)
            if error.errno not in NOT_REPLACEABLE or not stat.S_ISREG(found.st_mode):
                raise
        else:
            return
    inode = (found.st_dev, found.st_ino)
    rewrite(change.name, old, before.permissions, inode, dir_fd=folder)
