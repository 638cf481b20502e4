"""The changes of a patch on disk. They have the same form when they are planned, carried out, taken
back and kept in the journal.

An `EntryChange` is the change of one directory entry; a `JournalEntry` has all changes that belong together.
"""

import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum, auto
from pathlib import Path
from time import time as now
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from codex_py.patch.files.handles import EntryStatus, join, split
from codex_py.patch.files.modes import SUBMODULE, Kind
from codex_py.protocol.patched_file import ChangeKind, PatchedFile

Fate: TypeAlias = Kind | Literal["untouched", "removed"]
"""The outcome of a patch for one directory entry: its kind if the patch writes it. A submodule is a
directory on disk; its `new` is the line of the diff that names the commit."""


class Backup(Enum):
    """The way to bring back the old entry of a change."""

    RECORD = auto()
    """The contents are in the journal's record. A removed entry is also set aside until the patch
    is committed."""
    IN_PLACE = auto()
    """The contents are in the record, and the file is overwritten without renaming: it has other
    links, or cannot be replaced."""
    STORE = auto()
    """The old entry is renamed into the journal's store, and stays there."""
    NONE = auto()
    """The old entry is only set aside until the patch is committed, and cannot be brought back
    later."""


class EntryChange:
    """One directory entry, before and after. The contents of a symbolic link are its target."""

    old: bytes | None = None
    """Contents before, once read; None if there were none, or they are not kept."""
    new: bytes | None = None
    """Contents to write; None for a removal, and in an entry read back if they were not kept."""
    mode: int | None = None
    """Permission bits to set; None keeps the old ones, or goes by the umask."""
    owner: tuple[int, int] | None = None
    """User and group of a file that is made; None leaves it with the user who makes it."""
    fate: Fate = "untouched"
    """The outcome of the parts of the patch that are planned so far."""
    added: bool = False
    """True if an Add section has written it."""
    origin: "EntryChange | None" = None
    """The entry whose contents were moved here."""
    breaks_links: bool = False
    """If False, a file that has other hard links is overwritten in place, so that they lead to the
    new contents too."""
    lent: bytes | None = None
    """Contents of the target of a symbolic link, if they were moved away under the name of the link."""

    # The way in which the change is carried out.
    backup: Backup = Backup.RECORD
    temporary: str = ""
    """The name, in the same directory, of the new file before it is renamed to its place."""
    aside: str | None = None
    """The path to which the old entry is renamed; None if it is overwritten. In the end it is
    unlinked, unless it is in the journal's store."""
    digest: str | None = None
    """The digest of new contents that are not kept, in an entry read back."""

    def __init__(
        self,
        path: str,
        location: str,
        before: EntryStatus | None,
    ) -> None:
        self.path = path
        """The absolute path that messages name. Symbolic links are not followed."""
        self.location = location
        """The real path: absolute, and only the last name may be a symbolic link."""
        self.folder, self.name = split(location)
        self.before = before
        """The old status of the entry itself; None if it did not exist."""

    @property
    def beside(self) -> str:
        """The path of `temporary`."""
        return join(self.folder, self.temporary)

    @property
    def touched(self) -> bool:
        """True if the patch changes the entry."""
        return self.fate != "untouched"

    @property
    def present(self) -> bool:
        """True if there is an entry after the patch, written by it or left alone."""
        if self.fate == "untouched":
            return self.before is not None
        return self.fate != "removed"

    @property
    def exists(self) -> bool:
        """True if the patch writes a file or link. The directory of a submodule is neither."""
        return self.fate in {"file", "link"}

    @property
    def is_link(self) -> bool:
        return self.fate == "link"

    @property
    def kept(self) -> bool:
        """True if the journal keeps the contents, so that the change can be undone."""
        return self.backup is not Backup.NONE

    @property
    def is_in_place(self) -> bool:
        """True if the file was overwritten, and other links to it lead to the new contents."""
        return self.backup is Backup.IN_PLACE

    @property
    def written(self) -> bytes | None:
        """Contents of the file or link that the change writes; None if it writes none."""
        if self.exists:
            return self.new or b""
        return None

    def had_type(self, file_type: int) -> bool:
        """True if the entry on disk is of a type (`stat.S_IFDIR`, …)."""
        return self.before is not None and stat.S_IFMT(self.before.mode) == file_type

    def has_type(self, file_type: int) -> bool:
        """True if the entry on disk is of a type, and the patch leaves it as it is."""
        return not self.touched and self.had_type(file_type)

    @property
    def old_mode(self) -> int | None:
        """File type and permission bits before; None if nothing was there."""
        if self.before is None:
            return None
        # The only directories that a patch changes are submodules.
        if self.before.is_directory:
            return SUBMODULE
        return self.before.mode

    @property
    def new_mode(self) -> int | None:
        """File type and permission bits afterwards; None if nothing is there, and for a new file
        that goes by the umask."""
        if not self.present:
            return None
        if self.fate == "submodule":
            return SUBMODULE
        if self.is_link:
            return stat.S_IFLNK | 0o777
        if self.mode is not None:
            return stat.S_IFREG | self.mode
        if self.before is not None and self.before.is_file:
            return self.before.mode
        return None


def patched_files(changes: Sequence[EntryChange]) -> list[PatchedFile]:
    """Describe the change of each file, in the order given. A move is one change."""
    moved = {id(_moved_from(change)) for change in changes}
    files: list[PatchedFile] = []
    for change in changes:
        origin = _moved_from(change)
        if origin is not None:
            files.append(_move(origin, change))
        elif change.present:
            is_new = change.before is None or change.added
            files.append(_in_its_place(change, "add" if is_new else "update"))
        elif change.before is not None and id(change) not in moved:
            files.append(_in_its_place(change, "delete"))
    return files


def _moved_from(change: EntryChange) -> EntryChange | None:
    """The entry that was moved here; None if there is none, or if it was copied and still exists."""
    origin = change.origin
    if not change.present or origin is None or origin.present:
        return None
    return origin


def _in_its_place(change: EntryChange, kind: ChangeKind) -> PatchedFile:
    return PatchedFile(
        Path(change.path),
        kind,
        move_to=None,
        old=change.old,
        new=change.new,
        old_mode=change.old_mode,
        new_mode=change.new_mode,
    )


def _move(origin: EntryChange, change: EntryChange) -> PatchedFile:
    old = origin.old
    link_target = None
    if origin.lent is not None:
        old = origin.lent
        link_target = origin.old
    return PatchedFile(
        Path(origin.path),
        "update",
        move_to=Path(change.path),
        old=old,
        new=change.new,
        replaced=change.old,
        old_mode=origin.old_mode,
        new_mode=change.new_mode,
        replaced_mode=change.old_mode,
        link_target=link_target,
    )


def where_written(
    files: Iterable[PatchedFile], changes: Iterable[EntryChange]
) -> list[PatchedFile]:
    """Replace the paths of the files that these changes write by paths without links."""
    places = {Path(change.path): Path(change.location) for change in changes}
    written: list[PatchedFile] = []
    for file in files:
        path = places.get(file.path, file.path)
        move_to = file.move_to
        if move_to is not None:
            move_to = places.get(move_to, move_to)
        written.append(file._replace(path=path, move_to=move_to))
    return written


class State(StrEnum):
    """The progress of an entry."""

    PREPARED = "prepared"
    """Some of its changes may have been made, and have to be taken back."""
    APPLIED = "applied"
    """All changes have been made; entries that were set aside may still be there."""
    COMMITTED = "committed"
    """Nothing remains to be done."""
    INTERRUPTED = "interrupted"
    """The changes were taken back, except in files that somebody has edited meanwhile."""


class TurnOfEntry(NamedTuple):
    """The turn that an entry of the journal belongs to."""

    thread_id: str
    number: int
    """The number of the turn in the session, from 1."""
    patches: tuple[int, ...] = ()
    """The numbers of the patches that it contains."""
    unkept: tuple[str, ...] = ()
    """Absolute paths of changed files that are not among the changes, because they were too large
    to be kept or could not be read."""
    is_cut_off: bool = False
    """True if the program died in this turn. Later edits may then be among the changes."""
    began: float = 0.0
    """The time when the work tree was first copied, in seconds since the epoch; 0 if it was not
    copied."""
    unsure: tuple[str, ...] = ()
    """Absolute paths of those changes that somebody else may have made."""
    of_others: tuple[str, ...] = ()
    """Absolute paths that somebody else changed meanwhile. They are not among the changes."""
    switched: tuple[str, ...] = ()
    """The names of the old and the new branch, if somebody else switched between them while files
    of `unsure` changed."""
    earlier: Mapping[str, Sequence[str]] = {}
    """For contents that the turn brought to its files and that are not kept: the absolute paths that
    are known to have had them before the turn, by the mark of the contents. See `copies.earlier`."""


class JournalEntry:
    """A patch, a turn of a session, or an undo."""

    number = 0
    """The number in the journal, from 1."""
    state = State.PREPARED

    def __init__(
        self,
        changes: list[EntryChange],
        undoes: int | None = None,
        *,
        obsolete: Sequence[str] = (),
        made: Sequence[str] = (),
        modes: Mapping[str, int] = MappingProxyType({}),
        time: float | None = None,
        cwd: str = "/",
        also_undoes: Sequence[int] = (),
        turn: TurnOfEntry | None = None,
    ) -> None:
        self.changes = changes
        self.undoes = undoes
        """The number of the entry that this undoes, or of the newest one if there are several."""
        self.obsolete = list(obsolete)
        """Directories to remove if nothing else is in them, the innermost first. One that is to become a file
        has to be empty."""
        self.made = list(made)
        """Directories to make, the outermost first, even if they stay empty. `commit` adds those that files
        need."""
        self.modes = dict(modes)
        """Permission bits, by path, of directories to remove, or to make again as they were. Other new ones go
        by the umask."""
        if time is None:
            time = now()
        self.time = time
        """The time when it was begun, in seconds since the epoch."""
        self.cwd = cwd
        self.also_undoes = list(also_undoes)
        """The numbers of the other entries that this undoes."""
        self.turn = turn
        """The turn that this entry records; None for a patch or an undo."""

    @property
    def name(self) -> str:
        """The name of the entry in messages."""
        if self.turn is not None:
            return f"turn {self.turn.number} of session {self.turn.thread_id}"
        if self.undoes is None:
            return f"patch {self.number}"
        return f"undo {self.number}"
