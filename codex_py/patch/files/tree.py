"""A view of the file tree with the changes of a patch in it, none of which is on disk yet.

Reading, writing and removing raise the `OSError` that the disk would raise, and see what was done before.
Paths are strings here: for a patch of hundreds of files, making a `Path` of each costs more than reading them.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.failures import system_error
from codex_py.patch.files.access import Folders, refuse_locked_file
from codex_py.patch.files.handles import Directories, join, read_file, split

MAX_REMEMBERED = 16 * 1024 * 1024
"""Bytes up to which the contents of a deleted file are read, to be shown and brought back."""


_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(slots=True, eq=False)
class PlannedFile:
    """One directory entry, as it is on disk and as the patch will have it."""

    path: str
    """Absolute, as messages name it; symbolic links are not followed."""
    location: str
    """Where it really is: only the last name may be a symbolic link."""
    before: os.stat_result | None
    """Of the entry itself; None where there is none."""
    old: bytes | None = None
    """Contents on disk, once read."""
    new: bytes | None = None
    """Contents to write."""
    mode: int | None = None
    """Permission bits to set; None keeps what is there, or goes by the umask."""
    owner: tuple[int, int] | None = None
    """User and group of a file that is made; None for whoever makes it."""
    is_link: bool = False
    """To be a symbolic link, and `new` where it leads."""
    is_submodule: bool = False
    """To be a directory of its own, and `new` what a diff says of the commit in it."""
    present: bool = False
    """Whether the entry exists after the changes so far."""
    touched: bool = False
    added: bool = False
    """What is there now was put there by an Add section."""
    origin: "PlannedFile | None" = None
    """The entry whose contents were moved here."""

    @property
    def is_regular(self) -> bool:
        return self.touched or (self.before is not None and stat.S_ISREG(self.before.st_mode))

    def has_type(self, file_type: int) -> bool:
        """Whether the entry is on disk, unchanged, and of a type (`stat.S_IFDIR`, …)."""
        return (
            not self.touched
            and self.before is not None
            and stat.S_IFMT(self.before.st_mode) == file_type
        )


class Overlay:
    """
    Args:
        handles: closed by the caller, when nothing is read any more.
        readable: says of a real, absolute path whether it may be read; None allows everything.
    """

    def __init__(
        self,
        cwd: Path,
        handles: Directories,
        readable: Callable[[str], bool] | None = None,
    ) -> None:
        self._cwd = str(cwd)
        self._handles = handles
        self._readable = readable
        self._files: dict[str, PlannedFile] = {}
        """By location."""
        self._real_folders: dict[str, str] = {"/": "/"}
        self._folders = Folders()
        self._directories: set[str] = set()
        """Known to be directories, on disk or once the patch is applied."""

    @property
    def touched(self) -> list[PlannedFile]:
        return [file for file in self._files.values() if file.touched]

    @property
    def only_read(self) -> list[PlannedFile]:
        """Files that give their contents to others: a link to one was moved."""
        return [f for f in self._files.values() if f.old is not None and not f.touched]

    def absolute(self, path: str) -> str:
        """Joined to the working directory; `..` is taken away with the name before it, as Codex does.

        In the form of `os.fsdecode`: on disk a name is UTF-8, whatever encoding the locale is of.
        """
        if not path.isascii():
            path = os.fsdecode(path.encode(errors="surrogateescape"))
        normal = os.path.normpath(f"{self._cwd}/{path}" if path[:1] != "/" else path)
        # Two slashes at the start have a meaning of their own, which they are to lose.
        return "/" + normal.lstrip("/")

    def entry(self, path: str) -> PlannedFile:
        """The directory entry of an absolute, normal path."""
        folder, name = split(path)
        real = self._real_folders.get(folder) or self._real(folder)
        location = join(real, name)
        file = self._files.get(location)
        if file is None:
            try:
                before = os.lstat(location)
            except (FileNotFoundError, NotADirectoryError):
                before = None
            file = PlannedFile(path, location, before, present=before is not None)
            self._files[location] = file
        return file

    def _real(self, folder: str) -> str:
        """As `os.path.realpath`, which looks at every directory on the way each time."""
        names: list[str] = []
        known = folder
        while known not in self._real_folders:
            known, name = split(known)
            names.append(name)
        real = self._real_folders[known]
        for name in reversed(names):
            known, real = join(known, name), join(real, name)
            if os.path.islink(real):  # noqa: PTH114 -- for speed, see above
                real = os.path.realpath(real)
            self._real_folders[known] = real
        return real

    def target(self, path: str) -> PlannedFile:
        """The entry that opening an absolute path would reach, through symbolic links."""
        file = self.entry(path)
        if file.has_type(stat.S_IFLNK):
            reached = self.entry(os.path.realpath(file.location))
            if reached.path == reached.location:
                reached.path = path
            return reached
        return file

    def read(self, path: str) -> bytes:
        """The contents of a regular file.

        Raises:
            OSError: there is none, or it can not be read.
        """
        file = self.target(path)
        if not file.present:
            if not file.touched:
                # The disk knows best why it is not there.
                os.stat(file.location)  # noqa: PTH116
            raise system_error(errno.ENOENT)
        if not file.is_regular:
            raise OSError(f"path `{path}` is not a file")
        return self._contents(file)

    def write(
        self, path: str | os.PathLike[str], data: bytes, *, added: bool = False
    ) -> PlannedFile:
        """Make or overwrite a file, following symbolic links.

        Raises:
            OSError: something other than a regular file is there, or a file is where a directory
                should be.
        """
        file = self.target(os.fspath(path))
        if file.location in self._directories or file.has_type(stat.S_IFDIR):
            raise system_error(errno.EISDIR)
        if file.present:
            _refuse_special(file)
            self._contents(file)
            if not file.touched:
                refuse_locked_file(file.location)
        else:
            self._make_room(file.location)
            self._folders.refuse_locked(split(file.location)[0])
        file.new, file.present, file.touched = data, True, True
        if added:
            file.added, file.origin = True, None
        return file

    def remove(self, path: str) -> None:
        """Unlink an entry; a symbolic link itself, not what it leads to.

        Raises:
            OSError: there is none, or it is a directory or leads to one, or is a pipe, a device or a socket.
        """
        file = self.entry(path)
        if not file.present:
            raise system_error(errno.ENOENT)
        _refuse_special(file)
        if not file.touched and os.path.isdir(file.location):  # noqa: PTH112
            raise system_error(errno.EISDIR)
        if not file.touched:
            self._folders.refuse_locked(split(file.location)[0])
        if file.has_type(stat.S_IFLNK):
            file.old = os.fsencode(os.readlink(file.location))  # noqa: PTH115
        elif (
            file.has_type(stat.S_IFREG)
            and file.before
            and file.before.st_size <= MAX_REMEMBERED
            # A file that can be removed need not be readable.
            and os.access(file.location, os.R_OK)
        ):
            self._contents(file)
        file.new, file.present, file.touched = None, False, True
        file.added, file.origin, file.mode = False, None, None

    def move(self, source: str, destination: str, data: bytes) -> None:
        """Write to one path and unlink another; the file keeps its permission bits.

        A file moved onto itself stays.

        Raises:
            OSError: as for `write` and `remove`.
        """
        read = self.target(source)
        if self.target(destination) is read:
            self.write(source, data)
            return
        mode = stat.S_IMODE(read.before.st_mode) if read.mode is None and read.before else read.mode
        old = self._contents(read)
        moved = self.entry(source)
        origin = moved.origin or (moved if moved.before and not moved.added else None)
        written = self.write(destination, data)
        self.remove(source)
        if moved is not read:
            # A link leaves its name, and the file that it leads to lends its contents.
            moved.old = old
        written.mode, written.origin, written.added = mode, origin, origin is None

    def _contents(self, file: PlannedFile) -> bytes:
        if file.touched:
            return file.new or b""
        if file.old is None:
            file.old = read_planned(file, self._handles, self._readable)
        return file.old

    def _make_room(self, location: str) -> None:
        """See that every directory above a new file is there or can be made."""
        above: list[str] = []
        parent = split(location)[0]
        while parent not in self._directories:
            file = self._files.get(parent)
            if file is not None and file.touched:
                if file.present:
                    raise system_error(errno.ENOTDIR)
            else:
                try:
                    mode = os.stat(parent).st_mode  # noqa: PTH116
                except (FileNotFoundError, NotADirectoryError):
                    pass
                else:
                    if not stat.S_ISDIR(mode):
                        raise system_error(errno.ENOTDIR)
                    self._directories.add(parent)
            above.append(parent)
            parent = split(parent)[0]
        self._directories.update(above)


def read_planned(
    file: PlannedFile, handles: Directories, readable: Callable[[str], bool] | None
) -> bytes:
    """The contents of a file on disk: of the one that was looked at, and that is checked again before it
    is replaced. Its directory is not reached through a link that has come there since.

    Raises:
        PatchError: of kind `refused`: it may not be read.
        OSError: it can not be read, or is no ordinary file.
    """
    if readable is not None and not readable(file.location):
        raise PatchError(
            f"{file.location} is outside of the project, and was not read",
            kind="refused",
        )
    folder, name = split(file.location)
    return read_file(name, file.before, dir_fd=handles.handle(folder))


def _refuse_special(file: PlannedFile) -> None:
    """A patch is about text; what it does to a pipe could be neither shown nor undone."""
    for file_type, what in _SPECIAL.items():
        if file.has_type(file_type):
            raise OSError(f"it is {what}, not a file")
