"""Keeps the files that patches replace, so that an interrupted patch can be taken back, and any patch undone.

The journal lies in `$CODEX_HOME/codex-py/journal/`. Each patch has a file named for its number and
its state (`12.committed`), so that a change of state is a rename. Beside it is a folder
(`12.replaced`) with the files that the patch replaced or removed, if they could be renamed into it.
The process that changes files holds `lock`: an entry that is still `prepared` when another process
gets the lock belongs to a process that died.

Nothing is synced to the disk. Whatever ends a process, what it has written stays. A crash of the whole
machine may lose the patches of the last seconds and leave their files empty, as after `git apply`.
"""

import os
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.filesystem.private import locked, make_private
from codex_py.patch.files import entry_file
from codex_py.patch.files.change import Backup, JournalEntry, State
from codex_py.patch.files.failures import describe
from codex_py.patch.files.handles import Directories, EntryStatus
from codex_py.patch.files.rollback import finish, roll_back

MAX_TOTAL_BYTES = 256 * 1024 * 1024
MAX_AGE_S = 30 * 24 * 3600
MAX_ENTRIES = 500
"""The limits of the journal. The newest entry is always kept."""

_LOCK_PATIENCE_S = 30.0
_UNFINISHED = {".prepared", ".applied", ".writing"}
"""The suffixes of entries that a process is working on, or was when it died."""
_KEPT = {".committed", ".interrupted", ".damaged"}
"""The suffixes of entries that are not under way."""
_STORE = ".replaced"


class ReplacedStore(NamedTuple):
    """A directory for the files that one entry replaces or removes. It may not exist yet."""

    path: str
    """The absolute path, without links."""
    device: int

    def takes(self, status: EntryStatus) -> bool:
        """True if an entry can be renamed into it: a file on the same device."""
        return status.is_file and status.device == self.device


class Journal:
    """The journal of all patches. Creating this object touches nothing.

    Args:
        home: `$CODEX_HOME`, absolute.
        cwd: absolute; the directory that new entries name as theirs.
    """

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        self._folder = home / "codex-py" / "journal"

    def recover(self) -> list[str]:
        """Recover from processes that died: take back half-done patches, and complete those whose
        changes were all made.

        Call this before a patch is planned. If another process has the lock, nothing is done.

        Returns:
            A sentence for each patch that was recovered.
        """
        if not any(path.suffix in _UNFINISHED for path in self._files()):
            return []
        try:
            with self.locked(patience_s=0):
                return self.recover_locked()
        except (OSError, PatchError):
            return []

    @contextmanager
    def locked(self, patience_s: float = _LOCK_PATIENCE_S) -> Generator[None]:
        """Keep other processes from changing files.

        Raises:
            PatchError: of kind `file`: another process has the lock for too long.
            OSError: the journal cannot be kept.
        """
        make_private(self._folder)
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    locked(self._folder / "lock", patience_s, is_file=True)
                )
            except TimeoutError as error:
                raise PatchError(
                    "Another process is writing a patch and does not come to an end",
                    kind="file",
                ) from error
            yield

    def recover_locked(self) -> list[str]:
        """Do what `recover` does. The caller holds the lock."""
        told: list[str] = []
        for path in self._files():
            if path.suffix == ".writing":
                # The patch had not begun: it waits until its entry is whole.
                with suppress(OSError):
                    path.unlink()
                self._remove_empty_store(_number(path))
            elif path.suffix in _UNFINISHED:
                told.append(self._recover(path))
        return told

    def next_entry(self) -> tuple[int, ReplacedStore]:
        """Return the next number, and the store of that entry. The caller holds the lock."""
        numbers = [_number(path) for path in self._files()]
        number = 1 + max(numbers, default=0)
        device = self._folder.stat().st_dev
        return number, ReplacedStore(self._store(number), device)

    def write(self, entry: JournalEntry) -> None:
        """Write an entry in its state: before it is carried out, and again if its backups change.

        The caller holds the lock.

        Raises:
            PatchError: of kind `file`: it could not be written, and nothing is left of it.
        """
        entry.cwd = str(self.cwd)
        unfinished = self._folder / f"{entry.number}.writing"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            fd = os.open(unfinished, flags, 0o600)
            with os.fdopen(fd, "wb", buffering=1024 * 1024) as stream:
                stream.writelines(entry_file.encoded(entry))
            if any(change.backup is Backup.STORE for change in entry.changes):
                store = Path(self._store(entry.number))
                store.mkdir(mode=0o700, exist_ok=True)
            unfinished.rename(self._path(entry.number, entry.state))
        except OSError as error:
            # After an interrupt or a bug, `recover` does this.
            with suppress(OSError):
                unfinished.unlink()
            self._remove_empty_store(entry.number)
            raise PatchError(
                f"Failed to keep what the patch replaces in {self._folder}, so nothing was changed: "
                f"{describe(error)}",
                kind="file",
            ) from error

    def record(self, entry: JournalEntry) -> int:
        """Keep an entry whose changes have already been made. Returns its number.

        Raises the same as `locked` and `write`.
        """
        with self.locked():
            self.recover_locked()
            entry.number, _ = self.next_entry()
            entry.state = State.COMMITTED
            self.write(entry)
            self.prune()
        return entry.number

    def set_state(self, entry: JournalEntry, state: State) -> None:
        """Record the progress of an entry."""
        if state != entry.state:
            self._path(entry.number, entry.state).rename(
                self._path(entry.number, state)
            )
            entry.state = state

    def drop(self, entry: JournalEntry) -> None:
        """Forget an entry whose changes have been taken back."""
        self._remove_empty_store(entry.number)
        # It may have any state: an interrupt can come between the renaming and `entry.state`.
        for state in State:
            self._path(entry.number, state).unlink(missing_ok=True)

    def prune(self) -> None:
        """Forget the oldest entries beyond the limits. The caller holds the lock."""
        files = self._files()
        stores = {_number(path) for path in files if path.suffix == _STORE}
        entries = {_number(path) for path in files if path.suffix != _STORE}
        for number in stores - entries:
            # A process was killed after it had removed the entry.
            self._remove_store(number)
        kept = [path for path in files if path.suffix in _KEPT]
        kept.sort(key=_number, reverse=True)
        total = 0
        oldest = time.time() - MAX_AGE_S
        for rank, path in enumerate(kept):
            # What cannot be looked at or removed is left for the next time.
            with suppress(OSError):
                found = path.stat()
                total += found.st_size
                if _number(path) in stores:
                    total += entry_file.stored_bytes(path)
                is_too_much = rank >= MAX_ENTRIES or total > MAX_TOTAL_BYTES
                is_too_old = found.st_mtime < oldest
                if rank > 0 and (is_too_much or is_too_old):
                    path.unlink()
                    self._remove_store(_number(path))

    def numbers(self) -> list[int]:
        """The numbers of the entries that are not under way, the newest first."""
        kept = [path for path in self._files() if path.suffix in _KEPT]
        return sorted(map(_number, kept), reverse=True)

    def read(self, number: int, *, with_contents: bool = True) -> JournalEntry:
        """Read an entry that is not under way.

        Raises:
            DamagedEntry: there is none of this number, or it cannot be read.
        """
        for path in self._files():
            if _number(path) == number and path.suffix in _KEPT:
                entry = self._read(path, with_contents=with_contents)
                if with_contents:
                    entry_file.read_stored(entry)
                return entry
        raise entry_file.DamagedEntry(f"there is no entry {number}")

    def _files(self) -> list[Path]:
        """The files and stores of all entries."""
        try:
            return [path for path in self._folder.iterdir() if path.stem.isdecimal()]
        except OSError:
            return []

    def _path(self, number: int, state: str) -> Path:
        return self._folder / f"{number}.{state}"

    def _store(self, number: int) -> str:
        """The path of an entry's store, without links, as `Directories` needs it."""
        return os.path.realpath(self._path(number, _STORE[1:]))

    def _remove_empty_store(self, number: int) -> None:
        with suppress(OSError):
            self._path(number, _STORE[1:]).rmdir()

    def _remove_store(self, number: int) -> None:
        store = self._path(number, _STORE[1:])
        with suppress(OSError):
            for path in store.iterdir():
                path.unlink()
            store.rmdir()

    def _read(self, path: Path, *, with_contents: bool) -> JournalEntry:
        if path.suffix == ".damaged":
            raise entry_file.DamagedEntry("it was found damaged")
        number = _number(path)
        entry = entry_file.read_entry(
            path, self._store(number), with_contents=with_contents
        )
        entry.number = number
        entry.state = State(path.suffix[1:])
        return entry

    def _recover(self, path: Path) -> str:
        """Complete or take back one unfinished entry. Returns a sentence that says so."""
        try:
            entry = self._read(path, with_contents=True)
        except entry_file.DamagedEntry as error:
            path.rename(path.with_suffix(".damaged"))
            return f"A patch was cut off and cannot be taken back: its record is damaged ({error})."
        with Directories() as directories:
            if entry.state == State.APPLIED:
                finish(entry, directories)
                self.set_state(entry, State.COMMITTED)
                return f"A patch in {entry.cwd} was cut off after its last change; it is complete."
            lost = roll_back(entry, directories)
        told = f"A patch in {entry.cwd} was cut off while it was written; it has been taken back"
        if not lost:
            self.drop(entry)
            return f"{told}."
        self.set_state(entry, State.INTERRUPTED)
        return f"{told}, but for what was edited since: {', '.join(lost)}."


def _number(path: Path) -> int:
    return int(path.stem)
