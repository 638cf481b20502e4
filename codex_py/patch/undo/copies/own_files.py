"""Tells which files this process itself writes, such as a log that its standard output leads to."""

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path


class OwnFiles:
    """The files that are open for writing now. None are known where there is no `/dev/fd`."""

    def __init__(self) -> None:
        self._found: set[tuple[int, int]] = set()
        with suppress(OSError):
            for descriptor in map(int, os.listdir("/dev/fd")):  # noqa: PTH208
                with suppress(OSError):
                    status = os.fstat(descriptor)
                    access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
                    if stat.S_ISREG(status.st_mode) and access != os.O_RDONLY:
                        self._found.add((status.st_dev, status.st_ino))

    def __contains__(self, path: Path) -> bool:
        with suppress(OSError):
            status = path.lstat()
            return (status.st_dev, status.st_ino) in self._found
        return False
