"""Tells who may have changed a file last, from the times in which calls and hooks of the session ran.

All times are those of the file system: a new file without a name shows its current time. So the
file system may have another clock, or another resolution, than this machine. The times are compared
with `st_ctime`, which nobody can set. Where files without names do not exist (NFS, macOS), the
author is unknown.
"""

import os
import stat
from enum import Enum, auto
from pathlib import Path
from typing import Final

from codex_py.filesystem.folder_times import FolderTimes, Seen

_LONG_NS: Final = 2_000_000_000
"""While something runs for longer than this, the user may well save a file."""


class Author(Enum):
    """Who changed a file last."""

    SESSION = auto()
    UNSURE = auto()
    """The session or somebody else."""
    ANOTHER = auto()


class RunTimes:
    """The times in which calls or hooks of the session ran that may have changed files.

    Args:
        root: all files are below it.
        folder_times: when folders changed, without what the sandbox does there before and after a command.
    """

    def __init__(self, root: Path, folder_times: FolderTimes | None = None) -> None:
        self._root = root
        self._folder_times = folder_times or FolderTimes()
        self._device = -1
        self._is_known = True
        self._spans: list[tuple[int, int]] = []
        self._began: int | None = None

    @property
    def is_open(self) -> bool:
        """True while something runs."""
        return self._began is not None

    def forget(self) -> None:
        """Forget the times that have ended."""
        self._spans.clear()

    def begin(self) -> None:
        if self._began is None:
            self._began = self.now_ns()

    def end(self) -> None:
        if self._began is not None:
            self._spans.append((self._began, self.now_ns()))
            self._began = None

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

    def author(
        self,
        path: Path,
        since_ns: int,
        until_ns: int,
    ) -> Author:
        """The author of the last change to a path that differs between two copies, which began at
        these times."""
        way = self._way_to(path)
        is_there = len(way) == len(path.relative_to(self._root).parts) + 1
        # The time of a folder tells when an entry came or went. A file that moved with its folder
        # has an older time.
        recent = [found for found in way if found.changed_ns > since_ns]
        if not self._is_known or not recent:
            return Author.UNSURE
        status, changed_ns = recent[-1]
        is_exact = is_there and recent[-1] is way[-1]
        # A later change is in neither copy.
        if changed_ns > until_ns or status.st_dev != self._device:
            return Author.UNSURE
        spans = [*self._spans]
        if self._began is not None:
            spans.append((self._began, until_ns))
        for began, ended in spans:
            if began <= changed_ns <= ended:
                if ended - began > _LONG_NS:
                    return Author.UNSURE
                return Author.SESSION
        was_possible = any(
            began <= changed_ns and ended > since_ns for began, ended in spans
        )
        if was_possible and not is_exact:
            return Author.UNSURE
        return Author.ANOTHER

    def _way_to(self, path: Path) -> list[Seen]:
        """Look at the root, and at each entry between it and the path, as far as they exist. Links
        are not followed."""
        look = self._folder_times.look
        found = [look(self._root)]
        for entry in (*reversed(path.parents), path):
            if entry.is_relative_to(self._root) and entry != self._root:
                if not stat.S_ISDIR(found[-1].status.st_mode):
                    break
                try:
                    found.append(look(entry))
                except OSError:
                    break
        return found
