"""Tell before anything is written what may not be: a patch that is only checked is told so too."""

import errno
import os

from codex_py.patch.handles import split


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
