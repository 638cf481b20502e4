"""The change of one file by a patch."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias

ChangeKind: TypeAlias = Literal["add", "delete", "update"]


class PatchedFile(NamedTuple):
    """The change of one file by all sections of a patch that name it."""

    path: Path
    """Absolute; the old path of a move."""
    kind: ChangeKind
    """`add` also if an Add section overwrites a file."""
    move_to: Path | None
    """Absolute."""
    old: bytes | None
    """None if there was no file, or it was deleted without reading it: too large, or not a regular file."""
    new: bytes | None
    """None for a deleted file."""
    replaced: bytes | None = None
    """Contents of a file that a move overwrites."""
    old_mode: int | None = None
    """File type and permission bits, as `st_mode`; None if there was no file."""
    new_mode: int | None = None
    """None for a deleted file, and for a new one whose bits the umask decides."""
    replaced_mode: int | None = None
    link_target: bytes | None = None
    """Target of the symbolic link at `path`, if the file that it led to was moved under its name: `old` has what that
    file had."""

    @classmethod
    def of(
        cls,
        path: Path,
        old: bytes | None,
        new: bytes | None,
        *,
        move_to: Path | None = None,
        old_mode: int | None = None,
        new_mode: int | None = None,
    ) -> Self:
        """Make a change whose kind follows from the contents."""
        if new is None:
            kind = "delete"
        elif old is None:
            kind = "add"
        else:
            kind = "update"
        return cls(path, kind, move_to, old, new, old_mode=old_mode, new_mode=new_mode)

    @property
    def old_entry(self) -> bytes | None:
        """Contents of the directory entry at `path` before: of a symbolic link, its target."""
        if self.link_target is None:
            return self.old
        return self.link_target

    @property
    def destination(self) -> Path:
        """The path of the file afterwards, if it still exists."""
        return self.move_to or self.path

    @property
    def link(self) -> str | None:
        """The target of a symbolic link that is made or changed; None for anything else."""
        is_link = self.new_mode is not None and stat.S_ISLNK(self.new_mode)
        is_same = self.old_mode == self.new_mode and self.old == self.new
        if is_link and not is_same:
            return os.fsdecode(self.new or b"")
        return None

    def facts(self) -> dict[str, str]:
        """The change without contents, for JSON."""
        facts = {"path": str(self.path), "kind": self.kind}
        if self.move_to is not None:
            facts["move_to"] = str(self.move_to)
        if self.link is None:
            return facts
        return {**facts, "link": self.link}


class TreeChanges(NamedTuple):
    """What is different in a work tree, whoever changed it."""

    files: Sequence[PatchedFile] = ()
    diff: str = ""
    unseen: Sequence[str] = ()
    """Further files, whose contents are not known, such as large ones; and folders that came to be ignored by a
    `.gitignore` of the turn, each with a slash at its end. Absolute."""
