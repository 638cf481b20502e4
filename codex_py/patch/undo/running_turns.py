"""Keeps the record of a running turn, `THREAD.turn` in the store of its work tree, locked by its
process; and makes the turn's entry for the journal.

If the process dies, `recover_turns` makes the entry later, from the work tree as it is then.
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


@frozen
class TurnRecord:
    root: str
    cwd: str
    thread_id: str
    before: Snapshot
    patches: list[int]
    """The numbers of patches after the copy. Earlier ones are not among its differences, and stay
    entries of their own."""
    began: float

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """Raises a `ValueError` if it is damaged."""
        try:
            found = json.loads(os.pread(descriptor, 1 << 26, 0))
            copy = found.pop("before")
            unkept = {
                name: (size, mtime)
                for name, (size, mtime) in copy.pop("unkept").items()
            }
            kept = copy.pop("held", {})
            held = {name: Held(*values) for name, values in kept.items()}
            before = Snapshot(**copy, unkept=unkept, held=held)
            return cls(before=before, **found)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"no record of a turn: {error!r}") from error


class RunningTurnRecord:
    """A record that other processes see complete and locked until the turn ends.

    Creating and changing it raise an `OSError` if it cannot be written.
    """

    def __init__(self, record: TurnRecord, store: Path) -> None:
        self.record = record
        # Encoded once: it may be long, and a patch does not change it.
        self._before = json.dumps(_fields_of(record.before))
        self._path = store / f"{record.thread_id}.turn"
        new = self._path.with_suffix(".new")
        self._descriptor = os.open(
            new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        try:
            lock(self._descriptor, 0)
            self._write()
            new.rename(self._path)
        except OSError:
            os.close(self._descriptor)
            raise

    def add(self, patch: int) -> None:
        self.record.patches.append(patch)
        self._write()

    def end(self) -> None:
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)

    def _write(self) -> None:
        others = json.dumps(_fields_of(self.record, but="before"))
        data = f'{{"before": {self._before}, {others[1:]}'.encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))


def _fields_of(record: TurnRecord | Snapshot, but: str = "") -> dict[str, object]:
    # `asdict` would copy thousands of values.
    names = [field.name for field in fields(record) if field.name != but]
    return {name: getattr(record, name) for name in names}


def recover_turns(
    home: Path, cwd: Path, environment: Mapping[str, str], own: Snapshots | None = None
) -> list[str]:
    """Write entries for turns whose process has died.

    Args:
        cwd: absolute. Turns in this folder and below it count.
        own: turns in this work tree count instead.

    Returns:
        A sentence for each turn that cannot be undone.
    """
    told: list[str] = []
    store = "*"
    if own:
        store = own.store.path.name
    for path in sorted(stores(home).glob(f"{store}/*.turn")):
        # A locked record belongs to a turn that still runs.
        with suppress(OSError), path.open("rb+") as file:
            lock(file.fileno(), 0)
            try:
                record = TurnRecord.read(file.fileno())
                if own is None and not Path(record.cwd).is_relative_to(cwd):
                    continue
                _recover(home, record, environment)
            except (SnapshotError, PatchError) as error:
                told.append(f"A turn was cut off and cannot be undone: {error}.")
            except ValueError:
                told.append(
                    "A turn was cut off and cannot be undone: its record is damaged."
                )
            path.unlink()
    return told


def running_turns(home: Path) -> Iterator[TurnRecord]:
    """The turns that may have changed files, and have not ended."""
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
    root = Path(record.root)
    journal = Journal(home, Path(record.cwd))
    snapshots = snapshots_of(home, root, environment)
    changes = changes_between(
        snapshots.store, record.before, snapshots.take(record.before)
    )
    net = NetChanges()
    net.add(changes.files)
    earlier = earlier_contents(snapshots.store, record.before, changes.files)
    number = Entries(journal).last_turn_number(record.thread_id) + 1
    parts = tuple(record.patches), tuple(changes.unkept)
    turn = TurnOfEntry(
        record.thread_id,
        number,
        *parts,
        is_cut_off=True,
        began=record.began,
        earlier=earlier_by_mark(net.files(), earlier),
    )
    if net.files() or turn.unkept:
        journal.record(turn_entry(net, changes.folders, turn))


def turn_entry(
    net: NetChanges,
    folders: Sequence[str],
    turn: TurnOfEntry,
    in_place: Container[Path] = (),
) -> JournalEntry:
    """The entry of a turn, for changes that are already in place.

    Args:
        net: all changes of the turn.
        folders: the folders that the turn made; those that no longer exist do not count.
        in_place: files that were overwritten in place, because they have other links.
    """
    known = list[EntryChange]()
    unkept = dict.fromkeys(turn.unkept)
    for file in net.files():
        if net.is_known(file.path):
            change = _change(file)
            if file.path in in_place:
                change.backup = Backup.IN_PLACE
            known.append(change)
        else:
            unkept[str(file.path)] = None
    by_path = {each.path: each for each in known}
    for old, new in net.moves.items():
        if new in by_path:
            by_path[new].origin = by_path.get(old)
    made = {folder for folder in folders if Path(folder).is_dir()}
    for file in known:
        if file.before is not None and not file.exists:
            made |= _folders_at(file.location)
    # The outermost first.
    made = sorted(made)
    return JournalEntry(known, made=made, turn=turn._replace(unkept=tuple(unkept)))


def _folders_at(path: str) -> set[str]:
    """The folder that has taken the place of a file, and all folders in it.

    The turn made them, or somebody else since. Copies do not show those that are empty.
    """
    if Path(path).is_symlink():
        return set()
    return {folder for folder, _, _ in os.walk(path)}


def _change(file: PatchedFile) -> EntryChange:
    mode = file.new_mode
    before: EntryStatus | None = None
    if file.old is not None:
        old_mode = file.old_mode or stat.S_IFREG | 0o644
        # The owner is not known. An undo by root gives the file to the owner of the folder.
        folders = (path for path in file.path.parents if path.is_dir())
        near = next(folders).stat()
        size = len(file.old)
        before = EntryStatus(0, 0, old_mode, size, 0, near.st_uid, near.st_gid)
    is_link = mode is not None and stat.S_ISLNK(mode)
    change = EntryChange(str(file.path), str(file.path), before)
    change.old = file.old
    change.new = file.new
    if mode is None or is_link:
        change.mode = None
    else:
        change.mode = stat.S_IMODE(mode)
    if file.new is None:
        change.fate = "removed"
    elif is_link:
        change.fate = "link"
    else:
        change.fate = "file"
    return change
