"""Operations on files that name the directory by an open handle, not by its path.

Between the check of a path and its use, a directory on the way can be replaced by a symbolic link that
leads elsewhere. So each directory of a path is opened in the handle of the one above it, and never
through a link. The file itself is then named by its directory's handle. This needs nothing but
`openat` and the like, which Linux and macOS both have.
"""

import errno
import os
import stat
from contextlib import suppress
from typing import NamedTuple, Self

from codex_py.filesystem.reading import FOLDER_FLAGS, open_ordinary_entry

_MAX_OPEN = 64
"""The number of handles that are kept. On macOS, a process may have 256 descriptors in all."""

NOT_REPLACEABLE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV}
"""Errors of replacing a file that can perhaps be overwritten: the directory cannot be written, the
owner cannot be kept, or something is mounted on the file."""

_EXISTING = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags for opening an entry that may have become a link or a pipe: the one is not followed, the
other not waited for."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class EntryStatus(NamedTuple):
    """The status of a directory entry. It differs once the entry is changed or replaced."""

    device: int
    inode: int
    mode: int
    """Type and permission bits."""
    size: int
    mtime_ns: int
    user: int
    group: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        return cls(
            device=found.st_dev,
            inode=found.st_ino,
            mode=found.st_mode,
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
            user=found.st_uid,
            group=found.st_gid,
        )

    @property
    def permissions(self) -> int:
        return stat.S_IMODE(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Directories:
    """Opens directories and keeps their handles; a context manager that closes them.

    Paths are absolute and normal, and had no links in them when they were checked. Modes are permission bits;
    None goes by the umask. Every method raises the `OSError` of the operation that failed.
    """

    def __init__(self) -> None:
        self._handles: dict[str, int] = {}
        """The open handles by path, the most recently used last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_below("")

    def handle(self, path: str) -> int:
        """Return a descriptor of the directory. It stays open at least until the call after the next.

        Raises:
            FileNotFoundError: it is not there.
            NotADirectoryError: it or one above it is not a directory, but perhaps a link now.
        """
        handle = self._handles.pop(path, None)
        if handle is None:
            return self._descend(path)
        self._handles[path] = handle
        return handle

    def make(self, path: str, mode: int | None = None) -> None:
        """Make a directory in an existing one."""
        name, folder = self._in_folder(path)
        first_mode = 0o777
        if mode is not None:
            # It must never be more open than in the end, and readable for `set_mode`.
            first_mode = mode & 0o700 | stat.S_IRUSR
        os.mkdir(name, first_mode, dir_fd=folder)
        if mode is not None:
            self.set_mode(path, mode)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits of a directory."""
        name, folder = self._in_folder(path)
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) == mode:
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | _EXISTING
        fd = os.open(name, flags, dir_fd=folder)
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def remove(self, path: str) -> None:
        """Remove an empty directory."""
        name, folder = self._in_folder(path)
        os.rmdir(name, dir_fd=folder)
        self._close_below(path)

    def found(self, location: str) -> os.stat_result | None:
        """Return the status of a directory entry; None if it does not exist. Links are not followed."""
        try:
            name, folder = self._in_folder(location)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def status(self, location: str) -> EntryStatus | None:
        """Return the same as `found`, in a form that can be compared."""
        found = self.found(location)
        return found and EntryStatus.of(found)

    def contents(self, location: str, expected: EntryStatus) -> bytes:
        """Read a regular file, which must be the expected one, or the target of a symbolic link."""
        name, folder = self._in_folder(location)
        if expected.is_link:
            return os.fsencode(os.readlink(name, dir_fd=folder))
        return read_file(name, expected, dir_fd=folder)

    def write_new(
        self,
        location: str,
        data: bytes,
        mode: int | None,
        owner: tuple[int, int] | None,
        *,
        is_link: bool,
    ) -> None:
        """Make a file, or a symbolic link with the target `data`.

        After an error, a partly written file is left behind.

        Args:
            owner: user and group; None leaves it with the user of this process.
        """
        name, folder = self._in_folder(location)
        if is_link:
            os.symlink(data, name, dir_fd=folder)
            return
        first_mode = 0o666
        if mode is not None:
            # It must never be more readable than in the end, not even while it is written.
            first_mode = mode & 0o777
        fd = os.open(name, _NEW, first_mode, dir_fd=folder)
        try:
            _write_all(fd, data)
            if mode is not None or owner is not None:
                _set_mode_and_owner(fd, mode, owner)
        finally:
            os.close(fd)

    def rewrite(
        self,
        location: str,
        data: bytes,
        mode: int,
        expected: EntryStatus,
    ) -> None:
        """Overwrite the expected file in place. It keeps its links, its owner and its entry.

        After an error, it may be partly overwritten.
        """
        name, folder = self._in_folder(location)
        fd = os.open(name, os.O_WRONLY | _EXISTING, dir_fd=folder)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or not _is_same_inode(found, expected):
                raise OSError(errno.ESTALE, "It was replaced meanwhile")
            _write_all(fd, data)
            os.ftruncate(fd, len(data))
            if stat.S_IMODE(found.st_mode) != mode:
                os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def rename(self, source: str, destination: str) -> None:
        old, old_folder = self._in_folder(source)
        new, new_folder = self._in_folder(destination)
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)

    def unlink(self, location: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(FileNotFoundError):
            name, folder = self._in_folder(location)
            os.unlink(name, dir_fd=folder)

    def _in_folder(self, location: str) -> tuple[str, int]:
        """The name of an entry, and the handle of its directory."""
        folder, name = split(location)
        return name, self.handle(folder)

    def _descend(self, path: str) -> int:
        """Open a directory, and those above it from the nearest one that is open."""
        while len(self._handles) > _MAX_OPEN:
            least_recent = next(iter(self._handles))
            os.close(self._handles.pop(least_recent))
        names: list[str] = []
        reached = path
        while reached not in self._handles and reached != "/":
            reached, name = split(reached)
            names.append(name)
        handle = self._handles.get(reached)
        if handle is None:
            handle = os.open("/", FOLDER_FLAGS)
            self._handles["/"] = handle
        for name in reversed(names):
            reached = join(reached, name)
            handle = os.open(name, FOLDER_FLAGS, dir_fd=handle)
            self._handles[reached] = handle
        return handle

    def _close_below(self, path: str) -> None:
        """Close the handles of a directory and of those below it."""
        top = f"{path}/"
        below = [known for known in self._handles if f"{known}/".startswith(top)]
        for known in below:
            os.close(self._handles.pop(known))


def split(path: str) -> tuple[str, str]:
    """Split an absolute path into its directory and its last name."""
    directory, _, name = path.rpartition("/")
    return directory or "/", name


def join(directory: str, name: str) -> str:
    """Join a directory and a name; the opposite of `split`."""
    if directory != "/":
        return f"{directory}/{name}"
    return f"/{name}"


def read_file(
    name: str,
    expected: EntryStatus,
    *,
    dir_fd: int | None = None,
) -> bytes:
    """Read the expected regular file.

    Raises:
        OSError: it is another file by now, not a regular one, or one of the kernel's.
    """
    fd = open_ordinary_entry(name, dir_fd=dir_fd)
    try:
        found = os.fstat(fd)
        if not _is_same_inode(found, expected):
            raise OSError(errno.ESTALE, "It was replaced while it was read")
        # Asking for one byte more than there should be saves a second call that finds the end.
        data = os.read(fd, found.st_size + 1)
        if len(data) == found.st_size:
            return data
        with os.fdopen(
            fd,
            "rb",
            buffering=0,
            closefd=False,
        ) as stream:
            return data + stream.read()
    finally:
        os.close(fd)


def _is_same_inode(found: os.stat_result, expected: EntryStatus) -> bool:
    return found.st_ino == expected.inode and found.st_dev == expected.device


def _set_mode_and_owner(
    fd: int,
    mode: int | None,
    owner: tuple[int, int] | None,
) -> None:
    """Set what differs, except what is None."""
    made = os.fstat(fd)
    if owner is not None and (made.st_uid, made.st_gid) != owner:
        os.fchown(fd, *owner)
        # This may have removed permission bits.
        made = os.fstat(fd)
    if mode is not None and stat.S_IMODE(made.st_mode) != mode:
        os.fchmod(fd, mode)


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])
