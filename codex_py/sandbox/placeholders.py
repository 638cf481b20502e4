"""Empty folders that keep names from being used while commands run.

A name can only be covered by a mount if it exists. So it is made, marked as ours by its time of change, and
held with a shared lock by every agent that needs it; the last one takes it away. What a killed agent left
is told by its mark, and taken away by the next one that uses the same folder.
"""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from codex_py.filesystem.own import lock

_LOCK_PATIENCE_S = 1.0
"""Another agent has it for a moment. A command that keeps it is not waited for: the name is taken."""
_OURS_S = 1_000_000_007
"""Seconds, a time that no folder of today has: everything made in it later would change that."""


class Placeholders:
    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def hold(self, paths: Iterable[Path]) -> None:
        """Make folders of these names where there are none. Nothing else that has the name is touched.

        Where one cannot be made, no command could make it either.
        """
        for path in paths:
            if path not in self._held:
                with suppress(OSError):
                    self._hold(path)

    def release(self) -> None:
        """Let go of all, and remove those that are still empty and that no other agent holds."""
        while self._held:
            path, descriptor = self._held.popitem()
            try:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _is_ours(descriptor) and _is_at(descriptor, path):
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
            # Also an empty one that is not marked: another agent may be about to.
            lock(descriptor, _LOCK_PATIENCE_S, shared=True)
            if _is_at(descriptor, path):
                if made:
                    os.utime(descriptor, (_OURS_S, _OURS_S))
                self._held[path], descriptor = descriptor, -1
                return
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        # It was taken away before we had the lock.
        self._hold(path)


def _is_ours(descriptor: int) -> bool:
    return int(os.fstat(descriptor).st_mtime) == _OURS_S


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
