"""Decide how the changes of an entry are carried out, and do it, one step after the other.

If the journal is on the same file system, the old file is renamed into it, which costs nothing and
keeps everything about it. Its name is missing for a moment, until the new file is renamed to its
place. That is also faster than renaming one file over another: ext4 then writes the new one to the
disk at once, and frees the blocks of the old one.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.files.change import Backup, EntryChange, JournalEntry
from codex_py.patch.files.failures import failing_to, file_error
from codex_py.patch.files.handles import (
    NOT_REPLACEABLE,
    Directories,
    EntryStatus,
    join,
    split,
)
from codex_py.patch.files.journal import Journal, ReplacedStore

MAX_KEPT = 32 * 1024 * 1024
"""Bytes of one file's contents, old and new together, that are kept to be brought back."""
MAX_KEPT_TOGETHER = 256 * 1024 * 1024
"""The limit in bytes for one entry; later files are not kept."""


def by_folder(changes: Iterable[EntryChange]) -> list[EntryChange]:
    """Sort changes such that each directory is opened only once, however many there are."""
    return sorted(changes, key=lambda change: change.folder)


def check_unchanged(
    change: EntryChange, directories: Directories
) -> os.stat_result | None:
    """The status of the entry now; a `PatchError` if it has changed since the patch was planned."""
    with failing_to("write file", change.path):
        found = directories.found(change.location)
    if (found and EntryStatus.of(found)) != change.before:
        raise PatchError(
            f"Failed to write file {change.path}: it has changed since the patch was checked",
            kind="file",
        )
    return found


class Transaction:
    """Carries out one entry, whose changes all change something."""

    def __init__(
        self, entry: JournalEntry, directories: Directories, journal: Journal | None
    ) -> None:
        self._entry = entry
        self._directories = directories
        self._journal = journal
        self._becoming_files = {
            change.location for change in entry.changes if change.exists
        }

    def prepare(self, store: ReplacedStore | None) -> None:
        """Decide for each change which file is set aside, in `store` if possible, and which
        contents are kept."""
        # Not made from the files' own names, which may be as long as a name can be.
        prefix = f".codex-py-{os.urandom(6).hex()}"
        room = MAX_KEPT_TOGETHER
        for number, change in enumerate(self._entry.changes):
            before = change.before
            size = len(change.old or b"") + len(change.written or b"")
            change.temporary = f"{prefix}-{number}.tmp"
            is_small = size <= min(MAX_KEPT, room) and (
                before is None or change.old is not None
            )
            # A file that is overwritten in place cannot be set aside.
            if change.backup is not Backup.IN_PLACE and not is_small:
                change.backup = Backup.NONE
            else:
                room -= size
            if before is None or change.backup is Backup.IN_PLACE:
                continue
            if store and is_small and before.is_file and before.device == store.device:
                change.backup = Backup.STORE
                change.aside = join(store.path, str(number))
            elif not change.exists or not is_small:
                # Whatever it is, renaming keeps everything about it for the way back.
                change.aside = join(
                    self._lasting(change.folder), f"{prefix}-{number}.old.tmp"
                )

    def run(self) -> None:
        """Carry out the changes. After a `PatchError`, `roll_back` has to undo what has been
        done."""
        changes = by_folder(self._entry.changes)
        written = [change for change in changes if change.exists]
        # Files that become directories, and directories that go because one becomes a file.
        early = {folder for folder in self._entry.obsolete if self._gives_way(folder)}
        early.update(self._entry.made)
        removed = [change for change in changes if not change.exists]
        gone = {
            change.location
            for change in removed
            if {change.folder, change.location} & early
        }
        for change in removed:
            if change.location in gone:
                self._set_aside(change)
        for folder in self._entry.obsolete:
            if folder in early:
                self._on_directory(self._directories.remove, folder, written)
        for folder in self._entry.made:
            mode = self._entry.modes.get(folder)
            self._on_directory(
                partial(self._directories.make, mode=mode), folder, written
            )
        for change in written:
            self._write_beside(change)
        for change in written:
            self._put_in_place(change)
        # Other removals come last, so that a move cut short has its contents twice, not nowhere.
        for change in removed:
            if change.location not in gone:
                self._set_aside(change)

    def _on_directory(
        self, act: Callable[[str], None], folder: str, written: Sequence[EntryChange]
    ) -> None:
        try:
            act(folder)
        except OSError as error:
            if isinstance(error, FileExistsError) and (
                found := self._directories.status(folder)
            ):
                if found.is_link:
                    kind = "a symbolic link"
                else:
                    kind = "no folder"
                error = OSError(error.errno, f"{folder} is {kind}")
            # A file that becomes a directory, or the other way round.
            concerned = (
                change.path
                for change in written
                if f"{change.location}/".startswith(f"{folder}/")
            )
            raise file_error("write file", next(concerned, folder), error) from error

    def _write_beside(self, change: EntryChange) -> None:
        if change.backup is Backup.IN_PLACE:
            return
        before = change.before
        mode = change.mode
        owner = change.owner
        data = change.written or b""
        if before is not None and before.is_file:
            mode = before.permissions if mode is None else mode
            owner = (before.user, before.group)
        try:
            self._directories.write_new(
                change.beside, data, mode, owner, is_link=change.is_link
            )
        except OSError as error:
            self._fall_back(change, error)

    def _put_in_place(self, change: EntryChange) -> None:
        check_unchanged(change, self._directories)
        try:
            if change.backup is not Backup.IN_PLACE:
                self._make_way(change)
                self._directories.rename(change.beside, change.location)
        except OSError as error:
            self._fall_back(change, error)
        if change.backup is Backup.IN_PLACE and (before := change.before) is not None:
            if change.mode is None:
                mode = before.permissions
            else:
                mode = change.mode
            with failing_to("write file", change.path):
                self._directories.rewrite(
                    change.location, change.new or b"", mode, before
                )

    def _fall_back(self, change: EntryChange, error: OSError) -> None:
        """Switch to writing in place if a file cannot be replaced."""
        is_file = (
            change.before is not None
            and change.before.is_file
            and change.fate == "file"
        )
        if error.errno not in NOT_REPLACEABLE or not is_file or not change.kept:
            raise file_error("write file", change.path, error) from error
        self._directories.unlink(change.beside)
        if (
            change.aside is not None
            and self._directories.found(change.aside) is not None
        ):
            # It has been set aside already: there is no file to overwrite.
            raise file_error("write file", change.path, error) from error
        is_stored = change.backup is Backup.STORE
        change.backup = Backup.IN_PLACE
        change.aside = None
        if is_stored:
            self._keep_copies()

    def _set_aside(self, change: EntryChange) -> None:
        check_unchanged(change, self._directories)
        with failing_to("delete file", change.path):
            self._make_way(change)

    def _make_way(self, change: EntryChange) -> None:
        """Rename the old entry if it has to be set aside."""
        try:
            if change.aside is not None:
                self._directories.rename(change.location, change.aside)
        except OSError as error:
            # Mounts can differ though the device does not.
            if change.backup is not Backup.STORE or error.errno not in NOT_REPLACEABLE:
                raise
            self._keep_copies()
            if change.aside is not None:
                self._directories.rename(change.location, change.aside)

    def _keep_copies(self) -> None:
        """Have the journal copy what has not been renamed into it yet."""
        for change in self._entry.changes:
            is_stored = change.backup is Backup.STORE
            if is_stored and self._directories.found(change.aside or "") is None:
                change.backup = Backup.RECORD
                change.aside = None
                if not change.exists:
                    change.aside = join(self._lasting(change.folder), change.temporary)
        if self._journal is not None:
            self._journal.write(self._entry)

    def _lasting(self, folder: str) -> str:
        """The nearest directory at or above this one that does not give way to a file."""
        while folder in self._entry.obsolete and self._gives_way(folder):
            folder = split(folder)[0]
        return folder

    def _gives_way(self, folder: str) -> bool:
        """True if a directory has to go before files are written: it, or one above it, becomes a file."""
        above = map(str, Path(folder).parents)
        return not self._becoming_files.isdisjoint((folder, *above))
