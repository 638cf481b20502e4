"""Tells when a folder was last changed by others.

This program makes and removes entries for a moment, which must not count as changes.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class _OwnChange(NamedTuple):
    changed_ns: int
    """The folder's `st_ctime_ns` after the change."""
    before_ns: int
    """The folder's `st_ctime_ns` before the change, or before the first of several in a row."""


class Seen(NamedTuple):
    """A file or a folder as it was found."""

    status: os.stat_result
    changed_ns: int
    """The `st_ctime_ns` that it would have without changes of our own."""


class FolderTimes:
    """Remembers our own changes of folders, to tell the time of the last change by others.

    Nobody can set such a time back, so the time before a change of our own is remembered. As soon
    as anybody else changes the folder, it gets another time, which counts as it is. Several threads
    may use an object at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held while we change a folder, so that no thread sees a time of ours before it is
        remembered."""
        self._own: dict[tuple[int, int], _OwnChange] = {}
        """Our last change of each folder, by its device and inode."""

    @contextmanager
    def without(self, folder: Path) -> Generator[None]:
        """Do not count the change that the body of the `with` makes.

        The body must be short: what others change meanwhile does not count either.

        Raises:
            OSError: the folder cannot be found.
        """
        with self._lock:
            before = folder.stat()
            yield
            after = folder.stat()
            if os.path.samestat(before, after):
                change = _OwnChange(after.st_ctime_ns, self._changed_ns(before))
                self._own[after.st_dev, after.st_ino] = change

    def look(self, path: Path) -> Seen:
        """Look at a file or a folder. No link is followed.

        Raises:
            OSError: it cannot be found.
        """
        with self._lock:
            found = path.lstat()
            return Seen(found, self._changed_ns(found))

    def _changed_ns(self, found: os.stat_result) -> int:
        own = self._own.get((found.st_dev, found.st_ino))
        if own is None or own.changed_ns != found.st_ctime_ns:
            return found.st_ctime_ns
        return own.before_ns
