"""Tells who may have changed a file last, by the times in which the session's calls and hooks ran.

These times are compared with `st_ctime`, which nobody can set. They are read from the clock of the
file system, which may differ from the machine's: a new file without a name has its current time.
Where files without names do not exist (NFS, macOS), the author is unknown.
"""

import os
import stat
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.filesystem.folder_times import FolderTimes, Seen

_LONG_NS: Final = 2_000_000_000
"""If something runs for longer than this, the user may have saved a file meanwhile."""


class Author(Enum):
    """Who changed a file last."""

    SESSION = auto()
    UNSURE = auto()
    """The session or somebody else."""
    ANOTHER = auto()


class _Span(NamedTuple):
    """A time in which something of the session ran."""

    began_ns: int
    ended_ns: int

    @property
    def is_long(self) -> bool:
        return self.ended_ns - self.began_ns > _LONG_NS


class RunTimes:
    """The times in which calls or hooks of the session ran that may have changed files.

    Args:
        root: all files are below it.
        folder_times: tells when folders were changed, without the sandbox's own changes around a
            command.
    """

    def __init__(self, root: Path, folder_times: FolderTimes | None = None) -> None:
        self._root = root
        self._folder_times = folder_times or FolderTimes()
        self._device = -1
        """The device of the root."""
        self._is_known = True
        """False if the file system has not told its time."""
        self._spans: list[_Span] = []
        """The times that have ended."""
        self._began_ns: int | None = None
        """The beginning of the time that goes on; None if nothing runs."""

    @property
    def is_open(self) -> bool:
        """True while something runs."""
        return self._began_ns is not None

    def forget(self) -> None:
        """Forget the times that have ended."""
        self._spans.clear()

    def begin(self) -> None:
        """Note that something runs from now on."""
        if self._began_ns is None:
            self._began_ns = self.now_ns()

    def end(self) -> None:
        """Note that nothing runs any more."""
        if self._began_ns is not None:
            span = _Span(self._began_ns, self.now_ns())
            self._spans.append(span)
            self._began_ns = None

    def now_ns(self) -> int:
        """The current time of the file system; 0 if it cannot be found."""
        try:
            flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
            descriptor = os.open(self._root, flags, 0o600)
        except (OSError, AttributeError):
            self._is_known = False
            return 0
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._device = found.st_dev
        return found.st_ctime_ns

    def author(self, path: Path, since_ns: int, until_ns: int) -> Author:
        """Tell who last changed a path that differs between two copies.

        Args:
            path: absolute, and below the root.
            since_ns: the time when the earlier copy began.
            until_ns: the time when the later copy began.
        """
        way = self._way_to(path)
        # The time of a folder tells when an entry came or went. A file that moved with its folder
        # has an older time.
        recent = [found for found in way if found.changed_ns > since_ns]
        if not self._is_known or not recent:
            return Author.UNSURE
        last = recent[-1]
        # A change after the later copy began is in neither copy.
        if last.changed_ns > until_ns or last.status.st_dev != self._device:
            return Author.UNSURE
        spans = self._spans_until(until_ns)
        for span in spans:
            if span.began_ns <= last.changed_ns <= span.ended_ns:
                return Author.UNSURE if span.is_long else Author.SESSION
        depth = len(path.relative_to(self._root).parts)
        is_there = len(way) == depth + 1
        if is_there and last is way[-1]:
            return Author.ANOTHER
        # Only the last change of a folder is known. The session may have changed the path in it
        # before.
        for span in spans:
            if span.began_ns <= last.changed_ns and span.ended_ns > since_ns:
                return Author.UNSURE
        return Author.ANOTHER

    def _spans_until(self, until_ns: int) -> list[_Span]:
        """Return all times, of which the one that goes on ends at `until_ns`."""
        spans = [*self._spans]
        if self._began_ns is not None:
            spans.append(_Span(self._began_ns, until_ns))
        return spans

    def _way_to(self, path: Path) -> list[Seen]:
        """Look at the root and each entry down to the path, as far as they exist.

        Links are not followed.
        """
        look = self._folder_times.look
        found = [look(self._root)]
        entries = [*reversed(path.parents), path]
        below_root = [
            entry
            for entry in entries
            if entry.is_relative_to(self._root) and entry != self._root
        ]
        for entry in below_root:
            if not stat.S_ISDIR(found[-1].status.st_mode):
                break
            try:
                found.append(look(entry))
            except OSError:
                break
        return found
