"""Records what a session changes, by patches, commands and hooks, as one entry of the journal for each turn.

Patches report their changes. The work tree is copied before the first command of a turn, after and
before others while nothing runs, and at the turn's end. The turn or somebody else made each
difference between two copies: the times of the files and the journal tell who, as far as possible.
The entry has only the changes of the turn, and replaces the patches' own entries.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.filesystem.folder_times import FolderTimes
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.files.change import TurnOfEntry, where_written
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.author import Evidence, author
from codex_py.patch.undo.copies.changes import changes_between
from codex_py.patch.undo.copies.earlier import (
    earlier_by_mark,
    earlier_contents,
    has_any,
    was_link,
)
from codex_py.patch.undo.copies.run_times import Author, RunTimes
from codex_py.patch.undo.copies.snapshots import Snapshot, Snapshots, snapshots_of
from codex_py.patch.undo.copies.store import SnapshotError
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.patched_on_disk import (
    is_submodule,
    is_there,
    paths_of,
    state_on_disk,
    written_inodes,
)
from codex_py.patch.undo.running_turns import (
    RunningTurnRecord,
    TurnRecord,
    recover_turns,
    turn_entry,
)
from codex_py.protocol.patched_file import PatchedFile, TreeChanges

_TRY_AGAIN_S: Final = 24 * 3600
"""A work tree that was too large is tried again after this time."""
_PROBLEM: Final = "problem"


class _Copy(NamedTuple):
    snapshot: Snapshot
    began_ns: int
    """The time when copying began, by the clock of the file system."""
    branch: str


class TurnRecorder:
    """Records the changes of a session's turns. Creating one writes nothing. Only one thread at a time may use it.

    Args:
        home: `$CODEX_HOME`, absolute.
        cwd: the working directory of the session, absolute.
        is_resumed: True if there may be entries of earlier turns.
        refuses: see `Snapshots`.
        folder_times: see `RunTimes`.
    """

    def __init__(
        self,
        home: Path,
        cwd: Path,
        environment: Mapping[str, str],
        thread_id: str,
        *,
        is_resumed: bool = False,
        refuses: Callable[[str], bool] | None = None,
        folder_times: FolderTimes | None = None,
    ) -> None:
        self._home = home
        self._cwd = cwd
        self._environment = environment
        self._journal = Journal(home, cwd)
        self._snapshots = snapshots_of(home, cwd, environment, refuses)
        self._thread_id = thread_id
        self._last_number = None if is_resumed else 0
        self.loss: Exception | None = None
        """The error that lost the changes of commands in the last turn, though the turn began with
        a copy."""
        self.unrecorded = ""
        """The reason why changes of commands were not recorded at all in the last turn; empty if they
        were, or nothing ran that may have changed files."""
        self._run_times = RunTimes(self._snapshots.root, folder_times)
        self._reset()

    def _reset(self) -> None:
        self._gave_up = False
        self._problem = ""
        self._net = NetChanges()
        self._later = NetChanges()
        """Changes of patches since the last copy. The next copy shows them too, if they are in the work tree."""
        self._unseen: set[Path] = set()
        """Paths of patches whose changes no copy shows: ignored files, large ones, and others outside
        of the work tree."""
        self._patches: list[int] = []
        self._running: RunningTurnRecord | None = None
        self._last: _Copy | None = None
        self._known_entries = 0
        """Entries of the journal up to this number are older than the turn."""
        self._is_confined = True
        """False if the turn itself may have switched the branch."""
        self._has_run = False
        """True if something ran since the last copy."""
        self._run_times.forget()
        self._folders: list[str] = []
        self._unkept: dict[str, None] = {}
        self._earlier: dict[Path, list[str]] = {}
        """The results of `earlier_contents` for all changes."""
        self._in_place: set[Path] = set()
        """Files with other hard links, which patches did not break."""
        self._unsure: set[str] = set()
        """Paths of changes that somebody else may have made."""
        self._of_others: dict[str, None] = {}
        self._switched: tuple[str, str] | None = None
        """The branches, if somebody else switched from one to the other."""

    @property
    def is_open(self) -> bool:
        """True if this turn has changes, or may have."""
        return (
            self._running is not None or bool(self._patches) or not self._net.is_empty
        )

    @property
    def has_copy(self) -> bool:
        """True if the changes of commands are recorded, or recording them was given up."""
        return self._running is not None or self._gave_up

    def patched(self, files: Sequence[PatchedFile], number: int | None) -> None:
        """Add a patch that was written. `number`: its entry in the journal, if it has one."""
        self._has_run = True
        # A patch that changes folders alone stays an entry of its own.
        if number is not None and files:
            self._patches.append(number)
            if self._running is not None:
                self._running.add(number)
            with suppress(DamagedEntry):
                entry = self._journal.read(number, with_contents=False)
                self._folders += entry.made
                self._in_place |= {
                    Path(each.location) for each in entry.changes if each.is_in_place
                }
                # Use the written paths, as copies do: links may lead elsewhere later.
                files = where_written(files, entry.changes)
        if self._running is None:
            self._net.add(files)
            self._unseen |= paths_of(files)
        else:
            self._later.add(files)

    def will_run(self, *, is_confined: bool) -> None:
        """Note that something will run that may change files.

        Args:
            is_confined: it cannot change the folder of the repository.
        """
        self._has_run = True
        self._is_confined &= is_confined

    def begin_life(self) -> None:
        """Note that something that may change files begins to run; `end_life` ends this."""
        self._has_run = True
        self._run_times.begin()

    def end_life(self) -> None:
        self._run_times.end()

    def recover(self) -> None:
        """Make entries of turns whose process died. Call this before a turn changes its first
        file."""
        if not self.is_open:
            recover_turns(self._home, self._cwd, self._environment, self._snapshots)

    def copy(self) -> None:
        """Copy the work tree, and record what has changed since the last copy. If that fails, `undo_problem` says
        why."""
        if self._running is not None:
            with suppress(SnapshotError, OSError):
                self._add_copy()
        elif not self._gave_up:
            self._copy_first()

    def look(self) -> Snapshot:
        """Copy the work tree as it is now. Two results are equal if no file changed in between.

        Raises:
            SnapshotError, OSError: it cannot be copied.
        """
        if self._running is not None:
            self._add_copy()
        elif not self._gave_up:
            # The caller wants another attempt, even soon after a failure.
            (self._snapshots.store.path / _PROBLEM).unlink(missing_ok=True)
            self._copy_first()
        if self._running is None or self._last is None:
            reason = undo_problem(self._home, self._cwd, self._environment)
            reason = reason or self._problem
            raise SnapshotError(reason or "the work tree cannot be copied")
        return self._last.snapshot

    def all_changes(self) -> TreeChanges:
        """Compare the work tree with the first copy of the turn. Raises as `look`.

        Ignored files are left out, unless the turn changed a `.gitignore`.
        """
        now = self.look()
        root = self._snapshots.root
        store = self._snapshots.store
        assert self._running is not None
        before = self._running.record.before
        changes = changes_between(store, before, now)
        self._look_at_unseen()
        net = NetChanges()
        net.add(changes.files)
        # Copies do not show what patches changed outside of the root.
        net.add(
            each
            for each in self._net.files()
            if not each.destination.is_relative_to(root)
        )
        known = {*before.unkept}
        folders = {*before.unkept, *now.unkept}
        hidden = [
            name for name in now.unkept if name.endswith("/") and name not in known
        ]
        folders = {str(root / name) for name in folders if name.endswith("/")}
        unseen = [path for path in changes.unkept if path not in folders]
        files = net.files()
        ignored = set[str]()
        if not any(file.path.name == ".gitignore" for file in files):
            names = [os.path.relpath(file.path, root) for file in files]
            ignored = store.ignored(
                [n for n in names if not n.startswith("../")] + hidden
            )
        for file in files:
            if os.path.relpath(file.path, root) in ignored:
                net.forget(file.path)
        unseen += [
            f"{root}/{name}" for name in hidden if name.rstrip("/") not in ignored
        ]
        cwd = Path(os.path.realpath(self._cwd))
        return TreeChanges(net.files(), net.diff(cwd), unseen)

    def _copy_first(self) -> None:
        problem = self._snapshots.store.path / _PROBLEM
        with suppress(OSError):
            self._gave_up = time.time() - problem.stat().st_mtime < _TRY_AGAIN_S
        if self._gave_up:
            return
        try:
            self.recover()
            began = time.time()
            self._known_entries = max(self._journal.numbers(), default=0)
            self._last = self._first_copy()
            root = str(self._snapshots.root)
            before = self._last.snapshot
            record = TurnRecord(
                root, str(self._cwd), self._thread_id, before, [], began
            )
            self._running = RunningTurnRecord(record, self._snapshots.store.path)
            problem.unlink(missing_ok=True)
        except (SnapshotError, OSError) as error:
            self._give_up(error)

    def _first_copy(self) -> "_Copy":
        """Copy the work tree after patches alone have changed it."""
        found = self._copied()
        files = self._net.files()
        self._unseen -= self._in_last_copy({file.path for file in files})
        written = written_inodes(self._snapshots.root, files)
        return found._replace(snapshot=replace(found.snapshot, written=written))

    def _give_up(self, error: SnapshotError | OSError) -> None:
        self._gave_up = True
        # Kept here too, because writing the file may fail as well.
        self._problem = f"{error}"
        problem = self._snapshots.store.path / _PROBLEM
        with suppress(OSError):
            problem.write_text(f"{error}", encoding="utf-8")
            is_too_large = isinstance(error, SnapshotError) and error.is_too_large
            if self._running is not None or not is_too_large:
                # Let the next turn try again: one failure must not turn off undo for later turns.
                os.utime(problem, (0, 0))

    def _copied(self) -> "_Copy":
        branch = self._snapshots.branch()
        began_ns = self._run_times.now_ns()
        before = self._running and self._running.record.before
        snapshot = replace(self._snapshots.take(before), began_ns=began_ns)
        return _Copy(snapshot, began_ns, branch)

    def _add_copy(self) -> None:
        assert self._last is not None
        assert self._running is not None
        old = self._last
        has_run = self._has_run
        self._has_run = self._run_times.is_open
        try:
            new = self._copied()
            first = self._running.record.before
            changes = changes_between(
                self._snapshots.store, old.snapshot, new.snapshot, first
            )
        except (SnapshotError, OSError):
            self._has_run = True
            raise
        self._last = new
        later = self._later
        self._later = NetChanges()
        written = dict[str, bytes | None]()
        if changes.files:
            written = self._written_by_others()
        evidence = Evidence(
            has_run=has_run,
            written_by_others=written,
            patched={file.path: file for file in later.files()},
            branches=(old.branch, new.branch),
            run_times=self._run_times,
            began_ns=(old.began_ns, new.began_ns),
        )
        for file in changes.files:
            # The other links to it are files of the copies too.
            self._in_place.discard(file.path)
            self._add_change(file, evidence)
            self._unseen.discard(file.path)
        self._note_earlier(changes.files)
        shown = {file.path for file in changes.files}
        self._add_patched(later, shown, (first, old.snapshot, new.snapshot))
        self._folders += changes.folders
        self._unkept |= dict.fromkeys(changes.unkept)

    def _add_change(self, file: PatchedFile, evidence: Evidence) -> None:
        found = author(file, evidence)
        if found is Author.ANOTHER:
            self._add_change_of_another(file, evidence.patched.get(file.path))
            return
        path = str(file.path)
        if path in self._of_others:
            # Keep the edit of somebody else: an undo returns to it, and no further.
            self._net.forget(file.path)
        self._net.add([file])
        self._unsure.discard(path)
        if found is Author.UNSURE:
            self._unsure.add(path)
            if evidence.is_switched and self._is_confined:
                self._switched = evidence.branches

    def _add_change_of_another(
        self, file: PatchedFile, patch: PatchedFile | None
    ) -> None:
        self._of_others[str(file.path)] = None
        if patch is not None:
            # Somebody edited what the patch left: an undo will show that.
            self._net.add([patch])
        if self._net.is_back(file):
            self._net.add([file])

    def _note_earlier(self, files: Sequence[PatchedFile]) -> None:
        assert self._running is not None
        found = earlier_contents(
            self._snapshots.store, self._running.record.before, files
        )
        for file in files:
            places = self._earlier.get(file.path)
            if file.path in found:
                self._earlier[file.path] = found[file.path]
            elif places is None or file.old is None:
                continue
            elif file.new is None or has_any(places, file.old, is_link=was_link(file)):
                # Keep the places of an edited file only if none of them still has its old contents.
                del self._earlier[file.path]

    def _add_patched(
        self, later: NetChanges, shown: set[Path], copies: Sequence[Snapshot]
    ) -> None:
        """Add the changes of patches that the copies do not show, because they never would.

        What the copies show is the truth of a path that they cover: a file that a patch made may be
        gone again.

        Args:
            shown: paths with a difference between the last two copies.
            copies: the first copy of the turn and the last two.
        """
        files = [file for file in later.files() if file.path not in shown]
        copied = self._in_last_copy({file.path for file in files})
        for file in files:
            if file.path in copied or self._tell_of_none(file, copies):
                continue
            self._net.add([file])
            self._unseen |= paths_of([file])

    def _in_last_copy(self, paths: set[Path]) -> set[Path]:
        """Return those of the paths that the last copy has."""
        root = self._snapshots.root
        names = [
            str(path.relative_to(root)) for path in paths if path.is_relative_to(root)
        ]
        if names:
            with suppress(SnapshotError):
                return {root / name for name in self._snapshots.known(names)}
        return set()

    def _tell_of_none(self, file: PatchedFile, copies: Sequence[Snapshot]) -> bool:
        """True if the copies would have a file at this path, and there is none."""
        root = self._snapshots.root
        if is_submodule(file) or not file.path.is_relative_to(root):
            return False
        name = str(file.path.relative_to(root))
        return self._snapshots.cover(name, copies) and not is_there(file.path)

    def _look_at_unseen(self) -> None:
        """Bring the changes of patches that no copy shows up to what is there now.

        A file that somebody else has edited keeps the contents that the patch left: an undo will
        show the edit. It makes no difference who brought a file back.
        """
        for path in sorted(self._unseen):
            file = state_on_disk(path)
            if file is None or self._snapshots.refuses(path):
                continue
            if self._net.is_as_left(file):
                continue
            if self._net.is_back(file) or self._is_by_session(file):
                self._net.add([file])

    def _is_by_session(self, file: PatchedFile) -> bool:
        """True if something of the session was the last to change a file, as its times tell."""
        if not file.path.is_relative_to(self._snapshots.root):
            return False
        path = str(file.path)
        written = dict[str, bytes | None]()
        if self._running is not None:
            written = self._written_by_others()
        if path in written and written[path] == file.new:
            return False
        now_ns = self._run_times.now_ns()
        return self._run_times.author(file.path, 0, now_ns) is Author.SESSION

    def _written_by_others(self) -> dict[str, bytes | None]:
        """Contents, by path, that were written since the turn began by undos, by other sessions'
        patches and by `codex-py apply`."""
        found: dict[str, bytes | None] = {}
        for number in sorted(self._journal.numbers()):
            if number > self._known_entries and number not in self._patches:
                with suppress(DamagedEntry):
                    entry = self._journal.read(number)
                    if entry.turn is None:
                        found |= {
                            change.location: change.written for change in entry.changes
                        }
        return found

    def end_turn(
        self,
        prompts: int,
        *,
        is_new: bool,
        is_kept: bool = True,
    ) -> str:
        """Write the changes of the turn to the journal. Returns their diff.

        Args:
            prompts: the number of prompts in the thread so far.
            is_new: the turn began with a prompt.
            is_kept: False writes nothing to the journal.

        Raises:
            PatchError, OSError: the journal cannot be written.
        """
        self.loss = None
        self.unrecorded = ""
        # Nobody expects a record of a whole home.
        if self._gave_up and not self._snapshots.store.is_no_project:
            self.unrecorded = _known_problem(self._snapshots) or self._problem
        try:
            if self._has_run and self._running is not None:
                try:
                    self._add_copy()
                except SnapshotError as error:
                    self.loss = error
                    self._give_up(error)
            self._net.add(self._later.files())
            self._unseen |= paths_of(self._later.files())
            self._look_at_unseen()
            if self._running is not None:
                # Whenever copies were made.
                self._net.sort(self._snapshots.root)
            files = self._net.files()
            # Patches that cancel out leave no files, but none of them must be undone alone.
            if is_kept and (files or self._unkept or self._patches):
                if self._last_number is None:
                    entries = Entries(self._journal)
                    self._last_number = entries.last_turn_number(self._thread_id)
                least = self._last_number
                if is_new:
                    least += 1
                # After a compaction there are fewer prompts than turns.
                number = max(prompts, least, 1)
                turn = self._turn(number, files)
                self._journal.record(
                    turn_entry(self._net, self._folders, turn, self._in_place)
                )
                self._last_number = number
            return self._net.diff(Path(os.path.realpath(self._cwd)))
        finally:
            if self._running is not None:
                self._running.end()
            self._reset()

    def _turn(self, number: int, files: Sequence[PatchedFile]) -> TurnOfEntry:
        changed = {str(file.path) for file in files}
        return TurnOfEntry(
            self._thread_id,
            number,
            tuple(self._patches),
            tuple(self._unkept),
            began=0.0 if self._running is None else self._running.record.began,
            unsure=tuple(sorted(changed & self._unsure)),
            of_others=tuple(path for path in self._of_others if path not in changed),
            switched=self._switched or (),
            earlier=earlier_by_mark(files, self._earlier),
        )


def undo_problem(
    home: Path,
    cwd: Path,
    environment: Mapping[str, str],
) -> str | None:
    """A sentence that says why changes by commands in a folder are not kept; None if they are, as far as is known."""
    reason = _known_problem(snapshots_of(home, cwd, environment))
    if reason is None:
        return None
    return f"What commands change here is not kept: {reason}."


def _known_problem(snapshots: Snapshots) -> str | None:
    """The reason why the work tree could not be copied the last time; None if it could."""
    try:
        reason = (snapshots.store.path / _PROBLEM).read_text("utf-8")
    except OSError:
        return None
    # On a full disk, the file is empty.
    return reason or "the disk was full"
