"""The net changes of a turn: the first old contents of each file against its last new ones.

They are combined from the changes of patches and the differences between copies of the work tree.
No file is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.modes import kind_of, written_mode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile

_MAX_KEPT = 10 * 1024 * 1024
"""The limit in bytes for one side of a file; larger contents are only measured."""
_MAX_KEPT_TOGETHER = 256 * 1024 * 1024
"""The limit in bytes for all contents that are held."""


class NetChanges:
    """Combines successive changes into one for each file."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        """The files by path, in the order in which they were first changed."""
        self.kept_bytes = 0
        """The size of all contents that are held."""

    def add(self, files: Iterable[PatchedFile]) -> None:
        """Add later changes to those so far."""
        for file in files:
            path = str(file.path)
            if file.move_to is None:
                self._set(
                    path,
                    file.old,
                    file.old_mode,
                    file.new,
                    file.new_mode,
                )
                continue
            self._set(path, file.old_entry, file.old_mode, None, None)
            sides = (file.replaced, file.replaced_mode, file.new, file.new_mode)
            destination = self._set(str(file.move_to), *sides)
            # If they were moved before, the first name counts.
            destination.origin = self._files[path].origin or path

    def _set(
        self,
        path: str,
        old: bytes | None,
        old_mode: int | None,
        new: bytes | None,
        new_mode: int | None,
    ) -> "_File":
        """Set the last state of a file, and its first one if this is its first change."""
        file = self._files.get(path)
        if file is None:
            existed = old is not None or old_mode is not None
            held = None
            if existed:
                held = self._held(old)
            file = _File(held, old_mode, held, old_mode)
            self._files[path] = file
        if file.new is not None and file.new is not file.old:
            # These contents are given up.
            self.kept_bytes -= len(file.new.data or b"")
        if file.new is None:
            file.origin = None
        if new is None:
            file.new = None
        else:
            file.new = self._held(new, file.old)
        file.new_mode = new_mode
        return file

    def forget(self, path: Path) -> None:
        """Drop the changes of a file so far."""
        self._files.pop(str(path), None)

    def is_back(self, file: PatchedFile) -> bool:
        """True if this change makes a file what it was before the changes so far."""
        known = self._files.get(str(file.path))
        if known is None:
            return False
        if known.old is None or file.new is None:
            return known.old is None and file.new is None
        return known.old.is_same(_contents_of(file.new))

    def is_as_left(self, file: PatchedFile) -> bool:
        """True if the changes so far have left a file in the new state of this change."""
        known = self._files.get(str(file.path))
        if known is None:
            return False
        if known.new is None or file.new is None:
            return known.new is None and file.new is None
        # A mode that the umask decides is not known.
        is_same_mode = known.new_mode in (None, file.new_mode)
        return is_same_mode and known.new.is_same(_contents_of(file.new))

    def sort(self, root: Path) -> None:
        """Order the files by their paths, those below `root` first."""
        inside: list[str] = []
        outside: list[str] = []
        for name in sorted(self._files):
            if Path(name).is_relative_to(root):
                inside.append(name)
            else:
                outside.append(name)
        self._files = {name: self._files[name] for name in (*inside, *outside)}

    @property
    def is_empty(self) -> bool:
        """True if no change was added; a change that was taken back still counts as added."""
        return not self._files

    def files(self) -> list[PatchedFile]:
        """The files that are not as they were, in the order in which they were first changed.

        A move is a deletion and an addition. Contents that are not held are None.
        """
        return [
            PatchedFile.of(
                Path(path),
                file.old and file.old.data,
                file.new and file.new.data,
                old_mode=file.old_mode,
                new_mode=file.new_mode,
            )
            for path, file in self._changed.items()
        ]

    def is_known(self, path: Path) -> bool:
        """True if the contents of this file are held, before and after."""
        file = self._files[str(path)]
        return all(
            side is None or side.data is not None for side in (file.old, file.new)
        )

    @property
    def _changed(self) -> "dict[str, _File]":
        return {
            path: file for path, file in self._files.items() if not file.is_as_before
        }

    @property
    def moves(self) -> dict[str, str]:
        """The new paths of moved files that are not as they were, by their old paths.

        A file that was moved under the name of a link to it does not count: the link is gone, and
        the file is new.
        """
        changed = self._changed
        moves: dict[str, str] = {}
        for path, file in changed.items():
            origin = changed.get(file.origin or "")
            if origin is not None and origin.is_moved_to(file):
                moves[file.origin or ""] = path
        return moves

    def diff(self, root: Path) -> str:
        """Write the changes as a git diff, with a limit; empty if everything is as it was.

        Bytes that are not UTF-8 become lone surrogates, as with `surrogateescape`.
        """
        changed = self._changed
        moves = self.moves
        destinations = set(moves.values())
        files: list[PatchedFile] = []
        instead: dict[Path, str] = {}
        for path, file in changed.items():
            if path in destinations:
                # It is shown at the path from which it was moved.
                continue
            destination = moves.get(path)
            last = changed[destination or path]
            shown = PatchedFile.of(
                Path(path),
                _shown(file.old),
                _shown(last.new),
                move_to=Path(destination) if destination else None,
                old_mode=file.old_mode,
                new_mode=last.new_mode,
            )
            files.append(shown)
            line = _instead(file.old, last.new)
            if line is not None:
                instead[Path(path)] = line
        return git_diff(files, root, instead, keeps_bytes=True)

    def _held(
        self,
        data: bytes | None,
        old: "_Contents | None" = None,
    ) -> "_Contents":
        """Hold contents if there is room for them. If they are those of `old`, return that."""
        if data is None:
            return _Contents(None, None, None)
        contents = _contents_of(data)
        if old is not None and old.is_same(contents):
            return old
        room = _MAX_KEPT_TOGETHER - self.kept_bytes
        if len(data) > min(_MAX_KEPT, room):
            return replace(contents, data=None)
        self.kept_bytes += len(data)
        return contents


@frozen
class _Contents:
    """The contents of a file; all fields are None if they were never read."""

    size: int | None
    digest: int | None
    data: bytes | None
    """None too if the contents are too large to be held."""

    def is_same(self, other: "_Contents") -> bool:
        if self.size is None or self.size != other.size:
            return False
        return self.digest == other.digest


def _contents_of(data: bytes) -> _Contents:
    return _Contents(len(data), hash(data), data)


@dataclass(slots=True)
class _File:
    """The state of one path before the first change and after the last one."""

    old: _Contents | None
    """None if there was no file."""
    old_mode: int | None
    new: _Contents | None
    """None if there is no file any more."""
    new_mode: int | None
    origin: str | None = None
    """The path that the contents had when the turn began, if they were moved here. It stays if they are deleted."""

    def is_moved_to(self, other: "_File") -> bool:
        """True if nothing is left here, and the other is a new entry of the same kind."""
        if self.new is not None or other.old is not None or other.new is None:
            return False
        was_link = kind_of(self.old_mode) == "link"
        is_link = kind_of(other.new_mode) == "link"
        return was_link == is_link

    @property
    def is_as_before(self) -> bool:
        if self.old is None or self.new is None:
            return self.old is self.new
        return self._has_same_mode and self.old.is_same(self.new)

    @property
    def _has_same_mode(self) -> bool:
        if self.old_mode and self.new_mode:
            return self.old_mode == self.new_mode
        # A mode that the umask decides is not known, only whether the file can be executed.
        return written_mode(self.old_mode) == written_mode(self.new_mode)


def _shown(contents: _Contents | None) -> bytes | None:
    """Return the contents: empty if they are not held, None if there is no file or it was not read."""
    if contents is None or contents.size is None:
        return None
    return contents.data or b""


def _instead(old: _Contents | None, new: _Contents | None) -> str | None:
    """Write the line to show in place of contents that are not held; None if both are held."""
    if old is not None and old.size is None:
        if new is None:
            return ""
        return "Not shown: the old contents were not read\n"
    if all(contents is None or contents.data is not None for contents in (old, new)):
        return None
    return f"Not shown: {_size(old)} bytes become {_size(new)}\n"


def _size(contents: _Contents | None) -> int | None:
    """The size in bytes: 0 if there is no file, None if it was not read."""
    if contents is None:
        return 0
    return contents.size
