"""Learn that nothing of the commands lives any more, also of what their launchers did not wait for."""

import os
import re
import select
import time
from contextlib import suppress
from pathlib import Path

_CHILD = re.compile(rb'"child-pid": *(\d+)')
_MOST_BYTES = 1 << 16


class LivenessPipe:
    """Counts those who have our pipe open, and the namespaces whose first processes are named in it.

    `bwrap` and our own launcher name them, as `"child-pid": NUMBER`.
    """

    def __init__(self) -> None:
        self._write_end = -1
        self._read_ends: list[int] = []
        self._told = b""

    def pipe(self) -> str:
        """A path that what runs the next command opens for writing; for this process and its children."""
        if self._write_end < 0:
            read_end, self._write_end = os.pipe()
            os.set_blocking(read_end, False)
            self._read_ends.append(read_end)
        # A pipe that is full would hold up the command.
        with suppress(BlockingIOError):
            self._told += os.read(self._read_ends[-1], _MOST_BYTES)
        return f"/proc/{os.getpid()}/fd/{self._write_end}"

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything is dead, and say whether it is. No command may be about to start."""
        deadline_s = time.monotonic() + timeout_s
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1
        while self._read_ends:
            if not _is_ready(self._read_ends[-1], deadline_s):
                return False
            told = os.read(self._read_ends[-1], _MOST_BYTES)
            if not told:
                os.close(self._read_ends.pop())
            self._told += told
        if not all(_is_dead(int(pid), deadline_s) for pid in _CHILD.findall(self._told)):
            return False
        self._told = b""
        return True


def _is_dead(pid: int, deadline_s: float) -> bool:
    """Whether the first process of a namespace is, and with it all others."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            return not _is_first(pid) or _is_ready(descriptor, deadline_s)
        finally:
            os.close(descriptor)
    return True


def _is_first(pid: int) -> bool:
    """Whether the number is still that of the first process of a namespace."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


def _is_ready(descriptor: int, deadline_s: float) -> bool:
    left_ms = max(0.0, deadline_s - time.monotonic()) * 1_000
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(left_ms))
