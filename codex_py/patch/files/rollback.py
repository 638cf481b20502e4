"""Take back the changes of an entry that was not carried out to its end.

The process that failed does this or, if it was killed, the next one. So every step looks at what is
there, can be repeated without harm, and may be cut off at any point.
"""

from contextlib import suppress
from itertools import zip_longest

from codex_py.patch.files.change import Backup, EntryChange, JournalEntry
from codex_py.patch.files.entry_file import digest
from codex_py.patch.files.handles import NOT_REPLACEABLE, Directories, EntryStatus


def roll_back(entry: JournalEntry, directories: Directories) -> list[str]:
    """Put back the files as they were before any of the changes.

    A file with neither its old nor its new contents is somebody else's work, and is left alone.

    Returns:
        The paths that could not be put back.
    """
    # A dictionary keeps the order and has each path once.
    lost: dict[str, None] = {}
    for change in reversed(entry.changes):
        if change.exists:
            try:
                _take_back(change, directories)
            except OSError:
                lost[change.path] = None
    _restore_directories(entry, directories)
    for change in reversed(entry.changes):
        try:
            _bring_back(change, directories)
        except OSError:
            lost[change.path] = None
    return list(lost)


def _restore_directories(entry: JournalEntry, directories: Directories) -> None:
    """Remove the directories that the entry made, and make those that it removed."""
    for folder in reversed(entry.made):
        # It may hold files of others, or not have been made yet.
        with suppress(OSError):
            directories.remove(folder)
    for folder in reversed(entry.obsolete):
        with suppress(OSError):
            directories.make(folder)
        mode = entry.modes.get(folder)
        if mode is not None:
            # This is a separate step in case an earlier attempt was cut off between the two.
            with suppress(OSError):
                directories.set_mode(folder, mode)


def finish(entry: JournalEntry, directories: Directories) -> None:
    """Remove what was set aside, and obsolete directories, once all changes are made.

    Whatever cannot be removed stays.
    """
    for change in entry.changes:
        if change.aside is not None and change.backup is not Backup.STORE:
            with suppress(OSError):
                directories.unlink(change.aside)
    for folder in entry.obsolete:
        with suppress(OSError):
            directories.remove(folder)


def _bring_back(change: EntryChange, directories: Directories) -> None:
    """Rename an entry that was set aside to its place; an `OSError` if something else is there."""
    if change.aside is None or directories.status(change.aside) is None:
        return
    if directories.status(change.location) is not None:
        raise FileExistsError
    directories.rename(change.aside, change.location)


def _take_back(change: EntryChange, directories: Directories) -> None:
    """Undo the writing of one file; an `OSError` if something else is there now."""
    with suppress(FileNotFoundError, NotADirectoryError):
        directories.unlink(change.beside)
    found = directories.status(change.location)
    if found is None:
        if change.before is not None and change.aside is None:
            raise FileNotFoundError
        return
    if found.is_directory:
        # It was to give way to the file, and is still there.
        return
    looks_untouched = found == change.before
    if looks_untouched and change.aside is not None:
        # The old entry was to be set aside, and is still there.
        return
    contents = directories.contents(change.location, found)
    # Times are too coarse to tell that a file was not overwritten in place, so contents decide.
    if looks_untouched and contents == change.old:
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
    """True if these are the contents that the change writes."""
    if change.digest is not None:
        return digest(contents) == change.digest
    return contents == change.written


def _is_torn(contents: bytes, change: EntryChange) -> bool:
    """True if these contents are partly old and partly new: the file was being overwritten in place,
    or restored."""
    old = change.old
    new = change.new
    if old is None or new is None:
        return False
    shortest, longest = sorted((len(old), len(new)))
    if not shortest <= len(contents) <= longest:
        return False
    # However often that was cut off, each byte is an old or a new one.
    pairs = zip_longest(old, new)
    return all(byte in pair for byte, pair in zip(contents, pairs, strict=False))


def _restore(
    change: EntryChange,
    before: EntryStatus,
    found: EntryStatus,
    directories: Directories,
) -> None:
    """Write the old contents again, in place only if the file cannot be replaced."""
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
