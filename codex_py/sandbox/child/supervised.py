"""Runs a command below a subreaper that is also its supervisor: the backend `supervised`.

The supervisor answers system calls of the command.
"""

import _socket  # importing `socket` takes 5 ms
import math
import os
import select
import time

from codex_py.sandbox.child import kernel, landlock, launcher
from codex_py.sandbox.child.kernel import signals
from codex_py.sandbox.child.notifications import NotificationListener
from codex_py.sandbox.child.path_policy import PathPolicy
from codex_py.sandbox.child.subreaper import (
    LeftDescendants,
    Subreaper,
    descendants,
    kill_descendants,
)
from codex_py.sandbox.child.supervisor import Supervisor

_DESCRIPTOR_BYTES = 4
_COUNT_EVERY_S = 0.1
_COUNTING_SHARE = 0.1
"""The largest share of the time that is spent on counting processes."""


def main(words: list[str]) -> None:
    """Run the command, as `launcher.main` does. Other backends need not load this module."""
    launcher.main(words, SupervisedCommand)


class SupervisedCommand(Subreaper):
    """A command under supervision.

    If it has too many processes, threads included, it is killed with all that it started.
    """

    changes_owners = True

    def start(self) -> int:
        # Create these only now: otherwise, the launcher would hold an end too, and this process
        # would wait for a command that cannot set its filter.
        self._here, self._there = _socket.socketpair()
        # The supervisor cannot write elsewhere either. Its command, which has tighter limits, may
        # not inspect it.
        writable = [*self.confinement.writable, *self.confinement.whole]
        landlock.restrict([], [], whole=writable, hidden=[], offline=False)
        command = super().start()
        self._there.close()
        return command

    def set_filter(self) -> None:
        """Set the filter, and send the supervisor its descriptor for notifications."""
        listener = kernel.set_notifying_filter(self.confinement.filter)
        data = listener.to_bytes(_DESCRIPTOR_BYTES, "little")
        descriptor = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)
        self._there.sendmsg([b"x"], [descriptor])

    def wait(self, command: int, launcher: int) -> int | None:
        """Answer calls until the command ends or has too many processes; see `Subreaper.wait`."""
        self._ended = os.pidfd_open(command)
        self._launcher_ended = os.pidfd_open(launcher)
        space = _socket.CMSG_SPACE(_DESCRIPTOR_BYTES)
        _, received, _, _ = self._here.recvmsg(1, space)
        if received:
            _, _, descriptor = received[0]
            listener = NotificationListener(int.from_bytes(descriptor, "little"))
            self._supervise(listener)
            if self._answer_until([self._ended, self._launcher_ended]):
                return int(signals.SIGKILL)
            if not _is_ready(self._ended):
                return None
        return os.waitpid(command, 0)[1]

    def wait_for_leftovers(self, launcher: int) -> None:  # noqa: ARG002
        leftovers = LeftDescendants()
        while leftovers.may_go_on() and not _is_ready(self._launcher_ended):
            end_s = time.monotonic() + leftovers.next_look_s()
            if self._answer_until([self._launcher_ended], end_s):
                return

    def _supervise(self, listener: NotificationListener) -> None:
        self._listener = listener
        paths = PathPolicy(
            listener, self.confinement.writable, self.confinement.protected
        )
        self._supervisor = Supervisor(listener, paths)
        self._count_at_s = time.monotonic() + _COUNT_EVERY_S
        self._has_ended = False
        """True if no process with the filter is left."""

    def _answer_until(self, ends: list[int], end_s: float = math.inf) -> bool:
        """Answer calls until one of the descriptors `ends` is ready, or until `end_s`.

        Returns:
            True if all processes were killed, because there were too many.
        """
        waiting = select.poll()
        for descriptor in ends:
            waiting.register(descriptor, select.POLLIN)
        if not self._has_ended:
            waiting.register(self._listener.descriptor, select.POLLIN)
        while True:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            timeout_ms = min(_COUNT_EVERY_S, left_s) * 1000
            events = dict(waiting.poll(timeout_ms))
            if any(end in events for end in ends):
                return False
            event = events.get(self._listener.descriptor, 0)
            if event & select.POLLIN:
                self._supervisor.answer_one()
            elif event:
                waiting.unregister(self._listener.descriptor)
                self._has_ended = True
            if self._has_too_many_processes():
                kill_descendants()
                return True

    def _has_too_many_processes(self) -> bool:
        """Count the command's processes, unless they were counted just now.

        True if there are too many.
        """
        began_s = time.monotonic()
        most = self.confinement.limits.get("processes")
        if most is None or began_s < self._count_at_s:
            return False
        _, count = descendants()
        now_s = time.monotonic()
        pause_s = (now_s - began_s) / _COUNTING_SHARE
        self._count_at_s = now_s + max(_COUNT_EVERY_S, pause_s)
        return count > most


def _is_ready(descriptor: int) -> bool:
    ready, _, _ = select.select([descriptor], [], [], 0)
    return bool(ready)
