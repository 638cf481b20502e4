"""Bring back what a patch replaced.

    plan = plan_undo(journal, entry)     # refused if a file was edited since; nothing is written
    plan.commit()                        # everything is brought back, or nothing

An undo is a patch like any other: it is kept in the journal, and undoing it does the patch again.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codex_py.errors import CodexError, PatchError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.change import Entry, FileChange, State, patched_files
from codex_py.patch.files.commit import Committed, commit
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.failures import failing_to
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.journal import Journal
from codex_py.protocol.patched_file import PatchedFile


class EditedSince(PatchError):
    """Files are no longer as the patch left them.

    Attributes:
        diff: from what the patch left to what is there, in the manner of git.
    """

    code = "edited_since"

    def __init__(self, reason: str, diff: str) -> None:
        super().__init__(reason, kind="match")
        self.diff = diff


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """An undo that has been checked against the files as they are."""

    entry: Entry
    """The patch that is undone."""
    changes: list[PatchedFile]
    """The changes that the undo makes."""
    _files: list[FileChange]
    _journal: Journal

    def commit(self) -> Committed:
        """Write everything, or nothing. To be called once.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was checked.
        """
        undone = self.entry
        obsolete, made = undone.made[::-1], undone.obsolete[::-1]
        entry = Entry(self._files, undone.number, obsolete, made, dict(undone.modes))
        return commit(entry, self._journal)


def plan_undo(journal: Journal, number: int | None = None, *, force: bool = False) -> UndoPlan:
    """Find a patch and check that it can be undone. Nothing is written.

    Args:
        number: of the entry; None takes the newest patch made in the journal's working directory or
            below it that has not been undone.
        force: bring back the old contents even of files that were edited since. The edits are kept as
            what that replaces.

    Raises:
        EditedSince: a file is not as the patch left it.
        CodexError: there is no such patch, or it is undone already, or its contents were not kept.
    """
    entry = find_patch(journal, number)
    if later := undone_by(entries(journal)[0]).get(entry.number):
        raise CodexError(
            f"patch {entry.number} is undone already; undoing {later} brings it back",
            code="undone_already",
        )
    if lost := [change.path for change in entry.changes if not change.kept]:
        raise CodexError(
            f"patch {entry.number} cannot be undone: what was in {', '.join(lost)} was not kept",
            code="not_undoable",
        )
    made = set(entry.made)
    edited: list[PatchedFile] = []
    files: list[FileChange] = []
    with Directories() as directories:
        for change in entry.changes:
            with failing_to("read file", change.path):
                file = _as_it_is(change, made, directories)
            if not _is_as_left(file, change):
                edited.append(PatchedFile.of(Path(file.path), change.new, file.old))
            files.append(_reversed(file, change))
    if edited and not force:
        names = ", ".join(str(change.path) for change in edited)
        raise EditedSince(
            f"patch {entry.number} was not undone: edited since: {names}",
            git_diff(edited, Path(entry.cwd)),
        )
    return UndoPlan(entry, patched_files(files), files, journal)


def undone_by(entries: Sequence[Entry]) -> dict[int, int]:
    """The number of each entry that has been undone, with that of the undo. `entries`: the newest first."""
    undone: dict[int, int] = {}
    for entry in entries:
        if entry.undoes is not None and entry.number not in undone:
            undone.setdefault(entry.undoes, entry.number)
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
    made = [entry.number for entry in _done_here(journal, known) if entry.undoes is None]
    for number in made:
        if number not in undone:
            return number
    reason = "every patch is undone that was made" if made else "no patch was made"
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
