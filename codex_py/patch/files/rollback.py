"""Take back the changes of an entry that was not carried out to its end.

The process that failed does this, or the next one if that was killed. So every step looks at what
is there, does nothing twice, and may itself be cut off and begun again.
"""

from contextlib import suppress
from itertools import zip_longest

from codex_py.patch.files.change import Backup, EntryChange, JournalEntry
from codex_py.patch.files.entry_file import digest
from codex_py.patch.files.handles import NOT_REPLACEABLE, Directories, EntryStatus


def roll_back(entry: JournalEntry, directories: Directories) -> list[str]:
    """Put back the files as they were before any of the changes.

    A file with neither its old nor its new contents is somebody else's work, and stays.

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
        mode = entry.modes.get(folder)
        if mode is not None:
            # A step of its own, in case an earlier attempt was cut off between the two.
            with suppress(OSError):
                directories.set_mode(folder, mode)
    for change in reversed(entry.changes):
        try:
            if (
                change.aside is not None
                and directories.status(change.aside) is not None
            ):
                if directories.status(change.location) is not None:
                    raise FileExistsError
                directories.rename(change.aside, change.location)
        except OSError:
            lost[change.path] = None
    return list(lost)


def finish(entry: JournalEntry, directories: Directories) -> None:
    """Remove leftovers once all changes are made. Entries that cannot be removed stay."""
    for change in entry.changes:
        if change.aside is not None and change.backup is not Backup.STORE:
            with suppress(OSError):
                directories.unlink(change.aside)
    for folder in entry.obsolete:
        with suppress(OSError):
            directories.remove(folder)


def _take_back(change: EntryChange, directories: Directories) -> None:
    """Undo the writing of one file; an `OSError` if there is something else now."""
    with suppress(FileNotFoundError, NotADirectoryError):
        directories.unlink(change.beside)
    found = directories.status(change.location)
    if found is None:
        if change.before is not None and change.aside is None:
            raise FileNotFoundError
        return
    # Times are too coarse to tell that a file was not overwritten in place.
    untouched = found == change.before
    if found.is_directory or (untouched and change.aside is not None):
        # A directory that should have given way to the file, or the old entry that should have been
        # set aside.
        return
    contents = directories.contents(change.location, found)
    if untouched and contents == change.old:
        return
    if change.before is None or change.aside is not None:
        if not _is_made(contents, change):
            raise FileExistsError
        directories.unlink(change.location)
    elif _is_made(contents, change) or _is_torn(contents, change):
        _restore(change, change.before, found, directories)
    elif contents != change.old:
        raise FileExistsError


def _is_made(contents: bytes, change: EntryChange) -> bool:
    if change.digest is not None:
        return digest(contents) == change.digest
    return contents == change.written


def _is_torn(contents: bytes, change: EntryChange) -> bool:
    """True if these are the contents of a file that is half overwritten in place, or half restored."""
    old = change.old
    new = change.new
    if old is None or new is None:
        return False
    shortest, longest = sorted((len(old), len(new)))
    # However often that was cut off, each byte is an old or a new one.
    return shortest <= len(contents) <= longest and all(
        byte in pair
        for byte, pair in zip(contents, zip_longest(old, new), strict=False)
    )


def _restore(
    change: EntryChange,
    before: EntryStatus,
    found: EntryStatus,
    directories: Directories,
) -> None:
    old = change.old or b""
    mode = before.permissions
    if change.backup is not Backup.IN_PLACE:
        try:
            owner = (before.user, before.group)
            directories.write_new(
                change.beside, old, mode, owner, is_link=before.is_link
            )
            directories.rename(change.beside, change.location)
        except OSError as error:
            directories.unlink(change.beside)
            if error.errno not in NOT_REPLACEABLE or not found.is_file:
                raise
        else:
            return
    directories.rewrite(change.location, old, mode, found)
