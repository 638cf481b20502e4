"""The backend `supervised`: the subreaper of the command is its supervisor too, which answers its system calls."""

import _socket  # importing `socket` takes 5 ms
import os
import select
import time

from codex_py.sandbox.child import kernel, landlock, launcher
from codex_py.sandbox.child.kernel import signals
from codex_py.sandbox.child.notifications import NotificationListener
from codex_py.sandbox.child.path_policy import PathPolicy
from codex_py.sandbox.child.subreaper import Subreaper, descendants, kill_descendants
from codex_py.sandbox.child.supervisor import Supervisor

_DESCRIPTOR_BYTES = 4
_COUNT_EVERY_S = 0.1
_COUNTING_SHARE = 0.1
"""The part of the time that is spent on counting processes, at most."""


def main(words: list[str]) -> None:
    """As `launcher.main`, which need not load the supervisor."""
    launcher.main(words, SupervisedCommand)


class SupervisedCommand(Subreaper):
    """A command that has more processes than it may, threads included, is killed with all that it started."""

    def start(self) -> int:
        # Not before: the launcher would hold an end too, and a command that cannot set its filter would be waited for.
        self._here, self._there = _socket.socketpair()
        # The supervisor cannot write elsewhere either. Its command, which is confined further, may not look into it.
        whole = [*self.confinement.writable, *self.confinement.whole]
        landlock.restrict([], [], whole=whole, hidden=[], offline=False)
        command = super().start()
        self._there.close()
        return command

    def set_filter(self) -> None:
        """Send the supervisor the descriptor for notifications too."""
        listener = kernel.set_notifying_filter(self.confinement.filter)
        data = listener.to_bytes(_DESCRIPTOR_BYTES, "little")
        self._there.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)])

    def wait(self, command: int, launcher: int) -> int | None:
        """Answer until the command has ended or has too many processes; see `Subreaper.wait`."""
        ends = ended, _ = os.pidfd_open(command), os.pidfd_open(launcher)
        received = self._here.recvmsg(1, _socket.CMSG_SPACE(_DESCRIPTOR_BYTES))[1]
        if received and self._answer_until(
            ends, NotificationListener(int.from_bytes(received[0][2], "little"))
        ):
            return int(signals.SIGKILL)
        if received and not select.select([ended], [], [], 0)[0]:
            return None
        return os.waitpid(command, 0)[1]

    def _answer_until(self, ends: tuple[int, int], listener: NotificationListener) -> bool:
        """True if the command was killed because it had too many processes."""
        paths = PathPolicy(listener, self.confinement.writable, self.confinement.protected)
        supervisor = Supervisor(listener, paths)
        max_processes = self.confinement.limits.get("processes")
        waiting = select.poll()
        for descriptor in (*ends, listener.descriptor):
            waiting.register(descriptor, select.POLLIN)
        count_at_s = time.monotonic() + _COUNT_EVERY_S
        while not any(end in (events := dict(waiting.poll(_COUNT_EVERY_S * 1000))) for end in ends):
            if (event := events.get(listener.descriptor, 0)) & select.POLLIN:
                supervisor.answer_one()
            elif event:
                # No process with the filter is left.
                waiting.unregister(listener.descriptor)
            if max_processes is not None and (began_s := time.monotonic()) >= count_at_s:
                if descendants()[1] > max_processes:
                    kill_descendants()
                    return True
                now_s = time.monotonic()
                count_at_s = now_s + max(_COUNT_EVERY_S, (now_s - began_s) / _COUNTING_SHARE)
        return False
