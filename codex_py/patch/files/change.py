"""The changes of a patch on disk: planned, carried out, taken back and kept in the same form.

A `EntryChange` is the fate of one directory entry; an `JournalEntry` has all changes that belong together.
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
from codex_py.protocol.patched_file import PatchedFile

Fate: TypeAlias = Kind | Literal["untouched", "removed"]
"""The outcome of a patch for one directory entry: a kind if it is written. A submodule is a directory of its own, and
`new` is what a diff says of the commit in it."""


class Backup(Enum):
    """The way back from a change."""

    RECORD = auto()
    """The contents are in the journal's record. An old entry is set aside if it is removed, else
    replaced."""
    IN_PLACE = auto()
    """Like `RECORD`, but the file is overwritten without renaming: it has other links, or cannot be
    replaced."""
    STORE = auto()
    """The old entry is set aside in the journal, which keeps it."""
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
    """The fate after the part of the patch that is planned so far."""
    added: bool = False
    """True if an Add section has written it."""
    origin: "EntryChange | None" = None
    """The entry whose contents were moved here."""
    breaks_links: bool = False
    """False overwrites a file with other links in place, so that they lead to the new contents too."""
    lent: bytes | None = None
    """Contents of the target of a symbolic link, if they were moved away under the name of the link."""

    # The way in which the change is carried out.
    backup: Backup = Backup.RECORD
    temporary: str = ""
    """A name in the same directory under which it is written, to be renamed."""
    aside: str | None = None
    """The path to which the old entry is renamed; None if it is overwritten. Unlinked in the end,
    unless in the journal."""
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
        return self.fate != "untouched"

    @property
    def present(self) -> bool:
        """True if the entry exists afterwards."""
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
        """True if the journal has the contents."""
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
    """The change of each file, in the order given. A move is one change."""
    moved = {
        id(change.origin)
        for change in changes
        if change.present and change.origin and not change.origin.present
    }
    files: list[PatchedFile] = []
    for change in changes:
        origin = change.origin
        if change.present and origin is not None and not origin.present:
            files.append(_move(origin, change))
        elif change.present or (change.before is not None and id(change) not in moved):
            is_new = change.before is None or change.added
            if not change.present:
                kind = "delete"
            elif is_new:
                kind = "add"
            else:
                kind = "update"
            path = Path(change.path)
            modes = (change.old_mode, change.new_mode)
            files.append(
                PatchedFile(path, kind, None, change.old, change.new, None, *modes)
            )
    return files


def _move(origin: EntryChange, change: EntryChange) -> PatchedFile:
    is_lent = origin.lent is not None
    return PatchedFile(
        Path(origin.path),
        "update",
        Path(change.path),
        origin.lent if is_lent else origin.old,
        change.new,
        change.old,
        origin.old_mode,
        change.new_mode,
        change.old_mode,
        origin.old if is_lent else None,
    )


def where_written(
    files: Iterable[PatchedFile], changes: Iterable[EntryChange]
) -> list[PatchedFile]:
    """The files; those that these changes write get paths without links."""
    places = {Path(change.path): Path(change.location) for change in changes}
    return [
        file._replace(
            path=places.get(file.path, file.path),
            move_to=file.move_to and places.get(file.move_to, file.move_to),
        )
        for file in files
    ]


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
    """Absolute paths that changed too, and are not among the changes: they were too large to be kept, or unreadable."""
    is_cut_off: bool = False
    """The program died in this turn: later edits may be among the changes."""
    began: float = 0.0
    """The time when the work tree was first copied, in seconds since the epoch; 0 if it was not
    copied."""
    unsure: tuple[str, ...] = ()
    """Absolute paths of those changes that somebody else may have made."""
    of_others: tuple[str, ...] = ()
    """Absolute paths that somebody else changed meanwhile. They are not among the changes."""
    switched: tuple[str, ...] = ()
    """The two branches, if somebody else switched between them while files of `unsure` changed."""
    earlier: Mapping[str, Sequence[str]] = {}
    """The absolute paths that had certain contents before the turn, as far as they are known, by
    the mark of the contents. These are contents that the turn brought to its files, and that are
    not kept; see `copies.earlier`."""


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
        """The number of the entry that this takes back; of the newest, if there are several."""
        self.obsolete = list(obsolete)
        """Directories to remove if nothing else is in them, the innermost first. One that is to become a file
        has to be empty."""
        self.made = list(made)
        """Directories to make, if only to be empty, the outermost first. `commit` adds those that files need."""
        self.modes = dict(modes)
        """Permission bits of directories that it removes, or makes again as they were; others go by the umask."""
        self.time = now() if time is None else time
        """The time when it was begun, in seconds since the epoch."""
        self.cwd = cwd
        self.also_undoes = list(also_undoes)
        """The numbers of the other entries that this takes back."""
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
