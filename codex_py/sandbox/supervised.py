"""A command whose keeper is its supervisor too: it answers the system calls of the command, and of all that it starts."""

import _socket
import os
import select

from codex_py.sandbox import kernel
from codex_py.sandbox.calls import Asked
from codex_py.sandbox.places import Places
from codex_py.sandbox.process_count import ProcessCount
from codex_py.sandbox.supervisor import Supervisor

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_SIGKILL = 9
_DESCRIPTOR_BYTES = 4


class Supervised:
    """For `keeper.run_kept`.

    Args:
        command: becomes the command. Takes what sets its filter.
        writable, protected: see `Places`.
        restrict: holds the supervisor to what the command may have at most.
        max_processes: see `ProcessCount`; None for any number.
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
        self._count = None if max_processes is None else ProcessCount(max_processes)
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
        """Answer until the command has ended, and return its status; None if the launcher ended before."""
        ends = ended, _ = os.pidfd_open(command), os.pidfd_open(launcher)
        received = self._here.recvmsg(1, _socket.CMSG_SPACE(_DESCRIPTOR_BYTES))[1]
        if received:
            self._answer_until(ends, Asked(int.from_bytes(received[0][2], "little")))
        if received and not select.select([ended], [], [], 0)[0]:
            return None
        return os.waitpid(command, 0)[1]

    def _set_filter(self, program: bytes) -> None:
        asked = kernel.set_filter_that_asks(program).to_bytes(_DESCRIPTOR_BYTES, "little")
        self._there.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, asked)])

    def _answer_until(self, ends: tuple[int, int], asked: Asked) -> None:
        supervisor = Supervisor(asked, Places(asked, self._writable, self._protected), self._count)
        waiting = select.poll()
        for descriptor in (*ends, asked.descriptor):
            waiting.register(descriptor, select.POLLIN)
        while not any(end in (events := dict(waiting.poll())) for end in ends):
            if events[asked.descriptor] & select.POLLIN:
                supervisor.answer_one()
            else:
                # Nobody is left who could ask.
                waiting.unregister(asked.descriptor)
