"""Describes the change of one file by a patch, the changes in a work tree, and an editor's texts."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias

ChangeKind: TypeAlias = Literal["add", "delete", "update"]


class PatchedFile(NamedTuple):
    """The change of one file by all sections of a patch that name it."""

    path: Path
    """The absolute path; the old path of a move."""
    kind: ChangeKind
    """The kind of the change. `add` includes an Add section that overwrites a file."""
    move_to: Path | None
    """The new path of a moved file, absolute."""
    old: bytes | None
    """The old contents; None if the file did not exist, or was deleted unread: too large, or not a
    regular file."""
    new: bytes | None
    """The new contents; None for a deleted file."""
    replaced: bytes | None = None
    """The contents of a file that a move overwrites."""
    old_mode: int | None = None
    """The old file type and permission bits, as `st_mode`; None if the file did not exist."""
    new_mode: int | None = None
    """The new mode; None for a deleted file, and for a new one whose bits the umask decides."""
    replaced_mode: int | None = None
    link_target: bytes | None = None
    """The target of the symbolic link at `path`, if the linked file was moved under the name of the
    link. `old` has the contents of the linked file."""

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
        """The old contents of the directory entry at `path`; for a symbolic link, its target."""
        if self.link_target is None:
            return self.old
        return self.link_target

    @property
    def destination(self) -> Path:
        """The path of the file afterwards, if it still exists."""
        return self.move_to or self.path

    @property
    def link(self) -> str | None:
        """The target of a new or changed symbolic link; None for any other change."""
        is_link = self.new_mode is not None and stat.S_ISLNK(self.new_mode)
        is_same = self.old_mode == self.new_mode and self.old == self.new
        if is_link and not is_same:
            return os.fsdecode(self.new or b"")
        return None

    def facts(self) -> dict[str, str]:
        """Return the change without contents, for JSON."""
        facts = {"path": str(self.path), "kind": self.kind}
        if self.move_to is not None:
            facts["move_to"] = str(self.move_to)
        if self.link is not None:
            facts["link"] = self.link
        return facts


class TreeChanges(NamedTuple):
    """The changes in a work tree, from any program."""

    files: Sequence[PatchedFile] = ()
    diff: str = ""
    unseen: Sequence[str] = ()
    """The absolute paths of changed files whose contents are not known, such as large ones; and of
    folders that a `.gitignore` ignores since this turn, each with a slash at its end."""


class OpenTexts(Protocol):
    """The files that a user has open in an editor, with text that may not be on disk yet."""

    async def read(self, path: Path) -> str | None:
        """Return the text of a file in the editor; None if the editor does not know the file.

        The wait has a deadline. `path` is absolute.

        Raises:
            ToolError: the editor failed, or did not answer in time.
        """
        ...

    async def show(self, texts: Mapping[Path, str]) -> Sequence[str]:
        """Give the editor the new texts of files that were just written to disk.

        Returns sentences about the files whose text the editor did not take. It raises nothing,
        because the files are written.
        """
        ...
