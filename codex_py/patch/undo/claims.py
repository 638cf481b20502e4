"""Tells whether an undo would take back what others did: other sessions in the folder, or whoever switched the
branch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from codex_py.patch.files.change import Entry, FileChange
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.running_turns import running_turns


def contested(known: Entries, undone: Sequence[Entry]) -> dict[str, str]:
    """By path why it may have been changed by somebody else, as far as there is evidence of it. `undone`: with
    contents."""
    found: dict[str, str] = {}
    for entry in undone:
        if entry.turn is None:
            continue
        if entry.turn.switched:
            reason = "the branch was switched from {} to {} meanwhile".format(*entry.turn.switched)
            found |= dict.fromkeys(entry.turn.unsure, reason)
        for other in known.in_force:
            if _ran_beside(entry, other):
                for path in _in_both(known.journal, entry, other):
                    found[path] = f"{other.name} may have changed it"
    return found


def sessions_at_work(journal: Journal, undone: Sequence[Entry]) -> set[str]:
    """The ids of other sessions whose turns run since before the end of one of these, and may have changed its
    files."""
    turns = [(entry, entry.turn) for entry in undone if entry.turn is not None]
    return {
        running.thread_id
        for running in running_turns(journal.home)
        for entry, turn in turns
        if running.thread_id != turn.thread_id
        and running.began < entry.time
        and any(Path(change.location).is_relative_to(running.root) for change in entry.changes)
    }


def _ran_beside(entry: Entry, other: Entry) -> bool:
    if entry.turn is None or other.turn is None or not other.turn.began:
        return False
    is_another = entry.turn.thread_id != other.turn.thread_id
    return is_another and other.turn.began < entry.time and entry.turn.began < other.time


def _in_both(journal: Journal, entry: Entry, other: Entry) -> Iterator[str]:
    """The files that both changed, and neither on top of the other."""
    ours = {change.location: change for change in entry.changes}
    if any(change.location in ours for change in other.changes):
        try:
            theirs = journal.read(other.number).changes
        except DamagedEntry:
            theirs = other.changes
        for change in theirs:
            our = ours.get(change.location)
            if our is not None and not _is_on_top(our, change) and not _is_on_top(change, our):
                yield change.location


def _is_on_top(later: FileChange, earlier: FileChange) -> bool:
    return later.old == earlier.written != earlier.old
