"""A view of the file tree with the planned changes of a patch, before any of them is on disk.

Reading, writing and removing raise the `OSError` that the disk would raise, and take the changes
that were planned before for done. Paths are strings here: for a patch of hundreds of files, making
a `Path` of each costs more than reading them.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.filesystem.reading import SPECIAL
from codex_py.patch.files.change import EntryChange
from codex_py.patch.files.failures import system_error
from codex_py.patch.files.handles import Directories, EntryStatus, join, split
from codex_py.patch.files.modes import Kind

MAX_REMEMBERED = 16 * 1024 * 1024
"""Bytes up to which the contents of a deleted file are read, to be shown and brought back."""
_MAX_NAME_BYTES = 255
"""`NAME_MAX` of Linux and macOS; below a missing folder, the system does not look at a name."""


class Content(NamedTuple):
    """The entry at a path, before the patch or after it."""

    data: bytes
    """The contents of a file, the target of a link, or a diff's text about the commit of a
    submodule."""
    kind: Kind = "file"
    mode: int | None = None
    """Permission bits to set; None keeps the old ones, or goes by the umask."""


class PlannedTree:
    """The common part of the trees of both formats.

    Args:
        handles: closed by the caller, when nothing is read any more.
        readable: tells whether a real, absolute path may be read; None allows everything.
        texts: contents of regular files, by real path, that are newer than those on disk.
    """

    def __init__(
        self,
        handles: Directories,
        readable: Callable[[str], bool] | None = None,
        texts: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self._handles = handles
        self._texts = texts
        self._readable = readable
        self._files: dict[str, EntryChange] = {}
        """The entries by location."""
        self._open_folders: set[str] = set()
        """Directories in which entries can be made and removed; each is looked at once."""
        self._directories: set[str] = set()
        """Paths that are known to be directories once the patch is applied."""

    @property
    def touched(self) -> list[EntryChange]:
        return [file for file in self._files.values() if file.touched]

    @property
    def only_read(self) -> list[EntryChange]:
        """Files that stay and give their contents to others.

        Such a file is copied, or it is the target of a moved link.
        """
        untouched = [file for file in self._files.values() if not file.touched]
        return [file for file in untouched if file.old is not None]

    def _at(
        self,
        path: str,
        location: str,
        *,
        look: bool = True,
    ) -> EntryChange:
        """Return the entry at a location; a new one if the patch has not named it so far.

        Args:
            path: the name of a new entry in messages.
            look: False counts a new entry as missing on disk.
        """
        known = self._files.get(location)
        if known is not None:
            return known
        before = None
        if look:
            with suppress(FileNotFoundError, NotADirectoryError):
                before = EntryStatus.of(os.lstat(location))
        file = EntryChange(path, location, before)
        self._files[location] = file
        return file

    def current(self, file: EntryChange) -> Content:
        """Return the entry after the part of the patch that is planned so far."""
        if file.fate == "untouched":
            return self.original(file)
        if file.fate == "removed":
            raise system_error(errno.ENOENT)
        return Content(file.new or b"", file.fate, file.mode)

    def original(self, file: EntryChange) -> Content:
        """Return the entry before the patch, as it is on disk."""
        before = file.before
        if before is None:
            raise system_error(errno.ENOENT)
        if before.is_directory:
            return Content(file.old or b"", "submodule")
        if not before.is_link and not before.is_file:
            raise OSError(f"path `{file.path}` is not a file")
        if file.old is None and before.is_file:
            self._refuse_unreadable(file.location)
            file.old = self._texts.get(file.location)
        if file.old is None:
            # A handle reads the entry whose status is known, even if a directory on the way has
            # become a link since. Before the entry is replaced, its status is checked again.
            file.old = self._handles.contents(file.location, before)
        return Content(file.old, "link" if before.is_link else "file")

    def _refuse_unreadable(self, location: str) -> None:
        if self._readable is not None and not self._readable(location):
            raise PatchError(
                f"{location} is outside of the project, and was not read",
                kind="refused",
            )

    def put(self, file: EntryChange, content: Content) -> None:
        file.new, file.fate, file.mode = content

    def drop(self, file: EntryChange) -> None:
        """Remove an entry. Raises the `OSError` of a directory in which nothing may be removed."""
        if file.before is not None:
            self._refuse_locked_folder(file.folder)
        file.new = None
        file.fate = "removed"
        file.mode = None
        file.added = False
        file.origin = None

    def _make_room(self, location: str) -> None:
        """Check that every directory above a new entry exists or can be made."""
        if any(
            len(os.fsencode(name)) > _MAX_NAME_BYTES for name in location.split("/")
        ):
            raise system_error(errno.ENAMETOOLONG)
        folder = split(location)[0]
        parent = folder
        above: list[str] = []
        while parent not in self._directories and parent != "/":
            file = self._files.get(parent)
            if file is not None and file.touched:
                if file.is_link:
                    raise OSError("it is beyond a symbolic link that the patch makes")
                if file.present:
                    raise system_error(errno.ENOTDIR)
            else:
                try:
                    mode = os.lstat(parent).st_mode
                except (FileNotFoundError, NotADirectoryError):
                    mode = stat.S_IFDIR
                if not stat.S_ISDIR(mode):
                    raise system_error(errno.ENOTDIR)
            above.append(parent)
            parent = split(parent)[0]
        self._directories.update(above)
        self._refuse_locked_folder(folder)

    def _refuse_locked_folder(self, folder: str) -> None:
        """Raise an `OSError` if nothing may be made or removed in the directory.

        If the directory is missing, the first existing one above it counts.
        """
        looked_at: list[str] = []
        while folder not in self._open_folders:
            looked_at.append(folder)
            if os.access(folder, os.W_OK | os.X_OK):
                break
            if os.path.isdir(folder):
                raise _locked(folder)
            # The future directory may still be a file.
            folder = split(folder)[0]
        self._open_folders.update(looked_at)


class EnvelopeTree(PlannedTree):
    """The tree of an envelope: sections take effect in order, and symbolic links are followed."""

    def __init__(
        self,
        cwd: Path,
        handles: Directories,
        readable: Callable[[str], bool] | None = None,
        texts: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        super().__init__(handles, readable, texts)
        self._cwd = str(cwd)
        self._real_folders: dict[str, str] = {"/": "/"}

    def absolute(self, path: str) -> str:
        """Join a path to the working directory; `..` is removed with the name before it, as Codex
        does.

        The result is in the form of `os.fsdecode`: on disk a name is UTF-8, whatever encoding the
        locale has.
        """
        if not path.isascii():
            path = os.fsdecode(path.encode(errors="surrogateescape"))
        if not path.startswith("/"):
            path = f"{self._cwd}/{path}"
        normal = os.path.normpath(path)
        # Two slashes at the start have a special meaning, which they must lose.
        return "/" + normal.lstrip("/")

    def entry(self, path: str) -> EntryChange:
        """Return the directory entry of an absolute, normal path."""
        folder, name = split(path)
        real = self._real_folders.get(folder) or self._real(folder)
        return self._at(path, join(real, name))

    def _real(self, folder: str) -> str:
        """Resolve the symbolic links in the path of a directory, as `os.path.realpath` does.

        Each directory on the way is looked at only once.
        """
        names: list[str] = []
        known = folder
        while known not in self._real_folders:
            known, name = split(known)
            names.append(name)
        real = self._real_folders[known]
        for name in reversed(names):
            known = join(known, name)
            real = join(real, name)
            if os.path.islink(real):
                real = os.path.realpath(real)
            self._real_folders[known] = real
        return real

    def target(self, path: str) -> EntryChange:
        """Return the entry that opening an absolute path would reach, through symbolic links."""
        file = self.entry(path)
        if not file.has_type(stat.S_IFLNK):
            return file
        reached = self.entry(os.path.realpath(file.location))
        if reached.path == reached.location:
            # Messages name the path in the patch, not the real one.
            reached.path = path
        return reached

    def read(self, path: str) -> bytes:
        """Return the contents of a regular file."""
        file = self.target(path)
        if not file.touched and file.before is None:
            # Raises the system's own error for a missing file.
            os.stat(file.location)  # noqa: PTH116
        content = self.current(file)
        if content.kind != "file":
            raise OSError(f"path `{path}` is not a file")
        return content.data

    def write(
        self,
        path: str,
        data: bytes,
        *,
        added: bool = False,
    ) -> EntryChange:
        """Make or overwrite a regular file, following symbolic links."""
        file = self.target(path)
        if file.location in self._directories or file.has_type(stat.S_IFDIR):
            raise system_error(errno.EISDIR)
        if not file.present:
            self._make_room(file.location)
        elif not file.touched:
            _refuse_special(file)
            self.original(file)
            refuse_locked_file(file.location)
        self.put(file, Content(data, mode=file.mode))
        if added:
            file.added = True
            file.origin = None
        return file

    def remove(self, path: str) -> None:
        """Unlink a file, or a symbolic link itself.

        A directory, a link to one, a pipe, a device and a socket are refused with an `OSError`.
        """
        file = self.entry(path)
        if not file.present:
            raise system_error(errno.ENOENT)
        if file.touched or file.before is None:
            self.drop(file)
            return
        _refuse_special(file)
        if os.path.isdir(file.location):
            raise system_error(errno.EISDIR)
        self.drop(file)
        if _can_be_remembered(file.location, file.before):
            self.original(file)

    def move(
        self,
        source: str,
        destination: str,
        data: bytes,
    ) -> None:
        """Write to one path and unlink another; the file keeps its permission bits.

        A file moved onto itself stays.
        """
        read = self.target(source)
        moved = self.entry(source)
        if self.target(destination) is read:
            self.write(source, data)
            return
        if read.mode is None and read.before:
            mode = read.before.permissions
        else:
            mode = read.mode
        if moved is not read:
            # The link is removed, and its target lends the contents.
            moved.lent = self.current(read).data
        origin = moved.origin
        if origin is None and moved.before and not moved.added:
            origin = moved
        written = self.write(destination, data)
        self.remove(source)
        written.mode = mode
        written.origin = origin
        written.added = origin is None


def _refuse_special(file: EntryChange) -> None:
    """Raise an `OSError` for a pipe, a device or a socket: a change to it could be neither shown
    nor undone."""
    for file_type, what in SPECIAL.items():
        if file.has_type(file_type):
            raise OSError(f"it is {what}, not a file")


def _can_be_remembered(location: str, before: EntryStatus) -> bool:
    """True for a link, and for a file that is not too large. A file that can be removed need not be
    readable."""
    if before.is_link:
        return True
    return before.size <= MAX_REMEMBERED and os.access(location, os.R_OK)


def refuse_locked_file(path: str) -> None:
    """Raise an `OSError` if the file may not be written: a protected file must not be replaced
    either."""
    if not os.access(path, os.W_OK):
        raise _locked(path)


def _locked(path: str) -> OSError:
    is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    return system_error(errno.EROFS if is_read_only else errno.EACCES)
