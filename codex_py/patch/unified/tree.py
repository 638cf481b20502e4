"""The entries of a directory as a diff finds them, and as it leaves them. Nothing is written.

The rules are those of `git apply`: names lead through no symbolic link; the contents of a link are its
target; a submodule is a directory; a directory that loses its last file is removed.
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
        top: absolute; this directory and those above it are never removed. If `root` is not below it,
            `root` is never removed either.
        vacated: paths that the diff removes, even if it puts something else there. A name may lead
            through a link at such a path.
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
        self._top = self._root
        if f"{self._root}/".startswith(join(top_location, "")):
            self._top = top_location
        self._vacated = {self._location(path) for path in vacated}
        self._behind_links: dict[str, bool] = {self._root: False}
        """For each directory: True if a name leads to it through a link that the diff removes."""
        self._emptied: dict[str, None] = {}
        """Directories that keep none of their old entries, the innermost first."""

    @property
    def emptied(self) -> list[str]:
        """Directories to remove, the innermost first; complete after `settle`."""
        return [folder for folder in self._emptied if folder not in self._directories]

    def entry(self, path: str) -> EntryChange:
        """Return the entry at a path.

        Raises:
            PatchError: of kind `refused`: the path leads through a symbolic link.
        """
        location = self._location(path)
        folder, _ = split(location)
        is_behind_link = self._is_behind_link(folder, path)
        return self._at(path, location, look=not is_behind_link)

    def followed(self, file: EntryChange) -> EntryChange:
        """Return the target of an entry that is a symbolic link on disk; any other entry itself."""
        if not file.has_type(stat.S_IFLNK):
            return file
        location = os.path.realpath(file.location)
        reached = self._at(location, location)
        if reached.had_type(stat.S_IFLNK):
            raise system_error(errno.ELOOP)
        return reached

    def settle(self) -> Iterator[tuple[EntryChange, OSError]]:
        """Check that the planned changes fit together.

        Yields the files that cannot be written, each with the error. They are left as they are.
        """
        touched = self.touched
        self._find_emptied({file.location for file in touched if not file.present})
        for file in touched:
            if not file.had_type(stat.S_IFDIR):
                continue
            # A directory stays as long as there are files in it.
            stays = not file.present and file.location not in self._emptied
            if file.fate == "submodule" or stays:
                file.fate = "untouched"
        for file in touched:
            try:
                if file.touched and file.present:
                    self._settle(file)
            except OSError as error:
                file.fate = "untouched"
                yield file, error

    def _settle(self, file: EntryChange) -> None:
        """Raise the `OSError` of writing a file if something is in its place."""
        if file.had_type(stat.S_IFDIR):
            if file.location not in self._emptied and os.listdir(file.location):
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
        """Find the directories that lose their last entry.

        Args:
            gone: the locations of removed entries; those of removed directories are added.
        """
        folders = self._folders_of(gone)
        # The innermost come first, so that all directories in one are known when it is looked at.
        waiting = [(-folder.count("/"), folder) for folder in folders]
        heapq.heapify(waiting)
        while waiting:
            _, folder = heapq.heappop(waiting)
            if folder in self._emptied or not folder.startswith(join(self._top, "")):
                continue
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            if all(join(folder, name) in gone for name in names):
                self._emptied[folder] = None
                gone.add(folder)
                parent, _ = split(folder)
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
        """True if a name leads to a directory through a link that the diff removes.

        Raises a `PatchError` with the `path` if it leads through any other link.
        """
        # This is no recursion, because a path may have thousands of names.
        unknown: list[str] = []
        while folder not in self._behind_links:
            unknown.append(folder)
            folder, _ = split(folder)
        is_behind = self._behind_links[folder]
        for inner in reversed(unknown):
            if not is_behind and os.path.islink(inner):
                if inner not in self._vacated:
                    raise PatchError(
                        f"{path} is beyond a symbolic link", kind="refused"
                    )
                is_behind = True
            self._behind_links[inner] = is_behind
        return is_behind

    def _location(self, path: str) -> str:
        """The real path of an entry below the root."""
        return join(self._root, path[self._prefix :])
