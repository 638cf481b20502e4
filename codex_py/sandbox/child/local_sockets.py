"""Lets a command connect only to the local sockets that it made itself.

A local socket is found by its path. No namespace and no read-only mount keeps a command from the
sockets of the machine, and a seccomp filter cannot read a path. So the kernel stops a command when
it gives a socket a name, and when it connects a socket. The process that waits for the command does
both for it, with its own copy of the address, and with the very file that it has checked: changing
either meanwhile has no effect. TCP and UDP are handled in the same way, because a filter cannot
tell the families apart. https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html
"""

import _socket  # importing `socket` takes 5 ms
import _thread
import errno
import os

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.notifications import NotificationListener, PendingCall

_MAX_ADDRESS_BYTES = 128
_FAMILY_BYTES = 2
_GET_FLAGS = 3
_FILE_OF_SOCKET = 0x89E0
_MAX_THREADS = 64
"""The most connections that wait at once, such as for a busy server."""
_MAX_FILES = 512
"""The most sockets of a command that are remembered."""
_MANY_FILES = 64
"""From this number on, those that were removed are forgotten."""


class LocalSockets:
    """Answers the calls of a command and of all that it starts, in their view of the file system.

    Args:
        listener: the descriptor that `kernel.set_notifying_filter` returned.
    """

    def __init__(self, listener: int) -> None:
        self._listener = NotificationListener(listener)
        self._files: dict[tuple[int, int], int] = {}
        """The files of the sockets that the command has made, by identity. They are held open, so
        that no other file gets their identity."""
        self._threads = 0

    def answer(self, data: bytes) -> None:
        """Answer a call. On any problem, that call fails.

        Args:
            data: a notification, from `notified.received`.
        """
        call = self._listener.call(data)
        descriptor, address_at, length, *_ = call.words
        try:
            address = call.memory(address_at, _checked_length(length))
            given = call.descriptor(descriptor)
            if call.name == "bind":
                self._bind(call, given, address)
                self._listener.answer(call)
            else:
                self._connect(call, given, address)
        except OSError as error:
            self._listener.answer(call, error=error.errno or errno.EPERM)
        except Exception:  # noqa: BLE001
            # The address is impossible, or this is a bug. Other processes still need their answers.
            self._listener.answer(call, error=errno.EPERM)

    def _bind(
        self,
        call: PendingCall,
        given: int,
        address: bytes,
    ) -> None:
        """Give the command's socket `given` a name, and remember its file. Closes `given`."""
        has_path = bool(_path(address))
        try:
            if has_path:
                self._forget_removed()
                os.umask(call.umask())
                # The address is not changed: programs ask for it, and look for the socket there.
                os.chdir(call.our_path(kernel.AT_FDCWD, ""))
            self._listener.require_waiting(call)
            _call("bind", given, address)
            if has_path:
                # Do not use the path: another file may be there by now.
                file = kernel.system_call("ioctl", given, _FILE_OF_SOCKET, 0)
                self._files[_identity(file)] = file
        finally:
            os.close(given)

    def _forget_removed(self) -> None:
        """Make room for one more file.

        Raises:
            OSError: the command has too many sockets.
        """
        if len(self._files) < _MANY_FILES:
            return
        for identity, file in list(self._files.items()):
            if not os.fstat(file).st_nlink:
                os.close(self._files.pop(identity))
        if len(self._files) >= _MAX_FILES:
            raise OSError(errno.ENOSPC, "too many sockets")

    def _connect(
        self,
        call: PendingCall,
        given: int,
        address: bytes,
    ) -> None:
        """Connect the command's socket `given`, and answer the call. Closes `given`."""
        held = [given]
        """The descriptors to close."""
        try:
            path = _path(address)
            if path:
                our_path = call.our_path(kernel.AT_FDCWD, path)
                file = os.open(our_path, os.O_PATH | os.O_CLOEXEC)
                held.append(file)
                if _identity(file) not in self._files:
                    raise OSError(errno.EPERM, "not a socket of the command")
                address = _address(f"/proc/self/fd/{file}")
            # Without this check, the thread id could belong to another process by now.
            self._listener.require_waiting(call)
            flags = kernel.system_call("fcntl", given, _GET_FLAGS, 0)
            if flags & os.O_NONBLOCK:
                self._finish(call, given, address)
            else:
                self._finish_in_thread(call, held, address)
                held = []
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _finish_in_thread(
        self, call: PendingCall, held: list[int], address: bytes
    ) -> None:
        """Connect the first socket of `held` while other calls are answered.

        The thread closes the descriptors in `held`.

        Raises:
            OSError: there are too many threads; nothing is closed then.
        """
        if self._threads >= _MAX_THREADS:
            raise OSError(errno.EAGAIN, "too many calls that wait")

        def finish() -> None:
            try:
                self._finish(call, held[0], address)
            finally:
                self._threads -= 1
                for descriptor in held:
                    os.close(descriptor)

        self._threads += 1
        try:
            _thread.start_new_thread(finish, ())
        except RuntimeError:
            self._threads -= 1
            raise OSError(errno.EAGAIN, "no more threads") from None

    def _finish(
        self,
        call: PendingCall,
        given: int,
        address: bytes,
    ) -> None:
        error = 0
        try:
            _call("connect", given, address)
        except OSError as problem:
            error = problem.errno or errno.EPERM
        self._listener.answer(call, error=error)


def _checked_length(word: int) -> int:
    """Read a register as the length of an address. Raises an `OSError` if it is impossible."""
    length = word & 0xFFFFFFFF
    if not _FAMILY_BYTES <= length <= _MAX_ADDRESS_BYTES:
        raise OSError(errno.EINVAL, "no address")
    return length


def _path(address: bytes) -> str:
    """The path of a local socket; empty for an abstract name, no name, and other families."""
    family = int.from_bytes(address[:_FAMILY_BYTES], "little")
    if family != _socket.AF_UNIX:
        return ""
    name, _, _ = address[_FAMILY_BYTES:].partition(b"\0")
    return os.fsdecode(name)


def _address(path: str) -> bytes:
    """The address of the local socket at a path."""
    family = _socket.AF_UNIX.to_bytes(_FAMILY_BYTES, "little")
    return family + os.fsencode(path) + b"\0"


def _identity(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def _call(
    name: str,
    descriptor: int,
    address: bytes,
) -> None:
    kernel.system_call(name, descriptor, address, len(address))
