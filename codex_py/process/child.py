"""Signals the process group of a program and the processes that have left it, and tells when the
program has exited."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_MAX_KILL_ROUNDS = 10
"""Each round kills what was forked during the last one. This does not stop a fork bomb."""
_PROC = Path("/proc")


class Child:
    """A program that leads a session and a process group.

    The kernel does not reuse the id of the leader while it is unreaped or a member of the group
    lives. So if there is a process with that id after the leader was reaped, the group has ended
    and the id belongs to a stranger.
    """

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        """Take over a process that was started with `start_new_session`.

        Args:
            mark: the text in its environment by which `kill_marked` finds it.
        """
        self.process = process
        self.id = process.pid
        self._mark = mark

    def call_at_exit(self, callback: Callable[[], None]) -> None:
        """Call `callback` once in the running loop when the process has exited.

        It may be unreaped then; `process.wait()` does not block.
        """
        loop = asyncio.get_running_loop()
        try:
            descriptor = os.pidfd_open(self.id)
        except (AttributeError, OSError):
            # Not Linux, or the kernel or the container refuses.
            waiting = threading.Thread(
                target=self._call_after_wait, args=(loop, callback), daemon=True
            )
            waiting.start()
            return

        def exited() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            callback()

        loop.add_reader(descriptor, exited)

    def _call_after_wait(
        self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]
    ) -> None:
        self.process.wait()
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(callback)

    def has_members(self) -> bool:
        """True if a process of the group lives, or if the leader is not reaped."""
        if self._is_reused() or not _exists(-self.id):
            return False
        return self.process.returncode is None or not _has_ended(self.id)

    def send_signal(self, number: int) -> None:
        """Signal every member of the group, if any is left."""
        if not self._is_reused():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.id, number)

    def kill(self) -> None:
        """Send SIGKILL to the group, and to all that it started, in any group."""
        self.send_signal(signal.SIGKILL)
        kill_marked(self._mark)

    def _is_reused(self) -> bool:
        return self.process.returncode is not None and _exists(self.id)


async def is_set_within(event: asyncio.Event, timeout_s: float | None) -> bool:
    """Wait until the event is set; False if that takes longer than `timeout_s`.

    Without a timeout, this waits for ever.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()


def kill_marked(mark: str) -> None:
    """Send SIGKILL to every process with the mark in its environment.

    A process that calls `setsid`, as daemons and the jobs of an interactive shell do, leaves the
    group that we can signal. It keeps its environment, which Linux shows in `/proc/PID/environ`; on
    other systems, this does nothing. A process that also replaces its environment is not found:
    only the sandbox ends it. Takes some 2 ms for 100 processes.
    """
    if sys.platform != "linux":
        return
    killed: set[int] = set()
    for _ in range(_MAX_KILL_ROUNDS):
        names = [entry.name for entry in _PROC.iterdir()]
        pids = {int(name) for name in names if name.isdecimal()}
        alive = pids - killed
        found = {pid for pid in alive if _kill_if_marked(pid, mark.encode())}
        if not found:
            return
        killed |= found


def _kill_if_marked(pid: int, mark: bytes) -> bool:
    """Send SIGKILL to a process if it has the mark; True if it was sent."""
    environment = _PROC / str(pid) / "environ"
    # The process may have ended, or belong to another user.
    with suppress(OSError):
        if mark not in environment.read_bytes():
            return False
        try:
            held = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except (AttributeError, OSError):
            # The kernel or the container has no such call.
            os.kill(pid, signal.SIGKILL)
            return True
        try:
            # The process may have ended before it was held, and another one have its id.
            if mark in environment.read_bytes():
                signal.pidfd_send_signal(held, signal.SIGKILL)
                return True
        finally:
            os.close(held)
    return False


def _exists(target: int) -> bool:
    """True if a process or a group exists.

    Args:
        target: the id of a process, or the negative id of a group, as for `kill`.
    """
    try:
        os.kill(target, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # We may not signal a member; on macOS this also means a zombie.
        pass
    return True


def _has_ended(group: int) -> bool:
    """True if nothing is left of a group but zombies.

    Process 1 reaps zombies late, and in many containers never.
    """
    states: set[bytes] = set()
    for entry in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the process, in parentheses, may contain anything.
            _, _, facts = entry.read_bytes().rpartition(b")")
            state, _, its_group = facts.split()[:3]
            if int(its_group) == group:
                states.add(state)
    return states == {b"Z"}
