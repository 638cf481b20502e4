"""Finds contents that existed before a turn and that the first copy of the turn left out.

An undo must not delete them: they may be the last copy. They can be under another name now. A file
that appeared in the turn has such contents in two cases:

- It is a file that the copy left out, and that was moved, or has got another link, since.
- It has the contents of a file that the copy left out. If that file is gone, only its size can be
  compared.

A change at a path that was left out when the turn began is not a change of the turn: see
`Snapshot.had_unkept`.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from codex_py.patch.blobs import blob_name
from codex_py.patch.undo.copies.births import born_ns
from codex_py.patch.undo.copies.folders import Held
from codex_py.patch.undo.copies.snapshots import Snapshot
from codex_py.patch.undo.copies.store import ALONE, CopyStore
from codex_py.protocol.patched_file import PatchedFile


def mark_of(data: bytes, *, is_link: bool) -> str:
    """Make a name for the contents of a file, or for the target of a link."""
    kind = "link" if is_link else "file"
    return f"{kind} {hashlib.sha256(data).hexdigest()}"


def has_contents(
    path: str,
    data: bytes,
    *,
    is_link: bool,
) -> bool:
    """True if there is a file with these contents, or a link with this target."""
    with suppress(OSError):
        found = os.lstat(path)
        if is_link:
            is_kind = stat.S_ISLNK(found.st_mode)
            return is_kind and os.fsencode(Path(path).readlink()) == data
        is_kind = stat.S_ISREG(found.st_mode)
        is_as_large = found.st_size == len(data)
        return is_kind and is_as_large and Path(path).read_bytes() == data
    return False


def _mark_at(path: Path) -> str | None:
    """The mark of what is at a path; None if it cannot be read, or is neither a file nor a link."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return mark_of(os.fsencode(path.readlink()), is_link=True)
        if stat.S_ISREG(mode):
            return mark_of(path.read_bytes(), is_link=False)
    return None


def has_any(
    places: Iterable[str],
    data: bytes,
    *,
    is_link: bool,
) -> bool:
    """True if one of the places has these contents."""
    return any(has_contents(place, data, is_link=is_link) for place in places)


def earlier_contents(
    store: CopyStore, first: Snapshot, files: Iterable[PatchedFile]
) -> dict[Path, list[str]]:
    """Find the files whose contents existed before the turn and are not kept.

    Args:
        first: the first copy of the turn.

    Returns:
        The paths of these files, each with the absolute paths that had its contents before the
        turn; these are empty if they are not known.
    """
    earlier = _Earlier(store, first)
    found: dict[Path, list[str]] = {}
    for file in files:
        # Nothing is lost with an empty file.
        if file.new:
            places = earlier.places_of(file)
            if places is not None:
                found[file.path] = places
    return found


def earlier_by_mark(
    files: Iterable[PatchedFile], earlier: Mapping[Path, list[str]]
) -> dict[str, list[str]]:
    """Return the places that `earlier_contents` found, by the mark of each file's new contents."""
    return {
        mark_of(file.new, is_link=is_link(file)): earlier[file.path]
        for file in files
        if file.new and file.path in earlier
    }


class _SameSize:
    """The files of one size that the first copy left out."""

    def __init__(self) -> None:
        self.gone: str | None = None
        """One that is gone, or has changed: it may have had any contents of this size."""
        self.unchanged: dict[str, list[str]] = {}
        """The others, by the mark of their contents."""


class _Earlier:
    def __init__(self, store: CopyStore, first: Snapshot) -> None:
        self._store = store
        self._first = first
        self._by_inode: dict[int, str] = {}
        self._by_size: dict[int, list[str]] = {}
        self._groups: dict[int, _SameSize] = {}
        self._written = {*first.written}
        """The inodes of files that have their contents from the turn itself."""
        for name, held in first.held.items():
            if held.inode in self._written:
                continue
            self._by_inode[held.inode] = name
            self._by_size.setdefault(held.size, []).append(name)

    def places_of(self, file: PatchedFile) -> list[str] | None:
        """Return the absolute paths that may have had the new contents.

        None if these appeared in the turn, or are kept.
        """
        try:
            now = os.lstat(file.path)
        except OSError:
            return None
        names: dict[str, None] = {}
        own_name = self._earlier_name(file, now)
        if own_name is not None:
            names[own_name] = None
        names |= dict.fromkeys(self._copied_from(file))
        if not names and not self._is_older(file.path, now):
            return None
        if self._is_kept(file):
            return None
        return [f"{self._store.root}/{name}" for name in names]

    def _earlier_name(self, file: PatchedFile, now: os.stat_result) -> str | None:
        """Return the name under which the first copy left out this file, not only its contents."""
        name = self._by_inode.get(now.st_ino)
        if name is None or self._is_younger(file.path):
            return None
        held = Held.of(now)
        was_changed = held != self._first.held[name]
        is_linked = file.old is not None and self._now(name) == held
        if was_changed and is_linked:
            # Both names were links to this file before the turn, which only changed its contents.
            return None
        return name

    def _copied_from(self, file: PatchedFile) -> Iterable[str]:
        """Yield the names of left out files that have the new contents, or may have had them."""
        assert file.new is not None
        group = self._of_size(len(file.new))
        if group.gone is not None:
            yield group.gone
        yield from group.unchanged.get(mark_of(file.new, is_link=is_link(file)), ())

    def _of_size(self, size: int) -> _SameSize:
        """The left out files of a size. Each is looked at once, as a turn may move thousands."""
        group = self._groups.get(size)
        if group is not None:
            return group
        group = _SameSize()
        self._groups[size] = group
        for name in self._by_size.get(size, ()):
            held = self._first.held[name]
            mark = None
            if self._now(name) == held:
                mark = _mark_at(Path(f"{self._store.root}/{name}"))
            if mark is None:
                # A file that is gone cannot be compared.
                group.gone = group.gone or name
            else:
                group.unchanged.setdefault(mark, []).append(name)
        return group

    def _is_younger(self, path: Path) -> bool:
        """True if the file was made in the turn. The inode of a removed file is soon used for
        another."""
        began_ns = self._first.began_ns
        born = born_ns(path)
        if born is None or not began_ns:
            return False
        return born > began_ns

    def _is_older(self, path: Path, now: os.stat_result) -> bool:
        """True if the file existed before the turn, although the first copy does not name it.

        Large folders are not looked at completely.
        """
        if now.st_mtime_ns > self._first.began_ns or now.st_ino in self._written:
            return False
        born = born_ns(path)
        if born is None:
            return not self._first.holds_all
        return born <= self._first.began_ns

    def _now(self, name: str) -> Held | None:
        with suppress(OSError):
            return Held.of(os.lstat(f"{self._store.root}/{name}"))
        return None

    def _is_kept(self, file: PatchedFile) -> bool:
        digits = len(self._first.tree)
        return blob_name(file.new or b"", digits) in self._kept

    @cached_property
    def _kept(self) -> set[str]:
        """The ids of all contents that the first copy has."""
        words = ("ls-tree", "-r", "-z", "--full-tree", self._first.tree)
        ids: set[str] = set()
        # A line is `MODE TYPE ID`, a tab and the name.
        for line in self._store.names(*words, variables=ALONE):
            facts, _, _ = line.partition("\t")
            _, _, id_ = facts.split()
            ids.add(id_)
        return ids


def is_link(file: PatchedFile) -> bool:
    return file.new_mode is not None and stat.S_ISLNK(file.new_mode)


def was_link(file: PatchedFile) -> bool:
    return file.old_mode is not None and stat.S_ISLNK(file.old_mode)
