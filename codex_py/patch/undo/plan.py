"""Undoes entries of the journal: patches and turns.

    plan = plan_undo(journal, entry)     # refused if a file was edited since; nothing is written
    plan.commit()                        # everything is brought back, or nothing

An undo is a patch like any other: it is kept in the journal, and undoing it does the patch again. Several entries are
undone as one: what the newest left must be there, and what the oldest replaced comes back.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from codex_py.errors import CodexError, PatchError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.change import Entry, FileChange, State, patched_files
from codex_py.patch.files.commit import Committed, commit
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.failures import failing_to
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.journal import Journal
from codex_py.patch.files.modes import permissions_by_umask
from codex_py.patch.undo.claims import contested, sessions_at_work
from codex_py.protocol.patched_file import PatchedFile

_MAX_NAMED: Final = 20


class EditedSince(PatchError):
    """Files are no longer as the patch left them.

    Attributes:
        diff: from what the patch left to what is there, in the manner of git; if `is_plan`, what the undo would do.
        is_plan: nobody knows what the turn left, because the program died in it or others changed the same files.
    """

    code = "edited_since"

    def __init__(self, reason: str, diff: str, *, is_plan: bool = True) -> None:
        super().__init__(reason, kind="match")
        self.diff = diff
        self.is_plan = is_plan


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """An undo that has been checked against the files as they are."""

    entries: Sequence[Entry]
    """What is undone, the newest first."""
    changes: list[PatchedFile]
    """The changes that the undo makes."""
    unkept: Sequence[str]
    """Absolute paths of files that changed too, and stay as they are."""
    doubts: Sequence[str]
    """Sentences that say what others may have changed. To be told, or asked about, before `commit`."""
    journal: Journal
    _undo: Entry

    @property
    def entry(self) -> Entry:
        """The newest."""
        return self.entries[0]

    @property
    def diff(self) -> str:
        return git_diff(self.changes, Path(self.entry.cwd))

    def commit(self) -> Committed:
        """Write everything, or nothing. To be called once.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was checked.
        """
        return commit(self._undo, self.journal)


def plan_undo(
    journal: Journal, number: int | None = None, *, others: Sequence[int] = (), force: bool = False
) -> UndoPlan:
    """Find an entry and check that it can be undone. Nothing is written.

    Args:
        number: of the entry; None takes the newest one made in the journal's working directory or
            below it that has not been undone. Undos and patches that are part of a turn do not count.
        others: numbers of older entries to undo with it, the newest first.
        force: bring back the old contents even of files that were edited since. The edits are kept as
            what that replaces.

    Raises:
        EditedSince: a file is not as the entry left it.
        CodexError: there is no such entry, or it is undone already, or its contents were not kept.
    """
    undone = [find_patch(journal, each) for each in (number, *others)]
    known, _ = entries(journal)
    undos = undone_by(known)
    for entry in undone:
        if later := undos.get(entry.number):
            raise CodexError(
                f"{entry.name} is undone already; undoing {later} brings it back",
                code="undone_already",
            )
    names = ", ".join(entry.name for entry in undone)
    if lost := [change.path for entry in undone for change in entry.changes if not change.kept]:
        raise CodexError(
            f"{names} cannot be undone: what was in {', '.join(lost)} was not kept",
            code="not_undoable",
        )
    made = {folder for entry in undone for folder in entry.made}
    in_force = [entry for entry in known if entry.number not in undos]
    taken_back = _taken_back(in_force, undone[0].number)
    edited: list[PatchedFile] = []
    files: list[FileChange] = []
    unkept = {path for entry in undone if entry.turn for path in entry.turn.unkept}
    for change, gap in _joined(undone):
        if change.path in unkept and not force:
            # It was, or has become, too large: one side of it is not known.
            continue
        edited += gap
        with Directories() as directories, failing_to("read file", change.path):
            file = _as_it_is(change, made, directories)
        if not _is_as_left(file, change):
            if not gap and change.location in taken_back and _is_as_before(file, change):
                continue
            edited.append(PatchedFile.of(Path(file.path), change.new, file.old))
        files.append(_reversed(file, change))
    if edited and not force:
        paths = some_of(list(dict.fromkeys(str(change.path) for change in edited)))
        raise EditedSince(
            f"{names} {'were' if others else 'was'} not undone: edited since: {paths}",
            git_diff(edited, Path(undone[0].cwd)),
            is_plan=False,
        )
    if not force and any(entry.turn and entry.turn.is_cut_off for entry in undone):
        raise EditedSince(
            f"{names} was not undone: the program died in it, so later edits may be among its changes",
            git_diff(patched_files(files), Path(undone[0].cwd)),
        )
    claims = contested(journal, undone, in_force)
    claimed = [file for file in files if file.location in claims]
    if claimed and not force:
        reasons = "; ".join(dict.fromkeys(claims[file.location] for file in claimed))
        raise EditedSince(
            f"{names} {'were' if others else 'was'} not undone: others may have changed "
            f"{some_of([file.path for file in claimed])}: {reasons}",
            git_diff(patched_files(claimed), Path(undone[0].cwd)),
        )
    undo = Entry(files, undone[0].number, also_undoes=[entry.number for entry in undone[1:]])
    for entry in undone:
        undo.obsolete += entry.made[::-1]
        undo.made += entry.obsolete[::-1]
        undo.modes |= entry.modes
    passed = [entry for entry in _done_here(journal, in_force) if _is_passed_over(entry, undone)]
    turns = [entry.turn for entry in (*passed, *undone) if entry.turn]
    names_only = list(dict.fromkeys(path for turn in turns for path in turn.unkept))
    doubts = _doubts(undone, {file.path for file in files}, sessions_at_work(journal, undone))
    return UndoPlan(undone, patched_files(files), names_only, doubts, journal, undo)


def _taken_back(in_force: Sequence[Entry], number: int) -> set[str]:
    """The files that undos of other entries changed after the one with this number."""
    undos = [entry for entry in in_force if entry.undoes is not None and entry.number > number]
    return {change.location for entry in undos for change in entry.changes}


def _is_passed_over(entry: Entry, undone: Sequence[Entry]) -> bool:
    """True for a later turn that changed nothing but what is not kept."""
    is_undo = undone[0].undoes is not None
    return not entry.changes and not is_undo and entry.number > undone[0].number


def _doubts(undone: Sequence[Entry], changed: set[str], at_work: set[str]) -> list[str]:
    turns = [entry.turn for entry in undone if entry.turn is not None]
    unsure = [path for turn in turns for path in turn.unsure if path in changed]
    others = [path for turn in turns for path in turn.of_others if path not in changed]
    doubts: list[str] = []
    if unsure:
        doubts.append(
            f"A command of the session, or somebody else while it ran, changed {some_of(unsure)}."
        )
    if at_work:
        doubts.append(f"Session {', '.join(sorted(at_work))} has been at work here since before.")
    if doubts and others:
        doubts.append(f"What others changed meanwhile stays as it is: {some_of(others)}.")
    return doubts


def _joined(undone: Sequence[Entry]) -> Iterator[tuple[FileChange, list[PatchedFile]]]:
    """All changes of each file as one, and the edits between them. `undone`: the newest first."""
    found: dict[str, tuple[FileChange, list[PatchedFile]]] = {}
    for entry in undone:
        for change in entry.changes:
            if change.location not in found:
                found[change.location] = change, []
                continue
            last, edits = found[change.location]
            between = FileChange(last.path, last.location, last.before, last.old)
            if not _is_as_left(between, change):
                edits.append(PatchedFile.of(Path(change.path), change.new, last.old))
            if not change.exists and last.exists and last.mode is None:
                # It has the mode of a file that was made anew.
                last = replace(last, mode=permissions_by_umask(0o666))
            joined = replace(last, before=change.before, old=change.old)
            found[change.location] = joined, edits
    yield from found.values()


def turns_to(journal: Journal, number: int, thread_id: str | None = None) -> list[int]:
    """The entries of a session's turns from the last one back to the turn `number`, the newest first; see `plan_undo`.

    Args:
        thread_id: of the session; None takes the session of the newest turn in the journal's folder or below.

    Raises:
        CodexError: there are none that could be undone.
    """
    known, _ = entries(journal)
    undone = undone_by(known)
    turns = [(entry, entry.turn) for entry in _done_here(journal, known) if entry.turn is not None]
    if thread_id is None and turns:
        thread_id = turns[0][1].thread_id
    if found := [
        entry.number
        for entry, turn in turns
        if turn.thread_id == thread_id and turn.number >= number and entry.number not in undone
    ]:
        return found
    raise CodexError(
        f"there is nothing to undo in {journal.cwd} from turn {number} on",
        code="no_patch",
    )


def some_of(paths: Sequence[str]) -> str:
    """The first paths in one line, and how many more there are: a command may change thousands."""
    more = f" and {len(paths) - _MAX_NAMED:,} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]).replace("\n", "\u240a").replace("\t", "\u2409") + more


def undone_by(entries: Sequence[Entry]) -> dict[int, int]:
    """The number of each entry that has been undone, with that of the undo. `entries`: the newest first."""
    undone: dict[int, int] = {}
    for entry in entries:
        if entry.undoes is not None and entry.number not in undone:
            for number in (entry.undoes, *entry.also_undoes):
                undone.setdefault(number, entry.number)
        if entry.turn is not None and entry.number in undone:
            # Its patches went with it.
            for number in entry.turn.patches:
                undone.setdefault(number, undone[entry.number])
    return undone


def newest_undo(journal: Journal) -> int:
    """The newest undo in the journal's working directory or below it that is still in force.

    To undo it does the patch again, which is no undo. Raises a `CodexError` if there is none.
    """
    known, _ = entries(journal)
    undone = undone_by(known)
    undos: set[int] = set()
    for entry in reversed(known):
        if entry.undoes is not None and entry.undoes not in undos:
            undos.add(entry.number)
    for entry in _done_here(journal, known):
        if entry.number in undos and entry.number not in undone:
            return entry.number
    raise CodexError("there is nothing to redo", code="nothing_to_redo")


def entries(journal: Journal) -> tuple[list[Entry], list[int]]:
    """The entries of the journal without contents, the newest first, and the numbers of damaged ones."""
    found: list[Entry] = []
    damaged: list[int] = []
    for number in journal.numbers():
        try:
            found.append(journal.read(number, with_contents=False))
        except DamagedEntry:
            damaged.append(number)
    return found, damaged


def find_patch(journal: Journal, number: int | None = None) -> Entry:
    """The entry of a patch; None as for `plan_undo`. Raises a `CodexError` if there is none, or if it is damaged."""
    number = _newest(journal) if number is None else number
    try:
        return journal.read(number)
    except DamagedEntry as error:
        if number not in journal.numbers():
            raise CodexError(
                f"there is no patch {number}; see `codex-py undo --list`", code="no_patch"
            ) from error
        raise CodexError(f"patch {number} cannot be read: {error}", code="no_patch") from error


def _newest(journal: Journal) -> int:
    known, _ = entries(journal)
    undone = undone_by(known)
    in_turns = {number for entry in known if entry.turn for number in entry.turn.patches}
    made = [
        entry
        for entry in _done_here(journal, known)
        if entry.undoes is None and entry.number not in in_turns
    ]
    for entry in made:
        # A turn may have changed only what is not kept; a patch, only folders.
        if entry.number not in undone and (entry.turn is None or entry.changes):
            return entry.number
    if unkept := [path for entry in made if entry.turn for path in entry.turn.unkept]:
        reason = f"{some_of(list(dict.fromkeys(unkept)))} changed, and was not kept"
    elif made:
        reason = "everything that was changed is undone"
    elif known and not Path(known[0].cwd).exists():
        reason = f"the last changes were made in {known[0].cwd}, which does not exist any more (rename it back, and undo there), and none"
    else:
        reason = "no patch and no turn changed anything"
    raise CodexError(f"nothing to undo: {reason} in {journal.cwd}", code="no_patch")


def _done_here(journal: Journal, known: Sequence[Entry]) -> list[Entry]:
    done = [entry for entry in known if entry.state == State.COMMITTED]
    return [entry for entry in done if Path(entry.cwd).is_relative_to(journal.cwd)]


def _as_it_is(change: FileChange, made: set[str], directories: Directories) -> FileChange:
    # Where a directory has become a link, what that leads to is another file.
    before = directories.status(change.location)
    if before is not None and before.is_directory and change.location in made:
        # Made by the patch where a file was; it goes, and the file comes back.
        before = None
    file = FileChange(change.path, change.location, before, touched=True)
    if before is not None:
        file.old = directories.contents(change.location, before)
    return file


def _is_as_left(file: FileChange, change: FileChange) -> bool:
    if file.before is None or not change.exists:
        return file.before is None and not change.exists
    return file.before.is_link == change.is_link and file.old == change.new


def _is_as_before(file: FileChange, change: FileChange) -> bool:
    if file.before is None or change.before is None:
        return file.before is None and change.before is None
    return file.before.is_link == change.before.is_link and file.old == change.old


def _reversed(file: FileChange, change: FileChange) -> FileChange:
    before = change.before
    if before is None:
        return file
    file.present, file.new, file.is_link = True, change.old, before.is_link
    if not file.is_link and (not change.exists or change.is_link or change.mode is not None):
        file.mode = before.permissions
    if os.geteuid() == 0:
        # Nobody else can give a file away.
        file.owner = (before.user, before.group)
    return file
