"""Records the changes of a session by patches, commands and hooks: one entry of the journal for each turn.

Patches report their changes. For other changes the work tree is copied: before the first command of
a turn, before and after other commands unless one is running, and at the end of the turn. A difference
between two copies was made by the turn or by somebody else; the times of the files and the journal
tell by whom, as far as possible. The entry has only the changes of the turn, and replaces the entries
of its patches.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.filesystem.folder_times import FolderTimes
from codex_py.filesystem.private import open_emptied
from codex_py.filesystem.reading import read_whole
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
"""The time after which a work tree that was too large is tried again."""
_PROBLEM: Final = "problem"
"""The name of the file, in the store, with the reason why the work tree could not be copied."""
_MAX_PROBLEM_BYTES: Final = 1 << 16


class _Copy(NamedTuple):
    snapshot: Snapshot
    began_ns: int
    """The time when copying began, by the clock of the file system."""
    branch: str
    """See `Snapshots.branch`."""


class TurnRecorder:
    """Records the changes of a session's turns.

    Creating one writes nothing. Only one thread at a time may use it.

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
        self._last_number: int | None = 0
        """The number of the session's last turn in the journal; None if it must be looked up."""
        if is_resumed:
            self._last_number = None
        self.loss: Exception | None = None
        """The error because of which later changes by commands were lost in the last turn. None if no
        copy failed after the first."""
        self.unrecorded = ""
        """The reason why no changes by commands were recorded in the last turn; empty if they were, or
        if nothing ran that may have changed files."""
        self._run_times = RunTimes(self._snapshots.root, folder_times)
        self._reset()

    def _reset(self) -> None:
        self._gave_up = False
        self._problem = ""
        self._net = NetChanges()
        self._later = NetChanges()
        """Changes of patches since the last copy. The next copy shows those in the work tree too."""
        self._saved: set[Path] = set()
        """Files to which text of the user's editor was saved since the last copy."""
        self._unseen: set[Path] = set()
        """Paths of patches whose changes no copy shows: ignored files, large ones, and others outside
        of the work tree."""
        self._patches: list[int] = []
        self._running: RunningTurnRecord | None = None
        self._last: _Copy | None = None
        self._known_entries = 0
        """Entries of the journal up to this number are older than the turn."""
        self._is_confined = True
        """False if a command of the turn may have switched the branch."""
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
        """The old and the new branch, if somebody else switched between them."""

    @property
    def is_open(self) -> bool:
        """True if this turn has changes, or may have."""
        return (
            self._running is not None or bool(self._patches) or not self._net.is_empty
        )

    @property
    def has_copy(self) -> bool:
        """True if the turn needs no first copy: it has one, or copying was given up."""
        return self._running is not None or self._gave_up

    def patched(
        self,
        files: Sequence[PatchedFile],
        number: int | None,
        saved: Collection[Path] = (),
    ) -> None:
        """Add a patch that was written.

        Args:
            number: its entry in the journal, if it has one.
            saved: real paths of files to which text of the user's editor was saved just before. An
                undo returns to this text, and no further.
        """
        self._has_run = True
        for path in saved:
            self._net.forget(path)
            self._later.forget(path)
            self._saved.add(path)
        # A patch that changes folders alone stays an entry of its own.
        if number is not None and files:
            self._patches.append(number)
            if self._running is not None:
                self._running.add(number)
            with suppress(DamagedEntry):
                entry = self._journal.read(number, with_contents=False)
                self._folders += entry.made
                for change in entry.changes:
                    if change.is_in_place:
                        self._in_place.add(Path(change.location))
                # Use the paths without links, as copies do: links may lead elsewhere later.
                files = where_written(files, entry.changes)
        if self._running is None:
            self._net.add(files)
            self._unseen |= paths_of(files)
        else:
            self._later.add(files)

    def will_run(self, *, is_confined: bool) -> None:
        """Note that something will run that may change files.

        Args:
            is_confined: it cannot write to the folder of the repository, so it cannot switch the
                branch.
        """
        self._has_run = True
        self._is_confined &= is_confined

    def begin_life(self) -> None:
        """Note that something that may change files begins to run. Call `end_life` when it ends."""
        self._has_run = True
        self._run_times.begin()

    def end_life(self) -> None:
        """Note that something that `begin_life` was called for has ended."""
        self._run_times.end()

    def recover(self) -> None:
        """Make entries of turns whose process died. Call this before a turn changes its first
        file."""
        if not self.is_open:
            recover_turns(self._home, self._cwd, self._environment, self._snapshots)

    def copy(self) -> None:
        """Copy the work tree, and record what has changed since the last copy.

        Raises nothing: if the first copy fails, `undo_problem` says why.
        """
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
            if reason is None:
                reason = self._problem or "the work tree cannot be copied"
            raise SnapshotError(reason)
        return self._last.snapshot

    def all_changes(self) -> TreeChanges:
        """Compare the work tree with the first copy of the turn. Raises the same as `look`.

        Ignored files are left out, unless the turn changed a `.gitignore`.
        """
        now = self.look()
        root = self._snapshots.root
        assert self._running is not None
        before = self._running.record.before
        changes = changes_between(self._snapshots.store, before, now)
        self._look_at_unseen()
        net = NetChanges()
        net.add(changes.files)
        # Copies do not show what patches changed outside of the root.
        net.add(
            each
            for each in self._net.files()
            if not each.destination.is_relative_to(root)
        )
        folders = [name for name in {*before.unkept, *now.unkept} if name.endswith("/")]
        new_folders = [
            name
            for name in now.unkept
            if name.endswith("/") and name not in before.unkept
        ]
        ignored = self._ignored(net, new_folders)
        for file in net.files():
            if os.path.relpath(file.path, root) in ignored:
                net.forget(file.path)
        # Of folders that were left out, only new ones are told, unless they are ignored.
        folder_paths = {str(root / name) for name in folders}
        unseen = [path for path in changes.unkept if path not in folder_paths]
        unseen += [
            f"{root}/{name}" for name in new_folders if name.rstrip("/") not in ignored
        ]
        cwd = Path(os.path.realpath(self._cwd))
        return TreeChanges(net.files(), net.diff(cwd), unseen)

    def _ignored(self, net: NetChanges, folders: Sequence[str]) -> set[str]:
        """Find the ignored ones of changed files and of folders, relative to the root.

        Nothing counts as ignored if a `.gitignore` has changed.
        """
        root = self._snapshots.root
        paths = [file.path for file in net.files()]
        if any(path.name == ".gitignore" for path in paths):
            return set()
        names = [os.path.relpath(path, root) for path in paths]
        inside = [name for name in names if not name.startswith("../")]
        return self._snapshots.store.ignored([*inside, *folders])

    def _copy_first(self) -> None:
        """Make the first copy of the turn, unless the last attempt has failed recently."""
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
            record = TurnRecord(
                root=str(self._snapshots.root),
                cwd=str(self._cwd),
                thread_id=self._thread_id,
                before=self._last.snapshot,
                patches=[],
                began=began,
            )
            self._running = RunningTurnRecord(record, self._snapshots.store.path)
            problem.unlink(missing_ok=True)
        except (SnapshotError, OSError) as error:
            self._give_up(error)

    def _first_copy(self) -> "_Copy":
        """Copy the work tree while patches are all that has changed it."""
        found = self._copied()
        files = self._net.files()
        self._unseen -= self._in_last_copy({file.path for file in files})
        written = written_inodes(self._snapshots.root, files)
        return found._replace(snapshot=replace(found.snapshot, written=written))

    def _give_up(self, error: SnapshotError | OSError) -> None:
        """Make no more copies in this turn, and keep the reason for `undo_problem`."""
        self._gave_up = True
        # The reason is kept here too, because writing the file may fail as well.
        self._problem = f"{error}"
        problem = self._snapshots.store.path / _PROBLEM
        with suppress(OSError):
            with os.fdopen(open_emptied(problem), "w", encoding="utf-8") as file:
                file.write(f"{error}")
            is_too_large = isinstance(error, SnapshotError) and error.is_too_large
            if self._running is not None or not is_too_large:
                # The next turn tries again, because the file is old: one failure must not turn off
                # undo for later turns.
                os.utime(problem, (0, 0))

    def _copied(self) -> "_Copy":
        branch = self._snapshots.branch()
        began_ns = self._run_times.now_ns()
        before = self._running and self._running.record.before
        snapshot = replace(self._snapshots.take(before), began_ns=began_ns)
        return _Copy(snapshot, began_ns, branch)

    def _add_copy(self) -> None:
        """Make another copy of the turn, and add its differences from the last one.

        Raises:
            SnapshotError, OSError: it cannot be made; nothing was added.
        """
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
        patched = self._later
        self._later = NetChanges()
        saved = self._saved
        self._saved = set()
        written = dict[str, bytes | None]()
        if changes.files:
            written = self._written_by_others()
        evidence = Evidence(
            has_run=has_run,
            written_by_others=written,
            patched={file.path: file for file in patched.files()},
            branches=(old.branch, new.branch),
            run_times=self._run_times,
            began_ns=(old.began_ns, new.began_ns),
        )
        for file in changes.files:
            # Copies show a change of its other hard links as well.
            self._in_place.discard(file.path)
            patch = evidence.patched.get(file.path)
            if file.path in saved and patch is not None:
                file = file._replace(old=patch.old, old_mode=patch.old_mode)
            self._add_change(file, evidence)
            self._unseen.discard(file.path)
        self._note_earlier(changes.files)
        shown = {file.path for file in changes.files}
        self._add_patched(patched, shown, (first, old.snapshot, new.snapshot))
        self._folders += changes.folders
        self._unkept |= dict.fromkeys(changes.unkept)

    def _add_change(self, file: PatchedFile, evidence: Evidence) -> None:
        """Add a difference between two copies to the changes of the turn, or of others."""
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
        self,
        file: PatchedFile,
        patch: PatchedFile | None,
    ) -> None:
        self._of_others[str(file.path)] = None
        if patch is not None:
            # Somebody edited the file after the patch: an undo will show that.
            self._net.add([patch])
        if self._net.is_back(file):
            self._net.add([file])

    def _note_earlier(self, files: Sequence[PatchedFile]) -> None:
        """Keep `_earlier` up to date with the differences between two copies."""
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
        self,
        later: NetChanges,
        shown: set[Path],
        copies: Sequence[Snapshot],
    ) -> None:
        """Add the changes of patches in places that copies do not cover.

        In other places the copies are right, not the patches: a file that a patch made may be gone
        again.

        Args:
            later: the changes of patches since the last copy.
            shown: paths with a difference between the last two copies.
            copies: the first copy of the turn and the last two.
        """
        files = [file for file in later.files() if file.path not in shown]
        copied = self._in_last_copy({file.path for file in files})
        for file in files:
            if file.path in copied or self._is_surely_gone(file, copies):
                continue
            self._net.add([file])
            self._unseen |= paths_of([file])

    def _in_last_copy(self, paths: set[Path]) -> set[Path]:
        """Return those of the paths that the last copy has."""
        root = self._snapshots.root
        inside = [path for path in paths if path.is_relative_to(root)]
        names = [str(path.relative_to(root)) for path in inside]
        if names:
            with suppress(SnapshotError):
                return {root / name for name in self._snapshots.known(names)}
        return set()

    def _is_surely_gone(self, file: PatchedFile, copies: Sequence[Snapshot]) -> bool:
        """True if there is no file at a path where the copies would contain one."""
        root = self._snapshots.root
        if is_submodule(file) or not file.path.is_relative_to(root):
            return False
        name = str(file.path.relative_to(root))
        return self._snapshots.cover(name, copies) and not is_there(file.path)

    def _look_at_unseen(self) -> None:
        """Update the changes of patches that no copy shows to the files that are there now.

        If somebody else has edited a file, the change keeps the contents that the patch left, so that
        an undo shows the edit. If a file is as it was before the turn, anybody may have done that.
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
        """True if, by its times, a file was last changed by something that the session ran."""
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
        """Find what undos, patches of other sessions and `codex-py apply` have written since the turn
        began: the last contents of each path, None if it was removed."""
        found: dict[str, bytes | None] = {}
        for number in sorted(self._journal.numbers()):
            if number <= self._known_entries or number in self._patches:
                continue
            with suppress(DamagedEntry):
                entry = self._journal.read(number)
                if entry.turn is None:
                    for change in entry.changes:
                        found[change.location] = change.written
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
            is_new: True if the turn began with a prompt.
            is_kept: False if nothing is to be written to the journal.

        Raises:
            PatchError, OSError: the journal cannot be written.
        """
        self.loss = None
        self.unrecorded = ""
        # Nobody expects a record of a whole home.
        if self._gave_up and not self._snapshots.store.is_no_project:
            self.unrecorded = _known_problem(self._snapshots) or self._problem
        try:
            self._add_last_changes()
            # Patches that cancel out leave no files, but none of them must be undone alone.
            has_changes = self._net.files() or self._unkept or self._patches
            if is_kept and has_changes:
                number = self._next_number(prompts, is_new=is_new)
                turn = self._turn(number)
                entry = turn_entry(self._net, self._folders, turn, self._in_place)
                self._journal.record(entry)
                self._last_number = number
            return self._net.diff(Path(os.path.realpath(self._cwd)))
        finally:
            if self._running is not None:
                self._running.end()
            self._reset()

    def _add_last_changes(self) -> None:
        """Make the last copy of the turn if anything ran since the one before, and add what patches
        have changed since."""
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
            # The order must not depend on when copies were made.
            self._net.sort(self._snapshots.root)

    def _next_number(self, prompts: int, *, is_new: bool) -> int:
        """Return the number of the turn in the session; see `end_turn`."""
        if self._last_number is None:
            entries = Entries(self._journal)
            self._last_number = entries.last_turn_number(self._thread_id)
        least = self._last_number
        if is_new:
            least += 1
        # After a compaction there are fewer prompts than turns.
        return max(prompts, least, 1)

    def _turn(self, number: int) -> TurnOfEntry:
        files = self._net.files()
        changed = {str(file.path) for file in files}
        began = 0.0
        if self._running is not None:
            began = self._running.record.began
        return TurnOfEntry(
            self._thread_id,
            number,
            patches=tuple(self._patches),
            unkept=tuple(self._unkept),
            began=began,
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
    """Say why changes by commands in a folder are not kept, in a sentence; None if no reason is known."""
    reason = _known_problem(snapshots_of(home, cwd, environment))
    if reason is None:
        return None
    return f"What commands change here is not kept: {reason}."


def _known_problem(snapshots: Snapshots) -> str | None:
    """Return the reason why the work tree could not be copied the last time; None if it could."""
    try:
        reason = read_whole(snapshots.store.path / _PROBLEM, _MAX_PROBLEM_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"the reason cannot be read: {error.strerror}"
    # On a full disk, the file is empty.
    return reason.decode(errors="replace") or "the disk was full"
