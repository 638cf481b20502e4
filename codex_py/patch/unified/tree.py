"""The entries of a directory as a diff finds them, and as it leaves them. Nothing is written.

As for `git apply`, names lead through no symbolic link, a link is an entry whose contents are where it
leads, a submodule is a directory, and directories that a diff empties go with their last file.
"""

import errno
import heapq
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.files.change import EntryChange
from codex_py.patch.files.failures import system_error
from codex_py.patch.files.handles import Directories, join, split
from codex_py.patch.files.tree import PlannedTree, refuse_locked_file


class DiffTree(PlannedTree):
    """The entries that a unified diff changes.

    Args:
        root: absolute; all paths are below it.
        top: absolute; this directory and those above it are never removed, nor `root` if it is elsewhere.
        vacated: paths that the diff removes at some point. A link there is not in the way.
        handles, readable: see `PlannedTree`.
    """

    def __init__(
        self,
        root: Path,
        top: Path,
        vacated: Iterable[str],
        handles: Directories,
        readable: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(handles, readable)
        self._prefix = len(str(root).rstrip("/")) + 1
        self._root = os.path.realpath(root)
        top_location = os.path.realpath(top)
        is_inside = f"{self._root}/".startswith(join(top_location, ""))
        self._top = top_location if is_inside else self._root
        self._vacated = {self._location(path) for path in vacated}
        self._behind_links: dict[str, bool] = {self._root: False}
        """True, by directory, if it can only be reached through a link that the diff removes."""
        self._emptied: dict[str, None] = {}
        """Directories that keep none of their old entries, the innermost first."""

    @property
    def emptied(self) -> list[str]:
        """Directories to remove, the innermost first. Known once everything is settled."""
        return [folder for folder in self._emptied if folder not in self._directories]

    def entry(self, path: str) -> EntryChange:
        """The entry at a path. Raises a `PatchError` of kind `refused` if a symbolic link is on the way."""
        location = self._location(path)
        is_behind_link = self._is_behind_link(split(location)[0], path)
        return self._at(path, location, look=not is_behind_link)

    def followed(self, file: EntryChange) -> EntryChange:
        """The target of an entry that is a symbolic link on disk; any other entry itself."""
        if not file.has_type(stat.S_IFLNK):
            return file
        location = os.path.realpath(file.location)
        reached = self._at(location, location)
        if reached.had_type(stat.S_IFLNK):
            raise system_error(errno.ELOOP)
        return reached

    def settle(self) -> Iterator[tuple[EntryChange, OSError]]:
        """Check all that was put and removed. Yields the files that cannot be written, which stay,
        and the errors."""
        touched = self.touched
        self._find_emptied({file.location for file in touched if not file.present})
        for file in filter(lambda file: file.had_type(stat.S_IFDIR), touched):
            # A directory stays as long as there are files in it.
            is_full = file.location not in self._emptied
            if file.fate == "submodule" or (is_full and not file.present):
                file.fate = "untouched"
        for file in touched:
            try:
                if file.touched and file.present:
                    self._settle(file)
            except OSError as error:
                file.fate = "untouched"
                yield file, error

    def _settle(self, file: EntryChange) -> None:
        if file.had_type(stat.S_IFDIR):
            if file.location not in self._emptied and os.listdir(file.location):  # noqa: PTH208
                raise system_error(errno.EISDIR)
            self._emptied.setdefault(file.location)
            file.before = None
        if file.location in self._directories:
            raise system_error(errno.EISDIR)
        if file.before is None:
            self._make_room(file.location)
        elif file.before.is_file:
            refuse_locked_file(file.location)

    def _find_emptied(self, gone: set[str]) -> None:
        folders = self._folders_of(gone)
        waiting = [(-folder.count("/"), folder) for folder in folders]
        heapq.heapify(waiting)
        # The innermost first, so that a directory is looked at when all below it is known.
        while waiting:
            _, folder = heapq.heappop(waiting)
            if folder in self._emptied or not folder.startswith(join(self._top, "")):
                continue
            try:
                names = os.listdir(folder)  # noqa: PTH208
            except OSError:
                continue
            if all(join(folder, name) in gone for name in names):
                self._emptied[folder] = None
                gone.add(folder)
                parent = split(folder)[0]
                heapq.heappush(waiting, (-parent.count("/"), parent))

    def _folders_of(self, gone: set[str]) -> set[str]:
        """The directories of entries, or the entries themselves if they are directories."""
        folders: set[str] = set()
        for location in gone:
            file = self._files[location]
            if file.had_type(stat.S_IFDIR):
                folders.add(location)
            elif file.before is not None:
                folders.add(file.folder)
        return folders

    def _is_behind_link(self, folder: str, path: str) -> bool:
        # No recursion: a path may have thousands of names.
        unknown: list[str] = []
        while (known := self._behind_links.get(folder)) is None:
            unknown.append(folder)
            folder = split(folder)[0]
        for inner in reversed(unknown):
            if not known and os.path.islink(inner):  # noqa: PTH114
                if inner not in self._vacated:
                    raise PatchError(
                        f"{path} is beyond a symbolic link", kind="refused"
                    )
                known = True
            self._behind_links[inner] = known
        return known

    def _location(self, path: str) -> str:
        return join(self._root, path[self._prefix :])
