"""Keep what patches replace, so that an interrupted patch can be taken back, and any patch undone.

The journal lies in `$CODEX_HOME/codex-py/journal/`. Each patch has a file named for its number and
its state (`12.committed`), so that a change of state is a rename. Beside it is a folder
(`12.replaced`) with the files that the patch replaced or removed, if they could be renamed into it.
The process that changes files holds `lock`: an entry that is still `prepared` when another process
gets the lock belongs to a process that died.

Nothing is synced to the disk. What a process has written survives its end, however that comes; a crash of
the whole machine may lose what was patched in the last seconds before it, and leave files empty, as it may
after `git apply`.
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
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.rollback import finish, roll_back

MAX_TOTAL_BYTES = 256 * 1024 * 1024
MAX_AGE_S = 30 * 24 * 3600
MAX_ENTRIES = 500
"""The newest entry stays whatever its size and age."""

_LOCK_PATIENCE_S = 30.0
_UNFINISHED = {".prepared", ".applied", ".writing"}
_KEPT = {".committed", ".interrupted", ".damaged"}
_STORE = ".replaced"


class ReplacedStore(NamedTuple):
    """A directory for what the changes of one entry replace. It need not be there yet."""

    path: str
    """The absolute path, without links."""
    device: int
    """Files on another device cannot be renamed into it."""


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
        """Take back half-done patches of dead processes, and complete those that were finished.

        Call this before a patch is planned. If another process is at work, everything is left to
        it.

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
                # Nothing is changed before an entry is whole.
                path.unlink(missing_ok=True)
                self._remove_empty_store(_number(path))
            elif path.suffix in _UNFINISHED:
                told.append(self._recover(path))
        return told

    def next_entry(self) -> tuple[int, ReplacedStore]:
        """The next number, and the directory for what is replaced. The caller holds the lock."""
        numbers = [_number(path) for path in self._files()]
        number = 1 + max(numbers, default=0)
        device = self._folder.stat().st_dev
        return number, ReplacedStore(self._store(number), device)

    def write(self, entry: JournalEntry) -> None:
        """Write an entry in its state, before it is carried out or when the way to do so changes.

        The caller holds the lock.

        Raises:
            PatchError: of kind `file`: it could not be written, and nothing is left of it.
        """
        entry.cwd = str(self.cwd)
        unfinished = self._folder / f"{entry.number}.writing"
        try:
            fd = os.open(
                unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(fd, "wb", buffering=1024 * 1024) as stream:
                stream.writelines(entry_file.encoded(entry))
            if any(change.backup is Backup.STORE for change in entry.changes):
                Path(self._store(entry.number)).mkdir(mode=0o700, exist_ok=True)
            unfinished.rename(self._path(entry.number, entry.state))
        except OSError as error:
            # What an interrupt or a bug leaves behind is removed by `recover`.
            with suppress(OSError):
                unfinished.unlink()
            self._remove_empty_store(entry.number)
            raise PatchError(
                f"Failed to keep what the patch replaces in {self._folder}, so nothing was changed: "
                f"{describe(error)}",
                kind="file",
            ) from error

    def record(self, entry: JournalEntry) -> int:
        """Keep an entry whose changes were made by others. Returns its number. Raises as `locked` and `write`."""
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
        # An interrupt may have come just after it had changed its state.
        for state in State:
            self._path(entry.number, state).unlink(missing_ok=True)

    def prune(self) -> None:
        """Forget the oldest entries beyond the limits. The caller holds the lock."""
        total = 0
        oldest = time.time() - MAX_AGE_S
        files = self._files()
        kept = [path for path in files if path.suffix in _KEPT]
        stores = {_number(path) for path in files if path.suffix == _STORE}
        for number in stores - {
            _number(path) for path in files if path.suffix != _STORE
        }:
            # The process that removed the entry was cut off.
            self._remove_store(number)
        for rank, path in enumerate(sorted(kept, key=_number, reverse=True)):
            # What cannot be looked at or removed stays until another time.
            with suppress(OSError):
                found = path.stat()
                total += found.st_size
                if _number(path) in stores:
                    total += entry_file.stored_bytes(path)
                if rank and (
                    rank >= MAX_ENTRIES
                    or total > MAX_TOTAL_BYTES
                    or found.st_mtime < oldest
                ):
                    path.unlink()
                    self._remove_store(_number(path))

    def numbers(self) -> list[int]:
        """The numbers of the entries that are not under way, the newest first."""
        kept = [_number(path) for path in self._files() if path.suffix in _KEPT]
        return sorted(kept, reverse=True)

    def read(self, number: int, *, with_contents: bool = True) -> JournalEntry:
        """Read an entry that is not under way. Raises a `DamagedEntry` if that is not possible."""
        for path in self._files():
            if _number(path) == number and path.suffix in _KEPT:
                entry = self._read(path, with_contents=with_contents)
                if with_contents:
                    entry_file.read_stored(entry)
                return entry
        raise entry_file.DamagedEntry(f"there is no entry {number}")

    def _files(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if path.stem.isdecimal()]
        except OSError:
            return []

    def _path(self, number: int, state: str) -> Path:
        return self._folder / f"{number}.{state}"

    def _store(self, number: int) -> str:
        """The path of a store without links, as `Directories` needs it."""
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
