"""Passes stopped system calls to the process that waits for the command.

This module is light, because most commands make no such calls.
"""

import _socket  # importing `socket` takes 5 ms
import _thread
import errno
import posix

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.kernel import signals

_DESCRIPTOR_BYTES = 4


class ListenerLink:
    """Passes a filter's descriptor from the command, which is forked later, to this process."""

    def __init__(self) -> None:
        self._here, self._there = _socket.socketpair()
        """The end of this process, and that of the command."""

    def set_filter(self, notifying: bytes, other: bytes) -> None:
        """Set the notifying filter in the command, or the other one if supervisors are refused."""
        try:
            listener = kernel.set_notifying_filter(notifying)
        except OSError:
            kernel.set_filter(other)
            return
        data = listener.to_bytes(_DESCRIPTOR_BYTES, "little")
        descriptor = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)
        self._there.sendmsg([b"x"], [descriptor])

    def receive(self) -> int | None:
        """Wait for the descriptor; None if the command has set the other filter, or has ended."""
        self._there.close()
        space = _socket.CMSG_SPACE(_DESCRIPTOR_BYTES)
        _, ancillary, _, _ = self._here.recvmsg(1, space)
        self._here.close()
        if not ancillary:
            return None
        _, _, descriptor = ancillary[0]
        return int.from_bytes(descriptor, "little")

    def supervise(self) -> None:
        """Answer calls for local sockets in a thread, while this process lives."""
        listener = self.receive()
        if listener is None:
            return
        # The thread inherits the mask, and gets no signals.
        before = signals.pthread_sigmask(signals.SIG_BLOCK, signals.valid_signals())
        _thread.start_new_thread(_answer_all, (listener,))
        signals.pthread_sigmask(signals.SIG_SETMASK, before)


def received(listener: int) -> bytes | None:
    """Wait for the next call; returns a `struct seccomp_notif`. None if no more can come."""
    while True:
        data = bytearray(kernel.CALL_BYTES)
        try:
            kernel.system_call("ioctl", listener, kernel.RECEIVE_CALL, data)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                # The process was killed meanwhile, or a signal came.
                continue
            return None
        return bytes(data)


def _answer_all(listener: int) -> None:
    data = received(listener)
    if data is None:
        return
    from codex_py.sandbox.child.local_sockets import LocalSockets  # 5 ms

    sockets = LocalSockets(listener)
    while data is not None:
        sockets.answer(data)
        data = received(listener)
    posix.close(listener)
