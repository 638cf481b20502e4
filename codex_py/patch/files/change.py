"""What a patch does to the disk, in the form in which it is carried out, taken back and kept.

A `Change` is the fate of one name in one directory; an `Entry` is all that belongs together.
"""

import os
import stat
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from codex_py.patch.files.handles import join, split
from codex_py.patch.files.tree import PlannedFile

MAX_KEPT = 32 * 1024 * 1024
"""Bytes of one file's contents, old and new together, that are kept to be brought back."""
MAX_KEPT_TOGETHER = 256 * 1024 * 1024
"""Of one entry; what comes after is not kept."""


class Status(NamedTuple):
    """What tells that a directory entry is still what it was."""

    device: int
    inode: int
    mode: int
    """Type and permission bits."""
    size: int
    mtime_ns: int
    user: int
    group: int

    @classmethod
    def of(cls, found: os.stat_result | None) -> "Status | None":
        if found is None:
            return None
        return cls(
            found.st_dev,
            found.st_ino,
            found.st_mode,
            found.st_size,
            found.st_mtime_ns,
            found.st_uid,
            found.st_gid,
        )

    @property
    def permissions(self) -> int:
        return stat.S_IMODE(self.mode)


@dataclass(slots=True)
class Change:
    """One name in one directory. Contents of a symbolic link are where it leads."""

    path: str
    """As messages name it; absolute."""
    folder: str
    """Where it really is: absolute, no link in it."""
    name: str
    before: Status | None
    """None where there was nothing."""
    old: bytes | None
    """Contents before; None where there were none, or they are not kept."""
    exists: bool
    """Afterwards."""
    new: bytes | None
    """Contents afterwards; None for a removal, and in an entry read back if they were not kept."""
    kept: bool
    """Whether the journal has the contents. What is not kept is set aside, and can not be undone later."""
    mode: int | None
    """Permission bits to set; None keeps those of before, or goes by the umask."""
    is_link: bool
    """Afterwards."""
    temporary: str
    """A name in the same directory under which it is written, to be renamed."""
    aside: str | None
    """Path to which what was there is renamed. None where it is overwritten."""
    in_journal: bool
    """`aside` is in the journal, and is what that keeps. If not, it is unlinked in the end."""
    owner: tuple[int, int] | None
    """User and group of a file that is made; None for whoever makes it."""
    in_place: bool
    """Written without renaming, because it has other links."""
    digest: str | None = None
    """Of new contents that are not kept, in an entry read back."""

    @property
    def location(self) -> str:
        return join(self.folder, self.name)

    def made(self, contents: bytes) -> bool:
        """Whether this is what the change wrote."""
        if self.new is not None:
            return contents == self.new
        return self.digest is not None and digest(contents) == self.digest


@dataclass(frozen=True, slots=True)
class Store:
    """A directory for what the changes of one entry replace. It need not be there yet."""

    path: str
    """Absolute, no link in it."""
    device: int
    """What is on another one can not be renamed into it."""


class State(StrEnum):
    """How far an entry has come."""

    PREPARED = "prepared"
    """Some of its changes may have been made: they are to be taken back."""
    APPLIED = "applied"
    """All have been made; what was set aside may still lie there."""
    COMMITTED = "committed"
    """Nothing remains to be done."""
    INTERRUPTED = "interrupted"
    """Taken back, but for files that somebody has edited meanwhile."""


@dataclass(slots=True)
class Entry:
    """A patch, or the undoing of one."""

    changes: list[Change]
    undoes: int | None = None
    """The entry that this takes back."""
    obsolete: list[str] = field(default_factory=list[str])
    """Directories to remove if nothing else is in them, the innermost first."""
    made: list[str] = field(default_factory=list[str])
    """Directories that were made for it, the outermost first."""
    modes: dict[str, int] = field(default_factory=dict[str, int])
    """Permission bits of directories that it removes, or makes again as they were."""
    time: float = field(default_factory=time.time)
    """When it was begun, seconds since the epoch."""
    cwd: str = "/"
    number: int = 0
    """In the journal, from 1."""
    state: State = State.PREPARED

    @property
    def needs_finishing(self) -> bool:
        """Whether something remains to be done once all changes are made."""
        return bool(self.obsolete) or any(c.aside and not c.in_journal for c in self.changes)


def digest(contents: bytes) -> str:
    # 3 ms, for large files alone.
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(contents).hexdigest()


def changes_of(
    files: Sequence[PlannedFile], obsolete: Sequence[str] = (), store: Store | None = None
) -> list[Change]:
    """What planned files come to; one that is there neither before nor after is left out.

    Args:
        obsolete: directories that will be removed.
        store: where what is replaced is to be renamed to, if it can.

    Raises:
        OSError: a symbolic link is gone that was there when the patch was checked.
    """
    # Not made from the files' own names, which may be as long as a name can be.
    prefix = f".codex-py-{os.urandom(6).hex()}"
    room = MAX_KEPT_TOGETHER
    becoming_files = {file.location for file in files if file.present and not file.is_submodule}
    changes: list[Change] = []
    for number, file in enumerate(files):
        before = file.before
        exists = file.present and not file.is_submodule
        if not exists and (before is None or stat.S_ISDIR(before.st_mode)):
            continue
        folder, name = split(file.location)
        old = file.old if before is not None else None
        if before is not None and stat.S_ISLNK(before.st_mode):
            # A link that was moved has the contents of what it leads to for its own.
            old = os.fsencode(os.readlink(file.location))  # noqa: PTH115
        new = (file.new or b"") if exists else None
        in_place = (
            new is not None
            and not file.is_link
            and old is not None
            and before is not None
            and stat.S_ISREG(before.st_mode)
            and before.st_nlink > 1
        )
        size = len(old or b"") + len(new or b"")
        # What is overwritten in place can not be set aside.
        kept = in_place or (size <= min(MAX_KEPT, room) and (before is None or old is not None))
        if kept:
            room -= size
        in_journal = (
            store is not None
            and kept
            and not in_place
            and before is not None
            and stat.S_ISREG(before.st_mode)
            and before.st_dev == store.device
        )
        aside = None
        if in_journal and store is not None:
            aside = join(store.path, str(number))
        elif before is not None and (new is None or not kept):
            # Whatever it is, renaming keeps everything about it for the way back.
            lasting = _lasting(folder, obsolete, becoming_files)
            aside = join(lasting, f"{prefix}-{number}.old.tmp")
        changes.append(
            Change(
                path=file.path,
                folder=folder,
                name=name,
                before=Status.of(before),
                old=old,
                exists=exists,
                new=new,
                kept=kept,
                mode=file.mode,
                is_link=file.is_link,
                owner=file.owner,
                temporary=f"{prefix}-{number}.tmp",
                aside=aside,
                in_journal=in_journal,
                in_place=in_place,
            )
        )
    return changes


def keep_copies(entry: Entry, changes: Iterable[Change]) -> None:
    """Have the journal copy what these changes of an entry replace, instead of renaming it."""
    becoming_files = {change.location for change in entry.changes if change.exists}
    for change in changes:
        change.in_journal, change.aside = False, None
        if not change.exists:
            folder = _lasting(change.folder, entry.obsolete, becoming_files)
            change.aside = join(folder, change.temporary)


def gives_way(folder: str, becoming_files: Set[str]) -> bool:
    """Whether a directory has to go before files are written: it, or one above it, becomes a file."""
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
