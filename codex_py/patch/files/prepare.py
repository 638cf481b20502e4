"""Decide how planned changes are carried out: what is set aside where, and what the journal keeps."""

import os
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from codex_py.patch.files.change import Entry, FileChange
from codex_py.patch.files.handles import join, split

MAX_KEPT = 32 * 1024 * 1024
"""Bytes of one file's contents, old and new together, that are kept to be brought back."""
MAX_KEPT_TOGETHER = 256 * 1024 * 1024
"""Of one entry; later files are not kept."""


class Store(NamedTuple):
    """A directory for what the changes of one entry replace. It need not be there yet."""

    path: str
    """Absolute, no link in it."""
    device: int
    """Files on another device cannot be renamed into it."""


def prepare(entry: Entry, store: Store | None) -> None:
    """Set how each change of an entry is carried out.

    Args:
        store: where what is replaced is to be renamed to, if it can.
    """
    # Not made from the files' own names, which may be as long as a name can be.
    prefix = f".codex-py-{os.urandom(6).hex()}"
    room = MAX_KEPT_TOGETHER
    becoming_files = {change.location for change in entry.changes if change.exists}
    for number, change in enumerate(entry.changes):
        before = change.before
        size = len(change.old or b"") + len(change.written or b"")
        # What is overwritten in place cannot be set aside.
        change.kept = change.in_place or (
            size <= min(MAX_KEPT, room) and (before is None or change.old is not None)
        )
        if change.kept:
            room -= size
        change.temporary = f"{prefix}-{number}.tmp"
        if before is None or change.in_place:
            continue
        if store and change.kept and before.is_file and before.device == store.device:
            change.in_journal, change.aside = True, join(store.path, str(number))
        elif not change.exists or not change.kept:
            # Whatever it is, renaming keeps everything about it for the way back.
            lasting = _lasting(change.folder, entry.obsolete, becoming_files)
            change.aside = join(lasting, f"{prefix}-{number}.old.tmp")


def keep_copies(entry: Entry, changes: Iterable[FileChange]) -> None:
    """Have the journal copy what these changes of an entry replace, instead of renaming it."""
    becoming_files = {change.location for change in entry.changes if change.exists}
    for change in changes:
        change.in_journal, change.aside = False, None
        if not change.exists:
            folder = _lasting(change.folder, entry.obsolete, becoming_files)
            change.aside = join(folder, change.temporary)


def gives_way(folder: str, becoming_files: Set[str]) -> bool:
    """True if a directory has to go before files are written: it, or one above it, becomes a file."""
    while folder != "/":
        if folder in becoming_files:
            return True
        folder = split(folder)[0]
    return False


def _lasting(folder: str, obsolete: Sequence[str], becoming_files: Set[str]) -> str:
    """The nearest directory at or above this one that does not give way to a file."""
    while folder in obsolete and gives_way(folder, becoming_files):
        folder = split(folder)[0]
    return folder
