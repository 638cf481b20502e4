"""Tell what may be written, and with which permissions, before anything is.

A patch that is only checked is told so too.
"""

import errno
import os
import re
from pathlib import Path

from codex_py.patch.files.handles import split


def permissions_by_umask(wanted: int) -> int:
    """The permission bits of a file that is made with these."""
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        status = b""
    if found := re.search(rb"^Umask:\s*([0-7]+)", status, re.MULTILINE):
        return wanted & ~int(found[1], 8)
    # Elsewhere it is only told to who sets it. Another thread may make a file in between: a private one.
    umask = os.umask(0o077)
    os.umask(umask)
    return wanted & ~umask


def refuse_locked_file(path: str) -> None:
    """
    Raises:
        OSError: the file may not be written. It could be replaced all the same, but whoever has protected
            it means it.
    """
    if not os.access(path, os.W_OK):
        raise _locked(path)


class Folders:
    """Directories in which a patch makes or removes entries; each is looked at once."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def refuse_locked(self, folder: str) -> None:
        """
        Raises:
            OSError: nothing may be made or removed in the directory, or, where it is to be made, in the one
                above it.
        """
        looked_at: list[str] = []
        while folder not in self._open:
            looked_at.append(folder)
            if os.access(folder, os.W_OK | os.X_OK):
                break
            if os.path.isdir(folder):  # noqa: PTH112
                raise _locked(folder)
            # What is to be a directory is perhaps still a file.
            folder = split(folder)[0]
        self._open.update(looked_at)


def _locked(path: str) -> OSError:
    is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    number = errno.EROFS if is_read_only else errno.EACCES
    return OSError(number, os.strerror(number))
