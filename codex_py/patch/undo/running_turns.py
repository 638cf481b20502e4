"""Keeps a record of each running turn, and makes the turn's entry for the journal.

The record is the file `THREAD.turn` in the store of the work tree. The process of the turn locks it.
If that process dies, `recover_turns` makes the entry later, from the work tree as it is then.
"""

import json
import os
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Self

from codex_py.errors import PatchError
from codex_py.filesystem.private import lock
from codex_py.filesystem.reading import NotOrdinary, open_ordinary
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.files.change import Backup, EntryChange, JournalEntry, TurnOfEntry
from codex_py.patch.files.handles import EntryStatus
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies.changes import changes_between
from codex_py.patch.undo.copies.earlier import earlier_by_mark, earlier_contents
from codex_py.patch.undo.copies.folders import Held
from codex_py.patch.undo.copies.snapshots import Snapshot, Snapshots, snapshots_of
from codex_py.patch.undo.copies.store import SnapshotError, stores
from codex_py.patch.undo.entries import Entries
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile

_MAX_BYTES = 1 << 26
"""The limit for the file of a record; a longer one counts as damaged."""
_LOST = "A turn was cut off and cannot be undone"


@frozen
class TurnRecord:
    """What has to be known of a turn to make its entry after its process has died."""

    root: str
    """The top of the work tree, absolute, without links."""
    cwd: str
    """The working directory of the session, absolute."""
    thread_id: str
    before: Snapshot
    """The first copy of the turn."""
    patches: list[int]
    """The numbers of patches after that copy. Earlier ones are not among the differences from it,
    and stay entries of their own."""
    began: float
    """The time when the work tree was first copied, in seconds since the epoch."""

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """Read a record from its file. Raises a `ValueError` if it is damaged."""
        try:
            found = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
            copy = found.pop("before")
            unkept = {
                name: (size, ctime_ns)
                for name, (size, ctime_ns) in copy.pop("unkept").items()
            }
            held = {
                name: Held(*values) for name, values in copy.pop("held", {}).items()
            }
            before = Snapshot(**copy, unkept=unkept, held=held)
            return cls(before=before, **found)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"no record of a turn: {error!r}") from error


class RunningTurnRecord:
    """The file of a record. Until the turn ends, other processes see it complete and locked.

    Creating and changing it raise an `OSError` if it cannot be written.

    Args:
        store: the folder of the store.
    """

    def __init__(self, record: TurnRecord, store: Path) -> None:
        self.record = record
        # It is encoded only once: it may be long, and a patch does not change it.
        self._before = json.dumps(_fields_of(record.before))
        self._path = store / f"{record.thread_id}.turn"
        new = self._path.with_suffix(".new")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._descriptor = os.open(new, flags, 0o600)
        try:
            lock(self._descriptor, 0)
            self._write()
            new.rename(self._path)
        except OSError:
            os.close(self._descriptor)
            raise

    def add(self, patch: int) -> None:
        """Add the number of a patch."""
        self.record.patches.append(patch)
        self._write()

    def end(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)

    def _write(self) -> None:
        others = json.dumps(_fields_of(self.record, but="before"))
        # The first brace of the other fields makes way for the field that is encoded already.
        data = f'{{"before": {self._before}, {others[1:]}'.encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))


def _fields_of(record: TurnRecord | Snapshot, but: str = "") -> dict[str, object]:
    # `asdict` would copy thousands of values.
    names = [field.name for field in fields(record) if field.name != but]
    return {name: getattr(record, name) for name in names}


def recover_turns(
    home: Path,
    cwd: Path,
    environment: Mapping[str, str],
    own: Snapshots | None = None,
) -> list[str]:
    """Write entries for turns whose process has died.

    Args:
        cwd: absolute. Turns in this folder and below it are recovered.
        own: if given, turns in this work tree are recovered instead.

    Returns:
        A sentence for each turn that cannot be undone.
    """
    told: list[str] = []
    store = "*"
    if own:
        store = own.store.path.name
    for path in sorted(stores(home).glob(f"{store}/*.turn")):
        try:
            os.close(open_ordinary(path))
        except NotOrdinary as error:
            told.append(f"{_LOST}: its record is damaged ({error}).")
            # It is kept, but not reported again.
            with suppress(OSError):
                path.rename(path.with_suffix(".damaged"))
            continue
        except OSError:
            # The turn has ended meanwhile, or the file is not ours.
            continue
        # A record that cannot be locked belongs to a turn that still runs.
        with suppress(OSError), path.open("rb+") as file:
            lock(file.fileno(), 0)
            try:
                record = TurnRecord.read(file.fileno())
                if own is None and not Path(record.cwd).is_relative_to(cwd):
                    continue
                _recover(home, record, environment)
            except (SnapshotError, PatchError) as error:
                told.append(f"{_LOST}: {error}.")
            except ValueError:
                told.append(f"{_LOST}: its record is damaged.")
            path.unlink()
    return told


def running_turns(home: Path) -> Iterator[TurnRecord]:
    """The records of turns that have not ended, in any work tree."""
    for path in stores(home).glob("*/*.turn"):
        with suppress(OSError, ValueError), path.open("rb+") as file:
            try:
                lock(file.fileno(), 0)
            except OSError:
                # The process of the turn holds the lock.
                yield TurnRecord.read(file.fileno())


def _recover(
    home: Path,
    record: TurnRecord,
    environment: Mapping[str, str],
) -> None:
    """Write the entry of a turn that was cut off, with all changes since its first copy."""
    journal = Journal(home, Path(record.cwd))
    snapshots = snapshots_of(home, Path(record.root), environment)
    now = snapshots.take(record.before)
    changes = changes_between(snapshots.store, record.before, now)
    net = NetChanges()
    net.add(changes.files)
    files = net.files()
    if not files and not changes.unkept:
        return
    earlier = earlier_contents(snapshots.store, record.before, changes.files)
    turn = TurnOfEntry(
        record.thread_id,
        Entries(journal).last_turn_number(record.thread_id) + 1,
        patches=tuple(record.patches),
        unkept=tuple(changes.unkept),
        is_cut_off=True,
        began=record.began,
        earlier=earlier_by_mark(files, earlier),
    )
    journal.record(turn_entry(net, changes.folders, turn))


def turn_entry(
    net: NetChanges,
    folders: Sequence[str],
    turn: TurnOfEntry,
    in_place: Container[Path] = (),
) -> JournalEntry:
    """Make the entry of a turn, for changes that are already in place.

    Args:
        net: all changes of the turn.
        folders: the folders that the turn made; those that no longer exist do not count.
        in_place: files that were overwritten in place, because they have other links.
    """
    changes = list[EntryChange]()
    unkept = dict.fromkeys(turn.unkept)
    for file in net.files():
        if net.is_known(file.path):
            change = _change(file)
            if file.path in in_place:
                change.backup = Backup.IN_PLACE
            changes.append(change)
        else:
            unkept[str(file.path)] = None
    turn = turn._replace(unkept=tuple(unkept))
    by_path = {change.path: change for change in changes}
    for old, new in net.moves.items():
        if new in by_path:
            by_path[new].origin = by_path.get(old)
    made = {folder for folder in folders if Path(folder).is_dir()}
    for change in changes:
        if change.before is not None and not change.exists:
            made |= _folders_at(change.location)
    # Sorted, the outermost come first.
    return JournalEntry(changes, made=sorted(made), turn=turn)


def _folders_at(path: str) -> set[str]:
    """The folder that has taken the place of a file, and all folders in it; none if it is no folder.

    They were made by the turn, or since then by somebody else. Copies do not show the empty ones.
    """
    if Path(path).is_symlink():
        return set()
    return {folder for folder, _, _ in os.walk(path)}


def _change(file: PatchedFile) -> EntryChange:
    """Make the change of an entry from the net change of a file."""
    before: EntryStatus | None = None
    if file.old is not None:
        before = _status_before(file, len(file.old))
    mode = file.new_mode
    is_link = mode is not None and stat.S_ISLNK(mode)
    change = EntryChange(str(file.path), str(file.path), before)
    change.old = file.old
    change.new = file.new
    if mode is not None and not is_link:
        change.mode = stat.S_IMODE(mode)
    if file.new is None:
        change.fate = "removed"
    elif is_link:
        change.fate = "link"
    else:
        change.fate = "file"
    return change


def _status_before(file: PatchedFile, size: int) -> EntryStatus:
    """Make up the old status of a file. An undo reads its mode, its size and its owner."""
    # The owner is not known. An undo by root gives the file to the owner of the nearest folder.
    folders = (path for path in file.path.parents if path.is_dir())
    nearest = next(folders).stat()
    return EntryStatus(
        device=0,
        inode=0,
        mode=file.old_mode or stat.S_IFREG | 0o644,
        size=size,
        mtime_ns=0,
        user=nearest.st_uid,
        group=nearest.st_gid,
    )
