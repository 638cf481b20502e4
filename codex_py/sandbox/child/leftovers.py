"""Gives the processes that a command leaves behind a moment to finish before they are killed.

A shell ends without waiting for `>(tee log)`, `( … ) &` or a coprocess. These may still have to
write the last output.
"""

import posix
import time

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.kernel import signals

_QUIET_S = 0.3
"""The processes are killed after being inactive for this long."""
_MOST_S = 2.0
"""The processes are killed after this time in any case."""
_DETACH = 17
"""The request of `ptrace` that ends the tracing of a child."""
_FIRST_LOOK_S = 0.002
_LOOK_EVERY_S = 0.02
_AWAITED = (signals.SIGCHLD, signals.SIGUSR1)
_STATE = 0
"""The field of `/proc/PID/stat` with the state of a process, counted behind the name."""
_TIMES = slice(11, 13)
"""The fields with the processor time."""
_BUSY = (b"R", b"D")
"""The states of a process that runs or waits for a processor, and of one that waits for a disk."""


class Leftovers:
    """The processes that outlived the command, as the first process of this namespace sees them."""

    def __init__(self) -> None:
        self._end_s = time.monotonic() + _MOST_S
        self._quiet_end_s = 0.0
        self._seen: dict[int, tuple[bytes, ...]] = {}
        """The figures of the processes at the last look, without their states."""
        self._look_every_s = _FIRST_LOOK_S

    def processes(self) -> list[int]:
        """The ids of these processes."""
        numbers = (int(name) for name in posix.listdir("/proc") if name.isdecimal())
        return [number for number in numbers if number != 1]

    def wait(self, parent: int = 0) -> None:
        """Wait until all have ended, or until their time is up.

        Args:
            parent: the id of the parent of this process, which is 0 for the first process of a
                namespace. If it changes, the wait ends.
        """
        if not _reap():
            return
        signals.pthread_sigmask(signals.SIG_BLOCK, _AWAITED)
        while posix.getppid() == parent and self.may_go_on():
            signals.sigtimedwait(_AWAITED, self.next_look_s())

    def may_go_on(self) -> bool:
        """Reap the processes that have ended. False if none remain, or if their time is up."""
        if not _reap():
            return False
        now_s = time.monotonic()
        seen: dict[int, tuple[bytes, ...]] = {}
        is_busy = False
        for process in self.processes():
            state, *figures = _activity(process)
            seen[process] = tuple(figures)
            is_busy = is_busy or state in _BUSY
        if seen != self._seen:
            self._seen = seen
            self._quiet_end_s = now_s + _QUIET_S
        is_active = is_busy or now_s < self._quiet_end_s
        return is_active and now_s < self._end_s

    def next_look_s(self) -> float:
        """The time until the next call of `may_go_on`. It grows, because most processes end at
        once."""
        wait_s = self._look_every_s
        self._look_every_s = min(2 * wait_s, _LOOK_EVERY_S)
        return wait_s


def wait_for_child(options: int = 0) -> tuple[int, int]:
    """Wait for any child as `waitpid` does; returns its id and its status.

    Every process may make its parent its tracer. Such a child would stop at its next signal. It is
    released from tracing, and returned with the id -1.
    """
    child, status = posix.waitpid(-1, options)
    if not child or not posix.WIFSTOPPED(status):
        return child, status
    number = posix.WSTOPSIG(status)
    if number == signals.SIGTRAP:
        # The kernel stops a traced child in this way when it executes a program.
        number = 0
    try:
        kernel.system_call("ptrace", _DETACH, child, 0, number)
    except OSError:
        # The child was killed meanwhile.
        return -1, 0
    return -1, 0


def _reap() -> bool:
    """Reap the children that have ended. False if no processes below this one are left."""
    child = -1
    try:
        while child:
            child, _ = wait_for_child(posix.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _activity(process: int) -> list[bytes]:
    """The state of a process, and figures that grow when it works or writes.

    If the process has ended, its state is empty, and there are no figures.
    """
    try:
        _, _, facts = _read(f"/proc/{process}/stat").rpartition(b")")
    except OSError:
        return [b""]
    fields = facts.split()
    activity = [fields[_STATE], *fields[_TIMES]]
    try:
        _, _, counts = _read(f"/proc/{process}/io").partition(b"wchar:")
    except OSError:
        # The process may not be inspected, or the kernel does not count.
        return activity
    activity += counts.split(None, 1)[:1]
    return activity


def _read(path: str) -> bytes:
    file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(file, 4096)
    finally:
        posix.close(file)
