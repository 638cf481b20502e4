"""Undoes entries of the journal: patches and turns.

    plan = plan_undo(journal, entry)     # refused if a file was edited since; nothing is written
    plan.commit()                        # everything is brought back, or nothing

An undo is a patch like any other: it is kept in the journal, and undoing it applies the patch
again. Several entries are undone as one: the files must be as the newest entry left them, and become
what they were before the oldest.
"""

import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import CodexError, PatchError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.change import EntryChange, JournalEntry, patched_files
from codex_py.patch.files.commit import Committed, commit
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.failures import failing_to
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.journal import Journal
from codex_py.patch.files.modes import permissions_by_umask
from codex_py.patch.undo.copies.earlier import has_any, mark_of
from codex_py.patch.undo.entries import Entries, unkept_in
from codex_py.patch.undo.running_turns import TurnRecord, running_turns
from codex_py.protocol.patched_file import PatchedFile
from codex_py.streams.terminal import some_of


class EditedSince(PatchError):
    """Files are not, or may not be, as the patch left them.

    Attributes:
        diff: the changes since the patch, as a git diff; if `is_plan`, those that the undo would make.
        is_plan: True if it is not known what the turn left, because the program died in it or others
            changed the same files.
    """

    code = "edited_since"

    def __init__(
        self,
        reason: str,
        diff: str,
        *,
        is_plan: bool = True,
    ) -> None:
        super().__init__(reason, kind="match")
        self.diff = diff
        self.is_plan = is_plan


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """An undo that has been checked against the files as they are."""

    entries: Sequence[JournalEntry]
    """The entries to undo, the newest first."""
    changes: list[PatchedFile]
    """The changes that the undo makes."""
    unkept: Sequence[str]
    """Absolute paths of files that the entries changed too, but that the undo leaves as they are:
    their contents were not kept."""
    doubts: Sequence[str]
    """Sentences about what others may have changed. Show them, or ask about them, before
    `commit`."""
    journal: Journal
    _undo: JournalEntry
    """The entry of the undo itself."""

    @property
    def entry(self) -> JournalEntry:
        """The newest entry."""
        return self.entries[0]

    @property
    def diff(self) -> str:
        """The changes as a git diff. Bytes that are not UTF-8 become lone surrogates, as with
        `surrogateescape`."""
        return git_diff(self.changes, Path(self.entry.cwd), keeps_bytes=True)

    def commit(self) -> Committed:
        """Write everything, or nothing. Call this once.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was checked.
        """
        return commit(self._undo, self.journal)


def plan_undo(
    journal: Journal,
    number: int | None = None,
    *,
    others: Sequence[int] = (),
    force: bool = False,
) -> UndoPlan:
    """Find an entry and check that it can be undone. Nothing is written.

    Args:
        number: the number of the entry; None takes the newest, as `Entries.find` does.
        others: numbers of older entries to undo with it, the newest first.
        force: bring back the old contents even of files that were edited since. The undo keeps the
            edits as the contents that it replaced.

    Raises:
        EditedSince: a file is not as the entry left it.
        CodexError: the entry does not exist, is undone already, or its contents were not kept.
    """
    known = Entries(journal)
    undone = [known.find(each) for each in (number, *others)]
    _check_undoable(known, undone)
    unkept = set[str]()
    if not force:
        unkept = set(unkept_in(undone))
    reversal = _reversal(known, undone, unkept)
    files = reversal.files
    if not force:
        _check(known, undone, reversal)
    first, *older = undone
    also_undoes = [entry.number for entry in older]
    undo = JournalEntry(files, first.number, also_undoes=also_undoes)
    for entry in undone:
        undo.obsolete += entry.made[::-1]
        undo.made += entry.obsolete[::-1]
        undo.modes |= entry.modes
    names_only = unkept_in([*_passed_over(known, first), *undone])
    changed = {file.path for file in files}
    doubts = _doubts(undone, changed, _sessions_at_work(journal, undone))
    return UndoPlan(undone, patched_files(files), names_only, doubts, journal, undo)


def _passed_over(known: Entries, entry: JournalEntry) -> list[JournalEntry]:
    """The turns after an entry that changed only files without kept contents; none for an undo."""
    if entry.undoes is not None:
        return []
    return [
        later
        for later in known.done_here
        if later.number > entry.number
        and not later.changes
        and later.number not in known.undone
    ]


def _check_undoable(known: Entries, undone: Sequence[JournalEntry]) -> None:
    """Raise a `CodexError` if an entry is undone already, or its contents were not kept."""
    for entry in undone:
        later = known.undone.get(entry.number)
        if later:
            raise CodexError(
                f"{entry.name} is undone already; undoing {later} brings it back",
                code="undone_already",
            )
    lost: list[str] = []
    for entry in undone:
        lost += [change.path for change in entry.changes if not change.kept]
    if lost:
        raise CodexError(
            f"{_names(undone)} cannot be undone: what was in {', '.join(lost)} was not kept",
            code="not_undoable",
        )


class _Reversal(NamedTuple):
    """What undoing the entries means for each of their changes."""

    files: list[EntryChange]
    """The changes that undo the entries."""
    edited: list[PatchedFile]
    """The edits by others that the undo would undo too."""
    left: list[EntryChange]
    """The changes of the entries that are not undone."""


def _reversal(
    known: Entries,
    undone: Sequence[JournalEntry],
    unkept: set[str],
) -> _Reversal:
    """Work out the changes that undo the entries, and the edits since.

    Args:
        unkept: absolute paths of files that are, or have become, too large. One side of them is not
            known, so they stay as they are.
    """
    made = {folder for entry in undone for folder in entry.made}
    undone_later = _undone_later(known, undone[0])
    found = _Reversal([], [], [])
    for change, edits_between in _joined(undone):
        if change.path in unkept and os.path.lexists(change.location):
            found.left.append(change)
            continue
        found.edited.extend(edits_between)
        with Directories() as directories, failing_to("read file", change.path):
            file = _as_it_is(change, made, directories)
        if _before(file) != _after(change):
            is_back = _before(file) == _before(change)
            if is_back and not edits_between and change.location in undone_later:
                # Another undo has brought it back already.
                continue
            edit = PatchedFile.of(Path(file.path), change.new, file.old)
            found.edited.append(edit)
        found.files.append(_reversed(file, change))
    return found


def _undone_later(known: Entries, entry: JournalEntry) -> set[str]:
    """The locations of the files that undos after an entry have changed."""
    locations: set[str] = set()
    for later in known.in_force:
        if later.undoes is not None and later.number > entry.number:
            locations.update(change.location for change in later.changes)
    return locations


def _check(
    known: Entries,
    undone: Sequence[JournalEntry],
    reversal: _Reversal,
) -> None:
    """Check that nobody else changed, or may have changed, the files, and that no contents get lost.

    Raises:
        EditedSince: with all reasons, so that whoever forces the undo knows all of them.
    """
    files, edited, left = reversal
    shown: Sequence[PatchedFile] = []
    reasons: list[str] = []
    if edited:
        names = dict.fromkeys(str(change.path) for change in edited)
        paths = some_of(list(names))
        reasons.append(f"edited since: {paths}")
        shown = edited
    elif any(entry.turn and entry.turn.is_cut_off for entry in undone):
        reasons.append(
            "the program died in it, so later edits may be among its changes"
        )
        shown = patched_files(files)
    else:
        claims = _contested(known, undone)
        claimed = [file for file in files if file.location in claims]
        if claimed:
            told = dict.fromkeys(claims[file.location] for file in claimed)
            whose = "; ".join(told)
            paths = some_of([file.path for file in claimed])
            reasons.append(f"others may have changed {paths}: {whose}")
            shown = patched_files(claimed)
    last_copies = _last_copies(undone, files, left)
    if last_copies:
        paths = some_of([file.path for file in last_copies])
        reasons.append(
            f"{paths} may be the last copy of what was there before under another name and cannot "
            "be brought back there, as ignored folders and large files are not kept"
        )
        shown = shown or patched_files(last_copies)
    if reasons:
        reason = "; besides, ".join(reasons)
        raise _refusal(undone, reason, shown, is_plan=not edited)


def _last_copies(
    undone: Sequence[JournalEntry],
    files: Sequence[EntryChange],
    left: Sequence[EntryChange],
) -> Sequence[EntryChange]:
    """Find the changes of the undo that would delete the last copy of contents from before the entries.

    Args:
        files: the changes of the undo.
        left: changes of the entries that are not undone.
    """
    earlier = _earlier(undone, left)
    brought_back = {
        mark_of(each.new or b"", is_link=each.is_link) for each in files if each.exists
    }
    changing = {file.location for file in files}
    # Cached, because many files may have the same places.
    found_at = cache(_found_at)
    last: list[EntryChange] = []
    for file in files:
        if file.before is None or file.old is None:
            continue
        is_link = file.before.is_link
        mark = mark_of(file.old, is_link=is_link)
        if mark not in earlier or mark in brought_back:
            continue
        found = map(found_at, earlier[mark])
        staying = {place for place in found if place is not None} - changing
        if not has_any(staying, file.old, is_link=is_link):
            last.append(file)
    return last


def _found_at(place: str) -> str | None:
    """Resolve the links in the folders of a path; None if there is no entry at the path.

    If the entry itself is a link, it is not followed.
    """
    if not os.path.lexists(place):
        return None
    path = Path(place)
    folder = Path(os.path.realpath(path.parent))
    return str(folder / path.name)


def _earlier(
    undone: Sequence[JournalEntry], left: Sequence[EntryChange]
) -> dict[str, set[str]]:
    """Find the paths that may hold contents from before the entries, by the mark of the contents.

    The undo cannot bring such contents back at these paths. `left`: see `_last_copies`.
    """
    found: dict[str, set[str]] = {}
    for entry in undone:
        if entry.turn is not None:
            for mark, places in entry.turn.earlier.items():
                found.setdefault(mark, set()).update(places)
    for change in left:
        if change.before is not None and change.old:
            mark = mark_of(change.old, is_link=change.before.is_link)
            found.setdefault(mark, set()).add(change.location)
    return found


def _refusal(
    undone: Sequence[JournalEntry],
    reason: str,
    files: Sequence[PatchedFile],
    *,
    is_plan: bool = True,
) -> EditedSince:
    verb = "was"
    if len(undone) > 1:
        verb = "were"
    diff = git_diff(files, Path(undone[0].cwd), keeps_bytes=True)
    message = f"{_names(undone)} {verb} not undone: {reason}"
    return EditedSince(message, diff, is_plan=is_plan)


def _names(undone: Sequence[JournalEntry]) -> str:
    return ", ".join(entry.name for entry in undone)


def _doubts(
    undone: Sequence[JournalEntry],
    changed: set[str],
    at_work: set[str],
) -> list[str]:
    """Write the sentences of `UndoPlan.doubts`.

    Args:
        changed: the paths that the undo changes.
        at_work: the ids of the other sessions at work.
    """
    turns = [entry.turn for entry in undone if entry.turn is not None]
    unsure: list[str] = []
    others: list[str] = []
    for turn in turns:
        unsure += [path for path in turn.unsure if path in changed]
        others += [path for path in turn.of_others if path not in changed]
    doubts: list[str] = []
    if unsure:
        doubts.append(
            f"A command of the session, or somebody else while it ran, changed {some_of(unsure)}."
        )
    if at_work:
        doubts.append(
            f"Session {', '.join(sorted(at_work))} has been at work here since before."
        )
    if doubts and others:
        doubts.append(
            f"What others changed meanwhile stays as it is: {some_of(others)}."
        )
    return doubts


def _joined(
    undone: Sequence[JournalEntry],
) -> Iterator[tuple[EntryChange, list[PatchedFile]]]:
    """Join the changes of each file by several entries, the newest first.

    Yields each joined change with the edits by others between the entries.
    """
    found: dict[str, tuple[EntryChange, list[PatchedFile]]] = {}
    for entry in undone:
        for change in entry.changes:
            if change.location not in found:
                found[change.location] = (change, [])
                continue
            later, edits = found[change.location]
            if _before(later) != _after(change):
                edit = PatchedFile.of(Path(change.path), change.new, later.old)
                edits.append(edit)
            found[change.location] = (_join(change, later), edits)
    yield from found.values()


def _join(earlier: EntryChange, later: EntryChange) -> EntryChange:
    """Make one change of two changes of a file."""
    joined = copy(later)
    if not earlier.exists and later.exists and later.mode is None:
        # The file was removed and made anew, with the mode of a new file.
        joined.mode = permissions_by_umask(0o666)
    joined.before = earlier.before
    joined.old = earlier.old
    if not earlier.is_in_place:
        joined.backup = earlier.backup
    return joined


def _as_it_is(
    change: EntryChange,
    made: set[str],
    directories: Directories,
) -> EntryChange:
    """Make a removal of the entry that is now at the place of a change.

    Args:
        made: the directories that the entries made.
    """
    # If a directory has become a link, `status` finds nothing: the link leads to another file.
    before = directories.status(change.location)
    if before is not None and before.is_directory and change.location in made:
        # The patch made this directory in the place of a file, which comes back.
        before = None
    file = EntryChange(change.path, change.location, before)
    file.fate = "removed"
    if before is not None:
        file.old = directories.contents(change.location, before)
    return file


def _before(change: EntryChange) -> tuple[bool, bytes | None] | None:
    """Return the state before a change: True for a link, and the contents; None if nothing was there."""
    if change.before is None:
        return None
    return (change.before.is_link, change.old)


def _after(change: EntryChange) -> tuple[bool, bytes | None] | None:
    """Return the state after a change, in the same form as `_before`."""
    if change.exists:
        return (change.is_link, change.new)
    return None


def _reversed(file: EntryChange, change: EntryChange) -> EntryChange:
    """Turn the removal of `file` into the opposite of a change, if that had an old state."""
    before = change.before
    if before is None:
        return file
    file.fate = "link" if before.is_link else "file"
    file.new = change.old
    # Hard links are kept only if the change kept them: a command may have made others since.
    file.breaks_links = not change.is_in_place
    has_lost_mode = not change.exists or change.is_link or change.mode is not None
    if has_lost_mode and not file.is_link:
        file.mode = before.permissions
    if os.geteuid() == 0:
        # Only root can give a file away.
        file.owner = (before.user, before.group)
    return file


def _contested(known: Entries, undone: Sequence[JournalEntry]) -> dict[str, str]:
    """Find evidence that somebody else changed a file: a reason for each path that has some.

    Args:
        undone: entries with their contents.
    """
    found: dict[str, str] = {}
    for entry in undone:
        turn = entry.turn
        if turn is None:
            continue
        if turn.switched:
            old, new = turn.switched
            reason = f"the branch was switched from {old} to {new} meanwhile"
            found |= dict.fromkeys(turn.unsure, reason)
        for other in known.in_force:
            if _ran_beside(entry, other):
                for path in _in_both(known.journal, entry, other):
                    found[path] = f"{other.name} may have changed it"
    return found


def _sessions_at_work(journal: Journal, undone: Sequence[JournalEntry]) -> set[str]:
    """Return the ids of other sessions whose running turn may have changed files of these entries."""
    return {
        running.thread_id
        for running in running_turns(journal.home)
        if any(_may_have_changed(running, entry) for entry in undone)
    }


def _may_have_changed(running: TurnRecord, entry: JournalEntry) -> bool:
    """True if a turn of another session began before an entry ended, and works on its files."""
    if entry.turn is None or running.thread_id == entry.turn.thread_id:
        return False
    if running.began >= entry.time:
        return False
    paths = [Path(change.location) for change in entry.changes]
    return any(path.is_relative_to(running.root) for path in paths)


def _ran_beside(entry: JournalEntry, other: JournalEntry) -> bool:
    """True if two turns of different sessions ran at the same time."""
    if entry.turn is None or other.turn is None or not other.turn.began:
        return False
    if entry.turn.thread_id == other.turn.thread_id:
        return False
    return other.turn.began < entry.time and entry.turn.began < other.time


def _in_both(
    journal: Journal,
    entry: JournalEntry,
    other: JournalEntry,
) -> Iterator[str]:
    """The files that both entries changed, unless one started from the result of the other.

    Args:
        other: an entry that was read without contents.
    """
    ours = {change.location: change for change in entry.changes}
    if not any(change.location in ours for change in other.changes):
        return
    try:
        theirs = journal.read(other.number).changes
    except DamagedEntry:
        theirs = other.changes
    for their in theirs:
        our = ours.get(their.location)
        if our is None or _is_on_top(our, their) or _is_on_top(their, our):
            continue
        yield their.location


def _is_on_top(later: EntryChange, earlier: EntryChange) -> bool:
    """True if a change started from the result of another one."""
    return later.old == earlier.written and earlier.written != earlier.old
