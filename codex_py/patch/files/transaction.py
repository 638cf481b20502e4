"""Decides how the changes of an entry are carried out, and does it, one step after the other.

If the journal is on the same file system, an old file is renamed into it, which costs nothing and
keeps everything about the file. Its name is missing for a moment, until the new file is renamed to
its place. Renaming the new file over the old one would be slower: ext4 then writes the new one to
the disk at once, and frees the blocks of the old one.
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
"""The limit in bytes for one file, old and new contents together; larger ones are not kept."""
MAX_KEPT_TOGETHER = 256 * 1024 * 1024
"""The limit in bytes for one entry; its files beyond it are not kept."""


def by_folder(changes: Iterable[EntryChange]) -> list[EntryChange]:
    """Sort changes such that each directory is opened only once, however many there are."""
    return sorted(changes, key=lambda change: change.folder)


def check_unchanged(
    change: EntryChange, directories: Directories
) -> os.stat_result | None:
    """Return the status of the entry now; None if there is none.

    Raises:
        PatchError: of kind `file`: it has changed since the patch was planned.
    """
    with failing_to("write file", change.path):
        found = directories.found(change.location)
    if (found and EntryStatus.of(found)) != change.before:
        raise PatchError(
            f"Failed to write file {change.path}: it has changed since the patch was checked",
            kind="file",
        )
    return found


class Transaction:
    """Carries out one entry. Each of its changes has to change something."""

    def __init__(
        self,
        entry: JournalEntry,
        directories: Directories,
        journal: Journal | None,
    ) -> None:
        self._entry = entry
        self._directories = directories
        self._journal = journal
        self._becoming_files = {
            change.location for change in entry.changes if change.exists
        }

    def prepare(self, store: ReplacedStore | None) -> None:
        """Decide the backup of each change: whether its contents are kept, and the path to which
        the old entry is set aside, in `store` if possible."""
        # A file's own name may be as long as a name can be, so that nothing can be added to it.
        prefix = f".codex-py-{os.urandom(6).hex()}"
        room = MAX_KEPT_TOGETHER
        for number, change in enumerate(self._entry.changes):
            before = change.before
            change.temporary = f"{prefix}-{number}.tmp"
            size = len(change.old or b"") + len(change.written or b"")
            is_known = before is None or change.old is not None
            can_keep = is_known and size <= min(MAX_KEPT, room)
            # A file that is overwritten in place cannot be set aside, so it has to be kept.
            if change.backup is not Backup.IN_PLACE and not can_keep:
                change.backup = Backup.NONE
            else:
                room -= size
            if before is None or change.backup is Backup.IN_PLACE:
                continue
            if can_keep and store is not None and store.takes(before):
                change.backup = Backup.STORE
                change.aside = join(store.path, str(number))
            elif not change.exists or not can_keep:
                # An entry of any kind can be renamed, and back again with all its attributes.
                name = f"{prefix}-{number}.old.tmp"
                change.aside = join(self._lasting(change.folder), name)

    def run(self) -> None:
        """Carry out the changes. After a `PatchError`, `roll_back` has to undo what has been
        done."""
        changes = by_folder(self._entry.changes)
        written = [change for change in changes if change.exists]
        removed = [change for change in changes if not change.exists]
        giving_way = [
            folder for folder in self._entry.obsolete if self._gives_way(folder)
        ]
        # Some removals make way: for a directory in place of the file, or for a file in place of the
        # directory that the file is in.
        changing = {*giving_way, *self._entry.made}
        first: list[EntryChange] = []
        last: list[EntryChange] = []
        for change in removed:
            if change.folder in changing or change.location in changing:
                first.append(change)
            else:
                last.append(change)
        for change in first:
            self._set_aside(change)
        for folder in giving_way:
            self._on_directory(self._directories.remove, folder, written)
        for folder in self._entry.made:
            mode = self._entry.modes.get(folder)
            make = partial(self._directories.make, mode=mode)
            self._on_directory(make, folder, written)
        for change in written:
            self._write_beside(change)
        for change in written:
            self._put_in_place(change)
        # Other removals come last, so that a move cut short has its contents twice, not nowhere.
        for change in last:
            self._set_aside(change)

    def _on_directory(
        self,
        act: Callable[[str], None],
        folder: str,
        written: Sequence[EntryChange],
    ) -> None:
        """Make or remove a directory; an error names the file for which it is done."""
        try:
            act(folder)
        except OSError as error:
            if isinstance(error, FileExistsError):
                error = self._in_the_way(folder, error)
            # A file that becomes a directory, or the other way round.
            concerned = (
                change.path
                for change in written
                if f"{change.location}/".startswith(f"{folder}/")
            )
            raise file_error("write file", next(concerned, folder), error) from error

    def _in_the_way(self, folder: str, error: FileExistsError) -> OSError:
        """Say in the error what is at the path of a directory that cannot be made."""
        found = self._directories.status(folder)
        if found is None:
            return error
        if found.is_link:
            return OSError(error.errno, f"{folder} is a symbolic link")
        return OSError(error.errno, f"{folder} is no folder")

    def _write_beside(self, change: EntryChange) -> None:
        """Write the new file under its temporary name."""
        if change.backup is Backup.IN_PLACE:
            return
        before = change.before
        mode = change.mode
        owner = change.owner
        data = change.written or b""
        if before is not None and before.is_file:
            if mode is None:
                mode = before.permissions
            owner = (before.user, before.group)
        try:
            self._directories.write_new(
                change.beside, data, mode, owner, is_link=change.is_link
            )
        except OSError as error:
            self._fall_back(change, error)

    def _put_in_place(self, change: EntryChange) -> None:
        """Rename the new file to its place, or overwrite the old one."""
        check_unchanged(change, self._directories)
        try:
            if change.backup is not Backup.IN_PLACE:
                self._make_way(change)
                self._directories.rename(change.beside, change.location)
        except OSError as error:
            self._fall_back(change, error)
        if change.backup is Backup.IN_PLACE:
            self._overwrite(change)

    def _overwrite(self, change: EntryChange) -> None:
        before = change.before
        if before is None:
            return
        mode = change.mode
        if mode is None:
            mode = before.permissions
        data = change.new or b""
        with failing_to("write file", change.path):
            self._directories.rewrite(change.location, data, mode, before)

    def _fall_back(self, change: EntryChange, error: OSError) -> None:
        """Switch to overwriting in place after an error, or raise it as a `PatchError`."""
        before = change.before
        is_file = before is not None and before.is_file and change.fate == "file"
        if error.errno not in NOT_REPLACEABLE or not is_file or not change.kept:
            raise file_error("write file", change.path, error) from error
        self._directories.unlink(change.beside)
        aside = change.aside
        if aside is not None and self._directories.found(aside) is not None:
            # It has been set aside already: there is no file to overwrite.
            raise file_error("write file", change.path, error) from error
        is_stored = change.backup is Backup.STORE
        change.backup = Backup.IN_PLACE
        change.aside = None
        if is_stored:
            self._keep_copies()

    def _set_aside(self, change: EntryChange) -> None:
        """Remove an entry by renaming it."""
        check_unchanged(change, self._directories)
        with failing_to("delete file", change.path):
            self._make_way(change)

    def _make_way(self, change: EntryChange) -> None:
        """Rename the old entry if it has to be set aside."""
        try:
            if change.aside is not None:
                self._directories.rename(change.location, change.aside)
        except OSError as error:
            # The store may be on another mount of the same device.
            if change.backup is not Backup.STORE or error.errno not in NOT_REPLACEABLE:
                raise
            self._keep_copies()
            if change.aside is not None:
                self._directories.rename(change.location, change.aside)

    def _keep_copies(self) -> None:
        """Have the journal's record keep the contents that have not been renamed into the store yet."""
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
        """Return the nearest directory at or above this one that does not give way to a file."""
        while folder in self._entry.obsolete and self._gives_way(folder):
            folder = split(folder)[0]
        return folder

    def _gives_way(self, folder: str) -> bool:
        """True if a directory has to go before files are written: it, or one above it, becomes a file."""
        above = map(str, Path(folder).parents)
        return not self._becoming_files.isdisjoint((folder, *above))
