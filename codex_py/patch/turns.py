"""Records what a session changes, by patches and by commands, as one entry of the journal for each turn.

Patches say what they change. Before the first command of a turn the work tree is copied, and again at the turn's end; what
differs is what the commands changed, and the user meanwhile: nobody can tell them apart. The entry has the
changes of both, and takes the place of the patches' own entries.

While a turn runs, a record of its first copy lies in the store, `THREAD.turn`, locked by the process. If the process dies,
`recover_turns` makes the entry later, from what is there then.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final, Self

from codex_py.errors import PatchError
from codex_py.filesystem.git import git_folder
from codex_py.filesystem.own import lock
from codex_py.patch.copies.snapshots import Changes, Snapshot, Snapshots, stores
from codex_py.patch.copies.store import SnapshotError
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.files.change import TurnOfEntry
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.turn_entry import last_turn_number, turn_entry
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile

_TRY_AGAIN_S: Final = 24 * 3600
"""A work tree that was too large is tried again after this time."""
_PROBLEM: Final = "problem"


class TurnRecorder:
    """Records the changes of a session's turns. Creating one writes nothing. Only one thread at a time may use it.

    Args:
        home: `$CODEX_HOME`, absolute.
        cwd: of the session, absolute.
        is_resumed: there may be entries of earlier turns.
    """

    def __init__(
        self,
        home: Path,
        cwd: Path,
        environment: Mapping[str, str],
        thread_id: str,
        *,
        is_resumed: bool = False,
    ) -> None:
        self._home, self._cwd, self._environment = home, cwd, environment
        self._journal = Journal(home, cwd)
        self._snapshots = snapshots_of(home, cwd, environment)
        self._thread_id = thread_id
        self._last_number = None if is_resumed else 0
        self._gave_up = False
        self._reset()

    def _reset(self) -> None:
        self._net = NetChanges()
        self._later = NetChanges()
        """Changes of patches since the first copy. The next copy shows them too, if they are in the work tree."""
        self._patches: list[int] = []
        self._earlier = 0
        """How many of them the first copy has."""
        self._before: Snapshot | None = None
        self._changes = 0
        """How often something changed, or may have."""
        self._after: tuple[int, Snapshot] | None = None
        """A later copy, and the value of `_changes` when it was begun."""
        self._record: int | None = None
        """Descriptor of the locked file."""

    @property
    def is_open(self) -> bool:
        """True if this turn has changes, or may have."""
        return self._before is not None or not self._net.is_empty

    def patched(self, files: Iterable[PatchedFile], number: int | None) -> None:
        """Add a patch that was written. `number`: that of its entry in the journal; None if it has none."""
        self._changes += 1
        if number is not None:
            self._patches.append(number)
            self._write_record()
            files = self._where_written(files, number)
        (self._net if self._before is None else self._later).add(files)

    def _where_written(self, files: Iterable[PatchedFile], number: int) -> Iterable[PatchedFile]:
        """The files of a patch without links in their paths, as those of copies are. Later, links may lead elsewhere."""
        with suppress(DamagedEntry):
            changes = self._journal.read(number, with_contents=False).changes
            places = {Path(change.path): Path(change.location) for change in changes}
            return [
                replace(
                    file,
                    path=places.get(file.path, file.path),
                    move_to=file.move_to and places.get(file.move_to, file.move_to),
                )
                for file in files
            ]
        return files

    def recover(self) -> None:
        """Make entries of turns whose process died here. To be called before a turn changes the first file."""
        if not self.is_open:
            recover_turns(self._home, self._cwd, self._environment, self._snapshots)

    def copy_before(self) -> None:
        """Copy the work tree, unless this turn has a copy. If that fails, `undo_problem` says why."""
        self._changes += 1
        if self._before is not None or self._gave_up:
            return
        problem = self._snapshots.store.path / _PROBLEM
        with suppress(OSError):
            self._gave_up = time.time() - problem.stat().st_mtime < _TRY_AGAIN_S
        if self._gave_up:
            return
        try:
            self.recover()
            self._earlier = len(self._patches)
            self._before = self._snapshots.take()
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            new = self._record_path.with_suffix(".new")
            self._record = os.open(new, flags, 0o600)
            lock(self._record, 0)
            self._write_record()
            # Others see it whole and locked.
            new.rename(self._record_path)
            problem.unlink(missing_ok=True)
        except (SnapshotError, OSError) as error:
            self._before = None
            self._give_up(error)

    def _give_up(self, error: SnapshotError | OSError) -> None:
        self._gave_up = True
        problem = self._snapshots.store.path / _PROBLEM
        with suppress(OSError):
            problem.write_text(f"{error}", encoding="utf-8")
            was_possible = self._before is not None
            if was_possible or not (isinstance(error, SnapshotError) and error.is_too_large):
                # The next session tries again: one turn must not turn the undo of later ones off.
                os.utime(problem, (0, 0))

    def copy_after(self) -> None:
        """Copy the work tree while no command runs. `end_turn` uses this copy if nothing changes afterwards."""
        changes = self._changes
        with suppress(SnapshotError):
            self._after = changes, self._snapshots.take()

    def end_turn(self, prompts: int, *, is_new: bool, is_kept: bool = True) -> str:
        """Write the changes of the turn to the journal. Returns their diff.

        Args:
            prompts: the number of prompts in the thread so far.
            is_new: the turn began with a prompt.
            is_kept: False writes nothing to the journal.

        Raises:
            PatchError, OSError: the journal cannot be written.
        """
        try:
            changes = self._changes_of_commands()
            self._add_later(changes)
            diff = self._net.diff(Path(os.path.realpath(self._cwd)))
            if is_kept and diff:
                number = self._number(prompts, is_new=is_new)
                turn = TurnOfEntry(self._thread_id, number, tuple(self._patches))
                self._journal.record(turn_entry(self._net, changes, turn))
                self._last_number = number
            return diff
        finally:
            if self._record is not None:
                with suppress(OSError):
                    self._record_path.unlink()
                os.close(self._record)
            self._reset()

    def _changes_of_commands(self) -> Changes:
        if self._before is None:
            return Changes([], [], [])
        try:
            changed, after = self._after or (-1, self._before)
            if changed != self._changes:
                after = self._snapshots.take()
            changes = self._snapshots.changes(self._before, after)
        except SnapshotError as error:
            self._give_up(error)
            return Changes([], [], [])
        self._net.add(changes.files)
        return changes

    def _add_later(self, changes: Changes) -> None:
        """Add what patches changed where the copies did not see it."""
        root = self._snapshots.root
        later = self._later.files()
        paths = [file.path.relative_to(root) for file in later if file.path.is_relative_to(root)]
        seen = {file.path for file in changes.files}
        if paths:
            with suppress(SnapshotError):
                seen |= {root / name for name in self._snapshots.known(map(str, paths))}
        self._net.add(file for file in later if file.path not in seen)

    def _number(self, prompts: int, *, is_new: bool) -> int:
        if self._last_number is None:
            self._last_number = last_turn_number(self._journal, self._thread_id)
        # After a compaction there are fewer prompts than turns.
        return max(prompts, self._last_number + is_new, 1)

    def _write_record(self) -> None:
        if self._record is None or self._before is None:
            return
        root, cwd, patches = self._snapshots.root, self._cwd, self._patches[self._earlier :]
        _Record(str(root), str(cwd), self._thread_id, self._before, patches).write(self._record)

    @property
    def _record_path(self) -> Path:
        return self._snapshots.store.path / f"{self._thread_id}.turn"


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
    pattern = f"{own.store.path.name if own else '*'}/*.turn"
    for path in sorted(stores(home).glob(pattern)):
        # One that is locked is of a turn that runs.
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                lock(descriptor, 0)
                record = _Record.read(descriptor)
                if own is None and not Path(record.cwd).is_relative_to(cwd):
                    continue
                _recover(home, record, environment)
            except (SnapshotError, PatchError) as error:
                told.append(f"A turn was cut off and cannot be undone: {error}.")
            except (ValueError, TypeError, LookupError, AttributeError):
                told.append("A turn was cut off and cannot be undone: its record is damaged.")
            finally:
                os.close(descriptor)
            path.unlink()
    return told


def undo_problem(home: Path, cwd: Path, environment: Mapping[str, str]) -> str | None:
    """A sentence that says why changes by commands in a folder are not kept; None if they are, as far as is known."""
    try:
        reason = (snapshots_of(home, cwd, environment).store.path / _PROBLEM).read_text("utf-8")
    except OSError:
        return None
    # On a full disk, the file is empty.
    return f"What commands change here is not kept: {reason or 'the disk was full'}."


def snapshots_of(home: Path, cwd: Path, environment: Mapping[str, str]) -> Snapshots:
    """The copies of the repository of a folder, or of the folder itself."""
    folder = Path(os.path.realpath(cwd))
    for root in (folder, *folder.parents):
        # An empty folder of this name is no repository, such as one that a sandbox left behind.
        with suppress(OSError, ValueError):
            if (git_folder(root / ".git") / "HEAD").exists():
                return Snapshots(home, root, root / ".git", environment)
    return Snapshots(home, folder, None, environment)


def _recover(home: Path, record: "_Record", environment: Mapping[str, str]) -> None:
    root, journal = Path(record.root), Journal(home, Path(record.cwd))
    snapshots = snapshots_of(home, root, environment)
    changes = snapshots.changes(record.before, snapshots.take())
    net = NetChanges()
    net.add(changes.files)
    number = last_turn_number(journal, record.thread_id) + 1
    turn = TurnOfEntry(record.thread_id, number, tuple(record.patches), is_cut_off=True)
    if net.files():
        journal.record(turn_entry(net, changes, turn))


@frozen
class _Record:
    """The record of a running turn, as it lies in the store."""

    root: str
    cwd: str
    thread_id: str
    before: Snapshot
    patches: Sequence[int]
    """Those after the copy: the differences from it have no others, which stay entries of their own."""

    def write(self, descriptor: int) -> None:
        data = json.dumps(asdict(self)).encode()
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """Raises a `ValueError`, `TypeError`, `LookupError` or `AttributeError` if it is damaged."""
        found = json.loads(os.pread(descriptor, 1 << 26, 0))
        copy = found.pop("before")
        unkept = {name: (size, mtime) for name, (size, mtime) in copy.pop("unkept").items()}
        return cls(before=Snapshot(**copy, unkept=unkept), **found)
