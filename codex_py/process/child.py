"""Signals the process group of a program, and the processes that have left it. Tells when the
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

# Each round kills what was forked during the last one. This does not stop a fork bomb.
_MAX_KILL_ROUNDS = 10
_PROC = Path("/proc")


class Child:
    """The leader of a session and of a process group.

    The kernel does not reuse its id while it is unreaped or a member lives. So if there is a process with that id
    after it was reaped, the group has ended and the id belongs to a stranger.
    """

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        """`process`: started with `start_new_session`. `mark`: in its environment; see
        `kill_marked`."""
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
            def wait() -> None:
                self.process.wait()
                # The loop may be closed by now.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(callback)

            threading.Thread(target=wait, daemon=True).start()
            return

        def exited() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            callback()

        loop.add_reader(descriptor, exited)

    def has_members(self) -> bool:
        """True if a process of the group lives, or if its leader is not reaped."""
        if self._is_reused() or not _exists(-self.id):
            return False
        return self.process.returncode is None or not _has_ended(self.id)

    def send_signal(self, number: int) -> None:
        """Signal every member of the group, if any is left."""
        if not self._is_reused():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.id, number)

    def kill(self) -> None:
        """SIGKILL the group and all that it started, in any group."""
        self.send_signal(signal.SIGKILL)
        kill_marked(self._mark)

    def _is_reused(self) -> bool:
        return self.process.returncode is not None and _exists(self.id)


async def is_set_within(event: asyncio.Event, timeout_s: float | None) -> bool:
    """Wait until the event is set; False if it is not in time. None waits for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()


def kill_marked(mark: str) -> None:
    """SIGKILL every process with the mark in its environment. Takes some 2 ms for 100 processes.

    A process that calls `setsid`, as daemons and the jobs of an interactive shell do, leaves the group that
    we can signal. It keeps its environment, which Linux shows in `/proc/PID/environ`; on other systems only the
    group is killed. A process that also replaces its environment is not found: only the sandbox ends it.
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
    environment = _PROC / str(pid) / "environ"
    # It has ended, or belongs to another user.
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
            # The id may have belonged to another process before.
            if mark in environment.read_bytes():
                signal.pidfd_send_signal(held, signal.SIGKILL)
                return True
        finally:
            os.close(held)
    return False


def _exists(target: int) -> bool:
    """True if a process or a group exists. `target`: its id, negative for a group, as for
    `kill`."""
    try:
        os.kill(target, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # We may not signal a member; on macOS this also means a zombie.
        pass
    return True


def _has_ended(group: int) -> bool:
    """True if nothing is left of a group but zombies: process 1 reaps them late, or never, as in many containers."""
    states: set[bytes] = set()
    for entry in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the process, in parentheses, may contain anything.
            _, _, facts = entry.read_bytes().rpartition(b")")
            state, _, its_group = facts.split()[:3]
            if int(its_group) == group:
                states.add(state)
    return states == {b"Z"}
