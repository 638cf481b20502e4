"""Write planned changes to disk: all of them, or none.

A file is written beside its place and renamed into it, so that nobody ever sees half of it. The old
files are kept until the last change is made, and put back if a change fails. With a journal they
are put back even if the process is killed, and can be brought back later.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.files.change import Backup, JournalEntry, State
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
    """Sentences about patches that were recovered before, and about why this one cannot be
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
                is_left = entry.obsolete or any(
                    c.aside and c.backup is not Backup.STORE for c in entry.changes
                )
                journal.set_state(entry, State.APPLIED if is_left else State.COMMITTED)
        # An interrupt leaves as little behind as an error does.
        except BaseException as error:
            _take_back(entry, directories, journal, error)
            raise
        finish(entry, directories)
        if journal is not None:
            # It is committed, whether that can be noted or not.
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


def _check(entry: JournalEntry, directories: Directories) -> None:
    """Drop the changes of an entry that change nothing, and check that all files are as they were
    when planned."""
    entry.changes = [
        change
        for change in entry.changes
        if change.exists
        or (change.before is not None and not change.before.is_directory)
    ]
    inodes = Counter(
        (change.before.device, change.before.inode)
        for change in entry.changes
        if change.before is not None
    )
    for change in by_folder(entry.changes):
        if change.location in entry.obsolete:
            continue
        found = check_unchanged(change, directories)
        has_links = (
            found is not None and found.st_nlink > 1 and EntryStatus.of(found).is_file
        )
        is_written = change.fate == "file" and change.old is not None
        # If two links to one file both change, they become separate files, as when one is moved
        # over the other.
        is_shared = found is not None and inodes[found.st_dev, found.st_ino] > 1
        if has_links and is_written and not change.breaks_links and not is_shared:
            change.backup = Backup.IN_PLACE


def _modes(folders: Iterable[str], directories: Directories) -> dict[str, int]:
    modes: dict[str, int] = {}
    for folder in folders:
        # A folder that cannot be looked at cannot be removed either.
        with suppress(OSError):
            found = directories.status(folder)
            if found is not None and found.is_directory:
                modes[folder] = found.permissions
    return modes


def _missing_directories(entry: JournalEntry, directories: Directories) -> list[str]:
    """The missing directories among those to be made, and those that written files need, the
    outermost first."""
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
                # Something else than a directory is there: it is removed first, or in the way later.
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
    lost = roll_back(entry, directories)
    if journal is not None:
        # An entry that stays `prepared` is looked at again by the next patch, which does no harm.
        with suppress(OSError):
            if lost:
                journal.set_state(entry, State.INTERRUPTED)
            else:
                journal.drop(entry)
    if lost and isinstance(error, PatchError):
        reason = f"{error.reason}\nCould not be put back: {', '.join(lost)}"
        raise PatchError(reason, kind="file") from error
