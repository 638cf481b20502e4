"""A command whose subreaper is its supervisor too: it answers the system calls of the command, and of all that it starts."""

import _socket
import os
import select
import time

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.notifications import NotificationListener
from codex_py.sandbox.child.path_policy import PathPolicy
from codex_py.sandbox.child.process_count import descendants, kill_descendants
from codex_py.sandbox.child.supervisor import Supervisor

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_SIGKILL = 9
_DESCRIPTOR_BYTES = 4
_COUNT_EVERY_S = 0.1
_COUNT_PART = 0.1
"""Of the time, at most, is spent with counting."""


class Supervised:
    """For `subreaper.run_under_subreaper`.

    Args:
        command: becomes the command. Takes what sets its filter.
        writable, protected: see `PathPolicy`.
        restrict: holds the supervisor to what the command may have at most.
        max_processes: a command that has more, threads included, is killed with all that it started. None
            for any number.
    """

    def __init__(
        self,
        command: "Callable[[Callable[[bytes], None]], NoReturn]",
        *,
        writable: list[str],
        protected: list[str],
        restrict: "Callable[[], None]",
        max_processes: int | None,
    ) -> None:
        self._command = command
        self._writable = writable
        self._protected = protected
        self._restrict = restrict
        self._max_processes = max_processes
        self._here, self._there = _socket.socketpair()

    def start(self) -> int:
        """Start the command; its process id."""
        self._restrict()
        command = os.fork()
        if not command:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
            self._command(self._set_filter)
        self._there.close()
        return command

    def wait(self, command: int, launcher: int) -> int | None:
        """Answer until the command has ended, or has too many processes; its status then.

        None if the launcher ended before.
        """
        ends = ended, _ = os.pidfd_open(command), os.pidfd_open(launcher)
        received = self._here.recvmsg(1, _socket.CMSG_SPACE(_DESCRIPTOR_BYTES))[1]
        if received and self._answer_until(
            ends, NotificationListener(int.from_bytes(received[0][2], "little"))
        ):
            return _SIGKILL
        if received and not select.select([ended], [], [], 0)[0]:
            return None
        return os.waitpid(command, 0)[1]

    def _set_filter(self, program: bytes) -> None:
        listener = kernel.set_notifying_filter(program).to_bytes(_DESCRIPTOR_BYTES, "little")
        self._there.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener)])

    def _answer_until(self, ends: tuple[int, int], listener: NotificationListener) -> bool:
        """True if the command was killed because it had too many processes."""
        supervisor = Supervisor(listener, PathPolicy(listener, self._writable, self._protected))
        waiting = select.poll()
        for descriptor in (*ends, listener.descriptor):
            waiting.register(descriptor, select.POLLIN)
        count_at_s = time.monotonic() + _COUNT_EVERY_S
        while not any(end in (events := dict(waiting.poll(_COUNT_EVERY_S * 1000))) for end in ends):
            if (event := events.get(listener.descriptor, 0)) & select.POLLIN:
                supervisor.answer_one()
            elif event:
                # Nobody is left who could ask.
                waiting.unregister(listener.descriptor)
            if self._max_processes is not None and (began_s := time.monotonic()) >= count_at_s:
                if descendants()[1] > self._max_processes:
                    kill_descendants()
                    return True
                now_s = time.monotonic()
                count_at_s = now_s + max(_COUNT_EVERY_S, (now_s - began_s) / _COUNT_PART)
        return False
