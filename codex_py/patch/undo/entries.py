"""Finds the entries of the journal that can be undone or redone."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.patch.files.change import EntryChange, JournalEntry, State
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.streams.terminal import some_of


def read_journal(home: Path, folder: Path) -> "Entries":
    """Read the journal of patches and turns, without the contents of files.

    Args:
        home: `$CODEX_HOME`.
        folder: absolute; `Entries.done_here` has the entries that were made in it or below.
    """
    return Entries(Journal(home, folder))


class Entries:
    """The entries that a journal has now."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.known: list[JournalEntry] = []
        """All readable entries without contents, the newest first."""
        self.damaged: list[int] = []
        """The numbers of entries that cannot be read."""
        for number in journal.numbers():
            try:
                self.known.append(journal.read(number, with_contents=False))
            except DamagedEntry:
                self.damaged.append(number)

    @cached_property
    def undone(self) -> Mapping[int, int]:
        """The number of the undo, by the number of each undone entry."""
        undone: dict[int, int] = {}
        for entry in self.known:
            if entry.undoes is not None and entry.number not in undone:
                for number in (entry.undoes, *entry.also_undoes):
                    undone.setdefault(number, entry.number)
            if entry.turn is not None and entry.number in undone:
                # The patches of a turn are undone with it.
                for number in entry.turn.patches:
                    undone.setdefault(number, undone[entry.number])
        return undone

    @property
    def in_force(self) -> list[JournalEntry]:
        """The entries that are not undone."""
        return [entry for entry in self.known if entry.number not in self.undone]

    @property
    def in_effect(self) -> list[JournalEntry]:
        """The entries that were carried out and are not undone, the oldest first."""
        done = [entry for entry in self.in_force if entry.state == State.COMMITTED]
        return done[::-1]

    def changes(self, number: int) -> Sequence[EntryChange] | None:
        """Read the changes of an entry with their contents. None if it cannot be read."""
        try:
            return self.journal.read(number).changes
        except DamagedEntry:
            return None

    @property
    def done_here(self) -> list[JournalEntry]:
        """The entries made in the journal's working directory or below it, undone or not."""
        done = [entry for entry in self.known if entry.state == State.COMMITTED]
        return [
            entry for entry in done if Path(entry.cwd).is_relative_to(self.journal.cwd)
        ]

    def find(self, number: int | None = None) -> JournalEntry:
        """An entry with its contents.

        Args:
            number: None takes the newest of `done_here` that is not undone. Undos and patches that are part of a turn
                do not count.

        Raises:
            CodexError: the entry does not exist, or is damaged.
        """
        if number is None:
            number = self._newest()
            self._require_readable_since(number)
        try:
            return self.journal.read(number)
        except DamagedEntry as error:
            what = f"patch {number} cannot be read: {error}"
            if number not in self.journal.numbers():
                what = f"there is no patch {number}; see `codex-py undo --list`"
            raise CodexError(what, code="no_patch") from error

    def newest_undo(self) -> int:
        """The newest undo of `done_here` that is still in force.

        Undoing an undo applies the patch again, and does not count as an undo. Raises a
        `CodexError` if nothing can be redone.
        """
        undos: set[int] = set()
        for entry in reversed(self.known):
            if entry.undoes is not None and entry.undoes not in undos:
                undos.add(entry.number)
        for entry in self.done_here:
            if entry.number in undos and entry.number not in self.undone:
                return entry.number
        raise CodexError("there is nothing to redo", code="nothing_to_redo")

    def turns_to(self, number: int, thread_id: str | None = None) -> list[int]:
        """The entries of a session's turns from the last one back to the turn `number`, the newest first; see
        `plan_undo`.

        Args:
            thread_id: the thread of the session; None takes the session of the newest turn of
                `done_here`.

        Raises:
            CodexError: the session has no such turn that could be undone.
        """
        turns = [
            (entry.number, entry.turn)
            for entry in self.done_here
            if entry.turn is not None
        ]
        if thread_id is None and turns:
            thread_id = turns[0][1].thread_id
        found = [
            its
            for its, turn in turns
            if turn.thread_id == thread_id
            and turn.number >= number
            and its not in self.undone
        ]
        if found:
            return found
        reason = f"there is nothing to undo in {self.journal.cwd} from turn {number} on"
        raise CodexError(reason, code="no_patch")

    def last_turn_number(self, thread_id: str) -> int:
        """The highest number of a turn of this thread; 0 if it has none."""
        turns = [entry.turn for entry in self.known if entry.turn is not None]
        return max(
            (turn.number for turn in turns if turn.thread_id == thread_id), default=0
        )

    def _require_readable_since(self, number: int) -> None:
        """Raise a `CodexError` if an entry after this one is damaged: it may be the one that is meant.

        `number`: 0 if there is no readable entry to undo.
        """
        newer = [each for each in self.damaged if each > number]
        if not newer:
            return
        text = f"the record of patch {max(newer)} is damaged, so it cannot be undone"
        if number:
            text += f"; `codex-py undo {number}` undoes the newest one before it"
        raise CodexError(text, code="no_patch")

    def _newest(self) -> int:
        in_turns: set[int] = set()
        for entry in self.known:
            if entry.turn is not None:
                in_turns.update(entry.turn.patches)
        made = [
            entry
            for entry in self.done_here
            if entry.undoes is None and entry.number not in in_turns
        ]
        for entry in made:
            # Skip a turn whose changes are not kept. A patch without changes made or removed
            # folders.
            if entry.number not in self.undone and (
                entry.turn is None or entry.changes
            ):
                return entry.number
        unkept = unkept_in(made)
        self._require_readable_since(0)
        if unkept:
            reason = f"{some_of(unkept)} changed, and was not kept"
        elif made:
            reason = "everything that was changed is undone"
        elif self.known and not Path(self.known[0].cwd).exists():
            reason = (
                f"the last changes were made in {self.known[0].cwd}, which does not exist any more "
                "(rename it back, and undo there), and none"
            )
        else:
            reason = "no patch and no turn changed anything"
        raise CodexError(
            f"nothing to undo: {reason} in {self.journal.cwd}", code="no_patch"
        )


def unkept_in(entries: Sequence[JournalEntry]) -> list[str]:
    """The files that turns changed and that are not kept, each once."""
    found: dict[str, None] = {}
    for entry in entries:
        if entry.turn is not None:
            found |= dict.fromkeys(entry.turn.unkept)
    return list(found)
