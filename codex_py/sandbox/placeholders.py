"""Bind-mount placeholders: empty folders at protected names that do not exist, while commands run.

A mount can only cover a name that exists. A placeholder is recognised by its modification time. Every agent that
needs it holds a shared lock on it, and the last one removes it. If an agent was killed, the next one that
uses the same workspace removes what it left.
"""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from codex_py.filesystem.own import lock

_LOCK_TIMEOUT_S = 1.0
"""Another agent holds the exclusive lock for a moment. A command may hold it for ever: the name is taken then."""
_MARK_S = 1_000_000_007
"""Seconds: a modification time that no other folder has. An entry made in it would change that."""


class Placeholders:
    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def hold(self, paths: Iterable[Path]) -> None:
        """Create the folders that do not exist. Anything else with such a name is left alone.

        If one cannot be created, no command could create it either.
        """
        for path in paths:
            if path not in self._held:
                with suppress(OSError):
                    self._hold(path)

    def release(self) -> None:
        """Release all placeholders, and remove those that are still empty and that no other agent holds."""
        while self._held:
            path, descriptor = self._held.popitem()
            try:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_marked = int(os.fstat(descriptor).st_mtime) == _MARK_S
                    if is_marked and _is_at(descriptor, path):
                        path.rmdir()
            finally:
                os.close(descriptor)

    def _hold(self, path: Path) -> None:
        made = True
        try:
            path.mkdir(mode=0o755)
        except FileExistsError:
            made = False
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not made and any(os.scandir(descriptor)):
                return
            # Also an empty folder without the mark: another agent may be about to set it.
            lock(descriptor, _LOCK_TIMEOUT_S, shared=True)
            if _is_at(descriptor, path):
                if made:
                    os.utime(descriptor, (_MARK_S, _MARK_S))
                self._held[path], descriptor = descriptor, -1
                return
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        # It was removed before we had the lock.
        self._hold(path)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
