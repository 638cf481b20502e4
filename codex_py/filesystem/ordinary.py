"""Read ordinary files out of folders that others may have written. LIGHT.

A repository can bring a link to any file, and a command can replace a folder by a link at any moment. So a path
is resolved, the place that it leads to is judged, and then that place is walked to from `/` through no
link at all: what is read is what was judged. Files of procfs, sysfs and the like are never read: they say
what is in our own memory and environment, not what someone has written.
"""

import errno
import os
import stat
from functools import cache
from pathlib import Path
from typing import Final

FOLDER_FLAGS: Final = (
    os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
)
"""To walk through a folder that is no link."""
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE: Final = 1024 * 1024

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link where a file should be",
}
_PSEUDO: Final = frozenset(
    {
        *(b"proc", b"sysfs", b"devtmpfs", b"devpts", b"debugfs", b"tracefs", b"securityfs"),
        *(b"cgroup", b"cgroup2", b"configfs", b"bpf", b"pstore", b"efivarfs", b"mqueue"),
        *(b"binfmt_misc", b"fusectl", b"selinuxfs", b"nsfs", b"pidfs", b"rpc_pipefs", b"nfsd"),
    }
)
"""File systems of Linux whose files are the kernel's answers."""
_MOUNTS: Final = "/proc/self/mountinfo"


class NotOrdinary(OSError):
    """The path leads to something that is never read. `strerror` says why, as the words after a colon."""

    def __init__(self, reason: str) -> None:
        # Without a number: it is none of the system's errors.
        super().__init__(reason)
        self.strerror = reason


def open_ordinary(path: str | Path, *, root: Path | None = None) -> int:
    """Open a regular file for reading; the descriptor. It never waits for the other end of a pipe.

    Args:
        path: absolute.
        root: absolute. A path that begins in this folder must not lead out of it.

    Raises:
        NotOrdinary: it is a folder, a pipe, a device, a link that leads nowhere or out of `root`, or a
            file of the kernel's.
        OSError: there is no such file, or it cannot be opened.
        ValueError: no file can have the name.
    """
    os.lstat(path)
    real = os.path.realpath(path)
    begins_in_root = root is not None and _is_below(os.path.normpath(path), str(root))
    if root is not None and begins_in_root and not _is_below(real, os.path.realpath(root)):
        raise NotOrdinary(f"it is a link that leads out of {root}")
    folder, _, name = real.rpartition("/")
    try:
        holder = open_folder(folder or "/")
    except FileNotFoundError as error:
        raise NotOrdinary("it is a link that leads nowhere") from error
    try:
        return open_ordinary_entry(name or ".", dir_fd=holder)
    except FileNotFoundError as error:
        raise NotOrdinary("it is a link that leads nowhere") from error
    finally:
        os.close(holder)


def open_folder(path: str) -> int:
    """A handle of an absolute, normal path, reached through no link.

    Raises:
        OSError: it is not there, or a link or no folder is on the way.
    """
    folder = os.open("/", FOLDER_FLAGS)
    for name in filter(None, path.split("/")):
        try:
            inner = os.open(name, FOLDER_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def open_ordinary_entry(name: str, *, dir_fd: int | None = None) -> int:
    """Open a regular file of a folder, as `open_ordinary` does. Without a folder, the name is a path.

    Raises:
        NotOrdinary: it is something else, a link among them.
        OSError: there is no such file, or it cannot be opened.
    """
    # Opening a device can do something; and by the time it is open, it may be another one.
    refuse_extraordinary(os.stat(name, dir_fd=dir_fd, follow_symlinks=False))
    opened = os.open(name, _FILE, dir_fd=dir_fd)
    try:
        refuse_extraordinary(os.fstat(opened))
    except OSError:
        os.close(opened)
        raise
    return opened


def refuse_extraordinary(status: os.stat_result) -> None:
    """
    Raises:
        NotOrdinary: it is of no regular file, or of one of the kernel's.
    """
    if not stat.S_ISREG(status.st_mode):
        raise NotOrdinary(f"it is {_KINDS.get(stat.S_IFMT(status.st_mode), 'no file')}")
    # What lies on a disk has a number of its own.
    if os.major(status.st_dev) == 0 and (kind := _pseudo_file_system(status.st_dev)):
        raise NotOrdinary(f"it is on {kind}, which is never read")


def read_start(path: str | Path, max_bytes: int, *, root: Path | None = None) -> tuple[bytes, int]:
    """The first bytes of a regular file, and its size. Arguments and errors are those of `open_ordinary`."""
    opened = open_ordinary(path, root=root)
    try:
        return _read(opened, max_bytes), os.fstat(opened).st_size
    finally:
        os.close(opened)


def read_whole(path: str | Path, max_bytes: int, *, root: Path | None = None) -> bytes:
    """The contents of a regular file. Arguments and errors are those of `open_ordinary`.

    Raises:
        OSError: it has more than `max_bytes`.
    """
    data, _ = read_start(path, max_bytes + 1, root=root)
    if len(data) > max_bytes:
        bound = f"{max_bytes >> 20} MB" if max_bytes >= 1 << 20 else f"{max_bytes >> 10} KiB"
        raise OSError(errno.EFBIG, f"it is larger than {bound}")
    return data


def _read(opened: int, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    left = max_bytes
    while left > 0 and (piece := os.read(opened, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


@cache
def _pseudo_file_system(device: int) -> str | None:
    """The name of a file system of the kernel's, by the number of its device; None for any other.

    Each is asked about once: some machines have thousands of mounts.
    """
    wanted = b"%d:%d" % (os.major(device), os.minor(device))
    try:
        # Not by `open_ordinary`, which this is a part of.
        mounts = Path(_MOUNTS).read_bytes()
    except OSError:
        # Without procfs there is none to be read.
        return None
    for line in mounts.splitlines():
        place, _, kind = line.partition(b" - ")
        if place.split(b" ", 3)[2] == wanted:
            name = kind.partition(b" ")[0]
            return {"proc": "procfs"}.get(name.decode(), name.decode()) if name in _PSEUDO else None
    return None
