"""Lets the processes that a command leaves behind finish what they do, for a moment, before they are killed.

A shell ends without waiting for `>(tee log)`, `( … ) &` or a coprocess, which then still have the last of its output.
"""

import posix
import time

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.kernel import signals

_QUIET_S = 0.3
"""They are killed when they have done nothing for this long."""
_MOST_S = 2.0
"""They are killed after this time, whatever they do."""
_DETACH = 17
_FIRST_LOOK_S = 0.002
_LOOK_EVERY_S = 0.02
_AWAITED = (signals.SIGCHLD, signals.SIGUSR1)
_STATE = 0
"""The field of `/proc/PID/stat`, behind the name, that says what a process does now."""
_TIMES = slice(11, 13)
"""The fields with its processor time."""
_BUSY = (b"R", b"D")
"""Running, or ready to on a machine that has no processor free; and waiting for a disk."""


class Leftovers:
    """The processes of this namespace that have outlived the command, as its first process sees them."""

    def __init__(self) -> None:
        self._end_s = time.monotonic() + _MOST_S
        self._quiet_end_s = 0.0
        self._seen: dict[int, tuple[bytes, ...]] = {}
        self._look_every_s = _FIRST_LOOK_S

    def processes(self) -> list[int]:
        """Their ids."""
        numbers = (int(name) for name in posix.listdir("/proc") if name.isdecimal())
        return [number for number in numbers if number != 1]

    def wait(self, parent: int = 0) -> None:
        """Wait until none is left, or until their time is up. Takes no time if there is none.

        `parent`: if this process gets another one, it does not wait any more.
        """
        if not _reap():
            return
        signals.pthread_sigmask(signals.SIG_BLOCK, _AWAITED)
        while posix.getppid() == parent and self.may_go_on():
            signals.sigtimedwait(_AWAITED, self.next_look_s())

    def may_go_on(self) -> bool:
        """Reap those that have ended. False if none is left, or if their time is up."""
        if not _reap():
            return False
        now_s = time.monotonic()
        activity = {process: _activity(process) for process in self.processes()}
        found = {process: seen[1:] for process, seen in activity.items()}
        if found != self._seen:
            self._seen = found
            self._quiet_end_s = now_s + _QUIET_S
        is_busy = any(seen[0] in _BUSY for seen in activity.values())
        return now_s < self._end_s and (is_busy or now_s < self._quiet_end_s)

    def next_look_s(self) -> float:
        """How long to wait until `may_go_on` is asked again: soon at first, as most of them end at once."""
        wait_s = self._look_every_s
        self._look_every_s = min(2 * wait_s, _LOOK_EVERY_S)
        return wait_s


def wait_for_child(options: int = 0) -> tuple[int, int]:
    """As `waitpid`, for any child.

    A child that makes us its tracer, as every process may do with its parent, would stop at its next signal.
    It goes on without a tracer, and is returned with the id -1.
    """
    child, status = posix.waitpid(-1, options)
    if not child or not posix.WIFSTOPPED(status):
        return child, status
    number = posix.WSTOPSIG(status)
    if number == signals.SIGTRAP:
        # The kernel stops it so when it executes a program.
        number = 0
    try:
        kernel.system_call("ptrace", _DETACH, child, 0, number)
    except OSError:
        # It was killed meanwhile.
        return -1, 0
    return -1, 0


def _reap() -> bool:
    """Reap the children that have ended. False if there is no other child, and so nothing below this process."""
    try:
        while wait_for_child(posix.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _activity(process: int) -> tuple[bytes, ...]:
    """What a process does, then figures that grow when it works or writes; nothing if it has ended."""
    try:
        fields = _read(f"/proc/{process}/stat").rpartition(b")")[2].split()
    except OSError:
        return (b"",)
    try:
        written = (
            _read(f"/proc/{process}/io").partition(b"wchar:")[2].split(None, 1)[:1]
        )
    except OSError:
        # A process that nobody may look into, or a kernel that does not count.
        written = []
    return (fields[_STATE], *fields[_TIMES], *written)


def _read(path: str) -> bytes:
    file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(file, 4096)
    finally:
        posix.close(file)
