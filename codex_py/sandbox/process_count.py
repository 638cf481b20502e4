"""Bound how many processes a command and all that it starts may be, where no limit of the kernel counts them."""

import os
import time

_COUNT_AGAIN_S = 0.2
"""Counting takes some 20 us a process, which a command that has too many should not have us do all the time."""


class ProcessCount:
    """Counts all descendants of this process, which adopts those whose parents have ended, and their threads.

    Args:
        most: how many there may be. There is one when this is made.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most - 1
        self._full_until = 0.0

    def may_grow(self) -> bool:
        """Whether there may be one more; it is counted as there from now on."""
        if self._left <= 0:
            if time.monotonic() < self._full_until:
                return False
            self._left = self._most - self._counted()
            if self._left <= 0:
                self._full_until = time.monotonic() + _COUNT_AGAIN_S
                return False
        self._left -= 1
        return True

    def _counted(self) -> int:
        threads, waiting = 0, _children(f"/proc/{os.getpid()}/task/{os.getpid()}")
        while waiting:
            folder = f"/proc/{waiting.pop()}/task"
            try:
                tasks = os.listdir(folder)  # noqa: PTH208 - pathlib would cost 5 ms
            except OSError:
                continue
            threads += len(tasks)
            for task in tasks:
                waiting += _children(f"{folder}/{task}")
        return threads


def _children(task: str) -> list[str]:
    try:
        with open(f"{task}/children", encoding="ascii") as file:  # noqa: PTH123 - as above
            return file.read().split()
    except OSError:
        # It has ended meanwhile.
        return []
