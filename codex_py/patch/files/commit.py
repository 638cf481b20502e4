"""Write planned changes to disk: all of them, or none.

A file is written beside its place and renamed into it, so that nobody ever sees half of it. What was
there before is kept until the last change is made, and put back if one of them fails. With a journal it
is put back even if the process is killed, and can be brought back later.

Where the journal is on the same file system, what a file was goes there by renaming, which costs nothing
and keeps everything about it. For the moment until the new file is renamed to its place, its name is
missing. That is also faster than to rename one file over another: ext4 then writes the new one to the disk
at once, and frees the blocks of the old one.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from codex_py.errors import PatchError
from codex_py.patch.failures import describe, file_error
from codex_py.patch.files.change import (
    Change,
    Entry,
    State,
    Status,
    Store,
    changes_of,
    gives_way,
    keep_copies,
)
from codex_py.patch.files.handles import (
    NOT_REPLACEABLE,
    Directories,
    rewrite,
    split,
    unlink_if_there,
    write_new,
)
from codex_py.patch.files.journal import Journal
from codex_py.patch.files.rollback import finish, roll_back
from codex_py.patch.files.tree import PlannedFile


@dataclass(frozen=True, slots=True)
class Committed:
    """What there is to say about changes that have been made."""

    number: int | None
    """The journal's, for `undo`; None where none was kept."""
    notes: tuple[str, ...] = ()
    """A sentence each: what was recovered before, and why this can not be undone."""


def commit(
    files: Sequence[PlannedFile],
    journal: Journal | None = None,
    *,
    undoes: int | None = None,
    obsolete: Sequence[str] = (),
    made: Sequence[str] = (),
    modes: Mapping[str, int] | None = None,
) -> Committed:
    """Make the changes. Whatever ends this early, an interrupt included, nothing stays changed.

    Args:
        undoes: number of the entry that is taken back.
        obsolete: directories to remove if they are empty then, the innermost first. One that is to become
            a file has to be.
        made: directories to make, if only to be empty, the outermost first. Those that files need are made
            anyway.
        modes: permission bits of directories that are made; others go by the umask.

    Raises:
        PatchError: of kind `file`; the message says so if something could not be put back.
    """
    notes: list[str] = []
    number, store = 0, None
    with ExitStack() as stack:
        directories = stack.enter_context(Directories())
        if journal is not None:
            try:
                stack.enter_context(journal.locked())
                notes += journal.recover_locked()
                number, store = journal.next_entry()
            except OSError as error:
                notes.append(
                    f"This patch can not be undone: no journal is kept: {describe(error)}."
                )
                journal = None
        changes = _checked(files, obsolete, store, directories)
        entry = Entry(changes, undoes, list(obsolete), number=number)
        entry.made = _missing_directories(entry, made, directories)
        entry.modes = {**(modes or {}), **_modes(obsolete, directories)}
        if journal is not None:
            journal.write(entry)
        with _all_or_nothing(entry, directories, journal):
            _Transaction(entry, directories, journal).run()
            if journal is not None:
                journal.set_state(
                    entry, State.APPLIED if entry.needs_finishing else State.COMMITTED
                )
        finish(entry, directories)
        if journal is not None:
            # It is committed, whether that can be noted or not.
            with suppress(OSError):
                journal.set_state(entry, State.COMMITTED)
            journal.prune()
    if journal is None:
        return Committed(None, tuple(notes))
    if lost := [change.path for change in entry.changes if not change.kept]:
        notes.append(
            f"This patch can not be undone: what was in {', '.join(lost[:3])}"
            f"{' and others' if len(lost) > 3 else ''} is too large to be kept, or can not be read."
        )
    return Committed(entry.number, tuple(notes))


def _checked(
    files: Sequence[PlannedFile],
    obsolete: Sequence[str],
    store: Store | None,
    directories: Directories,
) -> list[Change]:
    """The changes, if all files are still as they were when the patch was checked."""
    try:
        changes = changes_of(files, obsolete, store)
    except OSError as error:
        raise PatchError(
            f"A link is gone that the patch removes: {describe(error)}", kind="file"
        ) from error
    for change in _by_folder(changes):
        if not obsolete or change.location not in obsolete:
            _check_unchanged(change, directories)
    return changes


def _by_folder(changes: Iterable[Change]) -> list[Change]:
    """In an order in which each directory is opened but once, however many there are."""
    return sorted(changes, key=lambda change: change.folder)


def _check_unchanged(change: Change, directories: Directories) -> None:
    try:
        found = directories.status(change.folder, change.name)
    except OSError as error:
        raise file_error("write file", change.path, error) from error
    if Status.of(found) != change.before:
        raise PatchError(
            f"Failed to write file {change.path}: it has changed since the patch was checked",
            kind="file",
        )


def _modes(folders: Sequence[str], directories: Directories) -> dict[str, int]:
    """Permission bits of directories that are there."""
    modes: dict[str, int] = {}
    for folder in folders:
        # What can not be looked at can not be removed either.
        with suppress(OSError):
            found = directories.status(*split(folder))
            if found is not None and stat.S_ISDIR(found.st_mode):
                modes[folder] = stat.S_IMODE(found.st_mode)
    return modes


def _missing_directories(entry: Entry, made: Sequence[str], directories: Directories) -> list[str]:
    """Directories to be made, or that written files need, the outermost first."""
    missing: dict[str, None] = {}
    needed_by = {folder: folder for folder in made}
    needed_by |= {change.folder: change.path for change in entry.changes if change.exists}
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


@contextmanager
def _all_or_nothing(
    entry: Entry, directories: Directories, journal: Journal | None
) -> Generator[None]:
    try:
        yield
    except BaseException as error:
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
        raise


class _Transaction:
    def __init__(self, entry: Entry, directories: Directories, journal: Journal | None) -> None:
        self._entry = entry
        self._directories = directories
        self._journal = journal

    def run(self) -> None:
        """
        Raises:
            PatchError: something could not be changed; what has been is for `roll_back`.
        """
        changes = _by_folder(self._entry.changes)
        written = [change for change in changes if change.exists]
        removed = [change for change in changes if not change.exists]
        early = self._in_the_way(written)
        # Other removals come last, so that a move cut short has its contents twice, not nowhere.
        for change in removed:
            if change.folder in early or change.location in early:
                self._set_aside(change)
        self._make_room(early, written)
        for change in written:
            self._write_beside(change)
        for change in written:
            self._put_in_place(change)
        for change in removed:
            if not (change.folder in early or change.location in early):
                self._set_aside(change)

    def _in_the_way(self, written: Sequence[Change]) -> set[str]:
        """What becomes a directory, and directories that have to go because one becomes a file."""
        becoming_files = {change.location for change in written}
        going = {folder for folder in self._entry.obsolete if gives_way(folder, becoming_files)}
        return going.union(self._entry.made)

    def _make_room(self, early: set[str], written: Sequence[Change]) -> None:
        for folder in self._entry.obsolete:
            if folder in early:
                self._on_directory(self._directories.remove, folder, written)
        for folder in self._entry.made:
            mode = self._entry.modes.get(folder)
            self._on_directory(partial(self._directories.make, mode=mode), folder, written)

    def _on_directory(
        self, act: Callable[[str], None], folder: str, written: Sequence[Change]
    ) -> None:
        try:
            act(folder)
        except OSError as error:
            # A file that becomes a directory, or the other way round.
            below = f"{folder}/"
            concerned = (
                change.path
                for change in written
                if f"{change.folder}/".startswith(below) or change.location == folder
            )
            raise file_error("write file", next(concerned, folder), error) from error

    def _write_beside(self, change: Change) -> None:
        if change.in_place:
            return
        before, mode, owner = change.before, change.mode, change.owner
        if before is not None and stat.S_ISREG(before.mode):
            mode = before.permissions if mode is None else mode
            owner = (before.user, before.group)
        folder = self._directories.handle(change.folder)
        try:
            if change.is_link:
                os.symlink(change.new or b"", change.temporary, dir_fd=folder)
            else:
                write_new(change.temporary, change.new or b"", mode, owner, dir_fd=folder)
        except OSError as error:
            self._fall_back(change, error)

    def _put_in_place(self, change: Change) -> None:
        _check_unchanged(change, self._directories)
        folder = self._directories.handle(change.folder)
        try:
            if not change.in_place:
                self._make_way(change)
                os.rename(change.temporary, change.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            self._fall_back(change, error)
        if change.in_place and change.before is not None:
            before = change.before
            mode = before.permissions if change.mode is None else change.mode
            inode = (before.device, before.inode)
            try:
                rewrite(change.name, change.new or b"", mode, inode, dir_fd=folder)
            except OSError as error:
                raise file_error("write file", change.path, error) from error

    def _fall_back(self, change: Change, error: OSError) -> None:
        """Go over to writing in place, if a file can not be replaced."""
        replaceable = change.before is not None and stat.S_ISREG(change.before.mode)
        if (
            error.errno not in NOT_REPLACEABLE
            or not replaceable
            or not change.kept
            or change.is_link
        ):
            raise file_error("write file", change.path, error) from error
        unlink_if_there(change.temporary, dir_fd=self._directories.handle(change.folder))
        change.in_place = True
        if change.in_journal:
            self._keep_copies()

    def _set_aside(self, change: Change) -> None:
        _check_unchanged(change, self._directories)
        try:
            self._make_way(change)
        except OSError as error:
            raise file_error("delete file", change.path, error) from error

    def _make_way(self, change: Change) -> None:
        """Rename what is to be set aside."""
        if change.in_journal:
            try:
                self._rename_aside(change)
            except OSError as error:
                # Mounts can differ though the device does not.
                if error.errno not in NOT_REPLACEABLE:
                    raise
                self._keep_copies()
            else:
                return
        if change.aside is not None:
            self._rename_aside(change)

    def _keep_copies(self) -> None:
        """Have the journal copy what has not been renamed into it yet."""
        left = [
            change
            for change in self._entry.changes
            if change.in_journal and self._directories.status(*split(change.aside or "")) is None
        ]
        keep_copies(self._entry, left)
        if self._journal is not None:
            self._journal.write(self._entry)

    def _rename_aside(self, change: Change) -> None:
        folder, name = split(change.aside or "")
        source = self._directories.handle(change.folder)
        target = self._directories.handle(folder)
        os.rename(change.name, name, src_dir_fd=source, dst_dir_fd=target)
