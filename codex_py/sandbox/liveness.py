"""Waits until every process that the commands left behind is dead."""

import os
import re
import select
import time
from contextlib import suppress
from pathlib import Path

_CHILD = re.compile(rb'"child-pid": *(\d+)')
_MAX_READ_BYTES = 1 << 16


class LivenessPipe:
    """A pipe that stays open for writing while a process of a command lives.

    A process namespace lives on for a moment after it released the pipe. So `bwrap` and our own
    launcher write the id of its first process into the pipe, as `"child-pid": NUMBER`, and that
    process is waited for too.
    """

    def __init__(self) -> None:
        self._write_end = -1
        self._read_ends: list[int] = []
        self._told = b""

    def path(self) -> str:
        """The path at which the next command opens the pipe; for children of this process."""
        if self._write_end < 0:
            read_end, self._write_end = os.pipe()
            os.set_blocking(read_end, False)
            self._read_ends.append(read_end)
        # A full pipe would block the command.
        with suppress(BlockingIOError):
            self._told += os.read(self._read_ends[-1], _MAX_READ_BYTES)
        return f"/proc/{os.getpid()}/fd/{self._write_end}"

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything is dead; False if a process lives. No command may be starting."""
        deadline_s = time.monotonic() + timeout_s
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1
        while self._read_ends:
            if not _is_ready(self._read_ends[-1], deadline_s):
                return False
            told = os.read(self._read_ends[-1], _MAX_READ_BYTES)
            if not told:
                os.close(self._read_ends.pop())
            self._told += told
        if not all(
            _is_dead(int(pid), deadline_s) for pid in _CHILD.findall(self._told)
        ):
            return False
        self._told = b""
        return True


def _is_dead(pid: int, deadline_s: float) -> bool:
    """Wait for the first process of a namespace; all others die with it."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        # By now the id may belong to a thread, which cannot be opened; or no descriptors are left.
        return not _is_first(pid)
    try:
        return not _is_first(pid) or _is_ready(descriptor, deadline_s)
    finally:
        os.close(descriptor)


def _is_first(pid: int) -> bool:
    """False if the process has ended, even if its id was reused. True if that is unknown."""
    try:
        for line in (
            Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
        ):
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return True
    return False


def _is_ready(descriptor: int, deadline_s: float) -> bool:
    left_ms = max(0.0, deadline_s - time.monotonic()) * 1_000
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(left_ms))
