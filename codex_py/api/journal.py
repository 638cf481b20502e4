"""The journal: what patches and turns changed in files, as `codex-py undo` sees it.

`read_journal` returns the `Entries`: `known` has all that can be read, `in_effect` those that were carried
out and are not undone. A `JournalEntry` is a patch, or the whole of a turn, which has a `TurnOfEntry`. Its
changes are without the contents of the files; `Entries.changes` reads these for one entry. The journal
keeps 30 days, 500 entries and 256 MB.
"""

from codex_py.patch.files.change import EntryChange, JournalEntry, TurnOfEntry
from codex_py.patch.undo.entries import Entries, read_journal

__all__ = ["Entries", "EntryChange", "JournalEntry", "TurnOfEntry", "read_journal"]
