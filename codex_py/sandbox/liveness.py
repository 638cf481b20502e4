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
        """The end that commands open again; -1 before the first command."""
        self._read_ends: list[int] = []
        """The ends of this pipe, and of earlier ones that a process still holds."""
        self._told = b""
        """The messages that were read so far."""

    def path(self) -> str:
        """The path at which the next command, a child of this process, opens the pipe."""
        if self._write_end < 0:
            read_end, self._write_end = os.pipe()
            os.set_blocking(read_end, False)
            self._read_ends.append(read_end)
        # A full pipe would block the command.
        with suppress(BlockingIOError):
            self._told += os.read(self._read_ends[-1], _MAX_READ_BYTES)
        return f"/proc/{os.getpid()}/fd/{self._write_end}"

    def wait(self, timeout_s: float) -> bool:
        """Wait until all processes are dead; False if one still lives after `timeout_s`.

        Call it while no command starts.
        """
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
        for pid in _CHILD.findall(self._told):
            if not _is_dead(int(pid), deadline_s):
                return False
        self._told = b""
        return True


def _is_dead(pid: int, deadline_s: float) -> bool:
    """Wait for the death of the first process of a namespace; all others die with it.

    False if it still lives at the deadline.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        # The id may belong to a thread by now, which cannot be opened; or no descriptors are left.
        return not _is_first(pid)
    try:
        return not _is_first(pid) or _is_ready(descriptor, deadline_s)
    finally:
        os.close(descriptor)


def _is_first(pid: int) -> bool:
    """True if a process is the first one of its namespace, or if that is unknown.

    False if the process has ended, even if its id was reused.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return True
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            # The last number is the id in the innermost namespace.
            return line.split()[-1] == "1"
    return False


def _is_ready(descriptor: int, deadline_s: float) -> bool:
    left_ms = max(0.0, deadline_s - time.monotonic()) * 1_000
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(left_ms))
