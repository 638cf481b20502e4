"""Undoes entries of the journal: patches and turns.

    plan = plan_undo(journal, entry)     # refused if a file was edited since; nothing is written
    plan.commit()                        # everything is brought back, or nothing

An undo is a patch like any other: it is kept in the journal, and undoing it applies the patch
again. Several entries are undone as one: what the newest left must be there, and what the oldest
replaced comes back.
"""

import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
    """Files are no longer, or may be no longer, as the patch left them.

    Attributes:
        diff: from what the patch left to what is there, in the manner of git; if `is_plan`, what the undo would do.
        is_plan: nobody knows what the turn left, because the program died in it or others changed the same files.
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
    """Absolute paths of files that changed too, and stay as they are."""
    doubts: Sequence[str]
    """Sentences about what others may have changed. Show them, or ask about them, before
    `commit`."""
    journal: Journal
    _undo: JournalEntry

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
    unkept = set[str]() if force else set(unkept_in(undone))
    files, edited, left = _reversal(known, undone, unkept)
    if not force:
        _check(known, undone, files, edited, _last_copies(undone, files, left))
    first, *others_undone = undone
    also_undoes = [entry.number for entry in others_undone]
    undo = JournalEntry(files, first.number, also_undoes=also_undoes)
    for entry in undone:
        undo.obsolete += entry.made[::-1]
        undo.made += entry.obsolete[::-1]
        undo.modes |= entry.modes
    # Later turns that changed only files without kept contents are passed over.
    passed = [
        entry
        for entry in known.done_here
        if not entry.changes
        and entry.number > undone[0].number
        and undone[0].undoes is None
        if entry.number not in known.undone
    ]
    names_only = unkept_in([*passed, *undone])
    doubts = _doubts(
        undone, {file.path for file in files}, _sessions_at_work(journal, undone)
    )
    return UndoPlan(undone, patched_files(files), names_only, doubts, journal, undo)


def _check_undoable(known: Entries, undone: Sequence[JournalEntry]) -> None:
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


def _reversal(
    known: Entries, undone: Sequence[JournalEntry], unkept: set[str]
) -> tuple[list[EntryChange], list[PatchedFile], list[EntryChange]]:
    """Return what undoing the entries means for each of their changes.

    Returns three lists: the changes that undo the entries, the later edits that these would undo
    too, and the changes of the entries that are not undone.

    Args:
        unkept: files that are, or have become, too large: one side of them is not known, and they
            stay as they are.
    """
    made = {folder for entry in undone for folder in entry.made}
    taken_back: set[str] = set()
    for entry in known.in_force:
        if entry.undoes is not None and entry.number > undone[0].number:
            taken_back.update(change.location for change in entry.changes)
    files: list[EntryChange] = []
    edited: list[PatchedFile] = []
    left: list[EntryChange] = []
    for change, gap in _joined(undone):
        if change.path in unkept and os.path.lexists(change.location):
            left.append(change)
            continue
        edited += gap
        with Directories() as directories, failing_to("read file", change.path):
            file = _as_it_is(change, made, directories)
        if _before(file) != _after(change):
            if (
                not gap
                and change.location in taken_back
                and _before(file) == _before(change)
            ):
                continue
            edit = PatchedFile.of(Path(file.path), change.new, file.old)
            edited.append(edit)
        files.append(_reversed(file, change))
    return files, edited, left


def _check(
    known: Entries,
    undone: Sequence[JournalEntry],
    files: Sequence[EntryChange],
    edited: Sequence[PatchedFile],
    last: Sequence[EntryChange],
) -> None:
    """Raise an `EditedSince` if others changed, or may have changed, the files, or contents would be
    lost. It has all reasons: whoever forces the undo does so against all of them.

    Args:
        last: the last copies that the undo would delete.
    """
    shown: Sequence[PatchedFile] = []
    reasons: list[str] = []
    if edited:
        paths = some_of(list(dict.fromkeys(str(change.path) for change in edited)))
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
            whose = "; ".join(dict.fromkeys(claims[file.location] for file in claimed))
            paths = some_of([file.path for file in claimed])
            reasons.append(f"others may have changed {paths}: {whose}")
            shown = patched_files(claimed)
    if last:
        paths = some_of([file.path for file in last])
        reasons.append(
            f"{paths} may be the last copy of what was there before under another name and cannot "
            "be brought back there, as ignored folders and large files are not kept"
        )
        shown = shown or patched_files(last)
    if reasons:
        reason = "; besides, ".join(reasons)
        raise _refusal(undone, reason, shown, is_plan=not edited)


def _last_copies(
    undone: Sequence[JournalEntry],
    files: Sequence[EntryChange],
    left: Sequence[EntryChange],
) -> Sequence[EntryChange]:
    """The changes whose undo would delete the last copy of contents from before the entries.

    Args:
        left: changes that are not undone.
    """
    earlier = _earlier(undone, left)
    back = {
        mark_of(each.new or b"", is_link=each.is_link) for each in files if each.exists
    }
    changing = {file.location for file in files}
    # Many files may have the same places.
    found_at = cache(_found_at)
    last: list[EntryChange] = []
    for file in files:
        if file.before is None or file.old is None:
            continue
        is_link = file.before.is_link
        mark = mark_of(file.old, is_link=is_link)
        if mark not in earlier or mark in back:
            continue
        found = map(found_at, earlier[mark])
        staying = {place for place in found if place is not None} - changing
        if not has_any(staying, file.old, is_link=is_link):
            last.append(file)
    return last


def _found_at(place: str) -> str | None:
    """The path of an entry with links in its folders resolved; None if there is no entry.

    The entry itself may be a link.
    """
    if not os.path.lexists(place):
        return None
    path = Path(place)
    return str(Path(os.path.realpath(path.parent)) / path.name)


def _earlier(
    undone: Sequence[JournalEntry], left: Sequence[EntryChange]
) -> dict[str, set[str]]:
    """The places that may have contents from before the entries that cannot be brought back, by the
    mark of the contents. `left`: see `_last_copies`."""
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
    if len(undone) == 1:
        reason = f"{_names(undone)} was not undone: {reason}"
    else:
        reason = f"{_names(undone)} were not undone: {reason}"
    diff = git_diff(files, Path(undone[0].cwd), keeps_bytes=True)
    return EditedSince(reason, diff, is_plan=is_plan)


def _names(undone: Sequence[JournalEntry]) -> str:
    return ", ".join(entry.name for entry in undone)


def _doubts(
    undone: Sequence[JournalEntry], changed: set[str], at_work: set[str]
) -> list[str]:
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
    """Join the changes of each file; yields them with the edits between. `undone`: the newest
    first."""
    found: dict[str, tuple[EntryChange, list[PatchedFile]]] = {}
    for entry in undone:
        for change in entry.changes:
            if change.location not in found:
                found[change.location] = change, []
                continue
            last, edits = found[change.location]
            if _before(last) != _after(change):
                edit = PatchedFile.of(Path(change.path), change.new, last.old)
                edits.append(edit)
            joined = copy(last)
            if not change.exists and last.exists and last.mode is None:
                # The file was removed and made anew, with the mode of a new file.
                joined.mode = permissions_by_umask(0o666)
            joined.before = change.before
            joined.old = change.old
            if not change.is_in_place:
                joined.backup = change.backup
            found[change.location] = joined, edits
    yield from found.values()


def _as_it_is(
    change: EntryChange, made: set[str], directories: Directories
) -> EntryChange:
    # If a directory has become a link, the link leads to another file.
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
    """The state before a change: True for a link, and the contents; None if nothing was there."""
    if change.before is None:
        return None
    return (change.before.is_link, change.old)


def _after(change: EntryChange) -> tuple[bool, bytes | None] | None:
    if change.exists:
        return (change.is_link, change.new)
    return None


def _reversed(file: EntryChange, change: EntryChange) -> EntryChange:
    before = change.before
    if before is None:
        return file
    file.fate = "link" if before.is_link else "file"
    file.new = change.old
    # Links are kept only if the change kept them: a command may have made the others.
    file.breaks_links = not change.is_in_place
    if not file.is_link and (
        not change.exists or change.is_link or change.mode is not None
    ):
        file.mode = before.permissions
    if os.geteuid() == 0:
        # Only root can give a file away.
        file.owner = (before.user, before.group)
    return file


def _contested(known: Entries, undone: Sequence[JournalEntry]) -> dict[str, str]:
    """The reasons, by path, to believe that somebody else changed a file, as far as there is
    evidence. `undone`: entries with their contents."""
    found: dict[str, str] = {}
    for entry in undone:
        if entry.turn is None:
            continue
        if entry.turn.switched:
            reason = "the branch was switched from {} to {} meanwhile".format(
                *entry.turn.switched
            )
            found |= dict.fromkeys(entry.turn.unsure, reason)
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
    if entry.turn is None or other.turn is None or not other.turn.began:
        return False
    is_another = entry.turn.thread_id != other.turn.thread_id
    return (
        is_another and other.turn.began < entry.time and entry.turn.began < other.time
    )


def _in_both(
    journal: Journal, entry: JournalEntry, other: JournalEntry
) -> Iterator[str]:
    """The files that both entries changed, neither of them starting from the other's result."""
    ours = {change.location: change for change in entry.changes}
    if any(change.location in ours for change in other.changes):
        try:
            theirs = journal.read(other.number).changes
        except DamagedEntry:
            theirs = other.changes
        for change in theirs:
            our = ours.get(change.location)
            if (
                our is not None
                and not _is_on_top(our, change)
                and not _is_on_top(change, our)
            ):
                yield change.location


def _is_on_top(later: EntryChange, earlier: EntryChange) -> bool:
    return later.old == earlier.written != earlier.old
