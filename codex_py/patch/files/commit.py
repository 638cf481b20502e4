"""Write planned changes to disk: all of them, or none.

A file is written beside its place and renamed into it, so that nobody ever sees half of it. The old
files are kept until the last change is made, and put back if a change fails. With a journal, they
are put back even if the process is killed, and the patch can be undone later.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.files.change import Backup, EntryChange, JournalEntry, State
from codex_py.patch.files.failures import describe, file_error
from codex_py.patch.files.handles import Directories, EntryStatus, split
from codex_py.patch.files.journal import Journal, ReplacedStore
from codex_py.patch.files.rollback import finish, roll_back
from codex_py.patch.files.transaction import Transaction, by_folder, check_unchanged


class Committed(NamedTuple):
    """The result of making changes."""

    number: int | None
    """The number of the journal's entry, for `undo`; None if no entry was kept."""
    notes: tuple[str, ...] = ()
    """Sentences about earlier patches that were recovered, and about why this one cannot be
    undone."""


def commit(entry: JournalEntry, journal: Journal | None = None) -> Committed:
    """Make the changes. If anything ends this early, an interrupt included, nothing stays changed.

    Raises:
        PatchError: of kind `file`; the message says so if something could not be put back.
    """
    notes: list[str] = []
    store: ReplacedStore | None = None
    with ExitStack() as stack:
        directories = stack.enter_context(Directories())
        if journal is not None:
            try:
                stack.enter_context(journal.locked())
                notes += journal.recover_locked()
                entry.number, store = journal.next_entry()
            except OSError as error:
                notes.append(
                    f"This patch cannot be undone: no journal is kept: {describe(error)}."
                )
                journal = None
        _check(entry, directories)
        transaction = Transaction(entry, directories, journal)
        transaction.prepare(store)
        entry.modes |= _modes(entry.obsolete, directories)
        entry.made = _missing_directories(entry, directories)
        if journal is not None:
            journal.write(entry)
        try:
            transaction.run()
            if journal is not None:
                journal.set_state(entry, _state_once_made(entry))
        # An interrupt leaves as little behind as an error does.
        except BaseException as error:
            _take_back(entry, directories, journal, error)
            raise
        finish(entry, directories)
        if journal is not None:
            # It is committed, even if that cannot be recorded.
            with suppress(OSError):
                journal.set_state(entry, State.COMMITTED)
            journal.prune()
    if journal is None:
        return Committed(None, tuple(notes))
    lost = [change.path for change in entry.changes if not change.kept]
    if lost:
        names = ", ".join(lost[:3])
        if len(lost) > 3:
            names += " and others"
        notes.append(
            f"This patch cannot be undone: what was in {names} is too large to be kept, or cannot be read."
        )
    return Committed(entry.number, tuple(notes))


def _state_once_made(entry: JournalEntry) -> State:
    """The state of an entry whose changes have all been made: `finish` may have nothing to do."""
    leaves_files = any(
        change.aside and change.backup is not Backup.STORE for change in entry.changes
    )
    if entry.obsolete or leaves_files:
        return State.APPLIED
    return State.COMMITTED


def _check(entry: JournalEntry, directories: Directories) -> None:
    """Prepare the changes of an entry: drop those that change nothing, check that all files are as
    they were when planned, and find those that are to be overwritten in place."""
    entry.changes = [change for change in entry.changes if _changes_something(change)]
    inodes = Counter(
        (change.before.device, change.before.inode)
        for change in entry.changes
        if change.before is not None
    )
    for change in by_folder(entry.changes):
        if change.location in entry.obsolete:
            continue
        found = check_unchanged(change, directories)
        if found is None:
            continue
        has_links = found.st_nlink > 1 and EntryStatus.of(found).is_file
        is_written = change.fate == "file" and change.old is not None
        # If two links to one file both change, they become separate files, as when one is moved
        # over the other.
        is_shared = inodes[found.st_dev, found.st_ino] > 1
        if has_links and is_written and not change.breaks_links and not is_shared:
            change.backup = Backup.IN_PLACE


def _changes_something(change: EntryChange) -> bool:
    """True if the change writes a file or link, or removes one."""
    if change.exists:
        return True
    return change.before is not None and not change.before.is_directory


def _modes(folders: Iterable[str], directories: Directories) -> dict[str, int]:
    """The permission bits of those folders that can be looked at, by their paths."""
    modes: dict[str, int] = {}
    for folder in folders:
        # A folder that cannot be looked at cannot be removed either.
        with suppress(OSError):
            found = directories.status(folder)
            if found is not None and found.is_directory:
                modes[folder] = found.permissions
    return modes


def _missing_directories(entry: JournalEntry, directories: Directories) -> list[str]:
    """Find the directories that have to be made, the outermost first.

    They are those that the entry makes and those that its files need, with the ones above them, as
    far as they do not exist.
    """
    missing: dict[str, None] = {}
    needed_by = {folder: folder for folder in entry.made}
    needed_by |= {
        change.folder: change.path for change in entry.changes if change.exists
    }
    for needed, path in needed_by.items():
        chain: list[str] = []
        folder = needed
        while folder not in missing:
            try:
                directories.handle(folder)
                break
            except (FileNotFoundError, NotADirectoryError):
                # If something else is there, it is removed first, or making the directory fails.
                chain.append(folder)
            except OSError as error:
                raise file_error("write file", path, error) from error
            folder = split(folder)[0]
        missing.update(dict.fromkeys(reversed(chain)))
    return list(missing)


def _take_back(
    entry: JournalEntry,
    directories: Directories,
    journal: Journal | None,
    error: BaseException,
) -> None:
    """Take back what was done before an error, and add to a `PatchError` what could not be."""
    lost = roll_back(entry, directories)
    if journal is not None:
        # If this fails, the entry stays `prepared`, and the next patch takes it back once more,
        # which does no harm.
        with suppress(OSError):
            if lost:
                journal.set_state(entry, State.INTERRUPTED)
            else:
                journal.drop(entry)
    if lost and isinstance(error, PatchError):
        reason = f"{error.reason}\nCould not be put back: {', '.join(lost)}"
        raise PatchError(reason, kind="file") from error
