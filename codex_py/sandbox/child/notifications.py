"""Reads and answers seccomp notifications: system calls of other processes that wait for us.

The data has the layout of `struct seccomp_notif` and related structures in `linux/seccomp.h`.
"""

import errno
import os

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.system_calls import numbers_on

_ANSWER = 0xC0182101
_IS_WAITING = 0x40082102
_GIVE = 0x40182103
"""Like the two above, a request of `ioctl`."""
CONTINUE = 1
"""The flag of an answer that leaves the call to the kernel."""
_AND_ANSWER = 2
"""The flag that makes `_GIVE` answer the call, too."""

_MAX_PATH_BYTES = 4096
_PAGE_BYTES = 4096
_STATUS_HEAD_BYTES = 512
"""The first bytes of `/proc/PID/status`, which hold the fields that are read here."""


class PendingCall:
    """A system call that waits for our answer.

    Args:
        data: a `struct seccomp_notif`.
        name: the name of the call; empty if it is not known here.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.id = data[:8]
        self.name = name
        self.words = kernel.integers(data[32:80])
        """The arguments, as they are in the registers."""
        self.is_taken = False
        """True if the call was answered, or a thread will answer it."""
        self._proc = f"/proc/{int.from_bytes(data[8:12], 'little')}"

    def path(self, address: int) -> str:
        """Read a path, which ends with a NUL, at an address. Raises as `memory`."""
        data = b""
        while b"\0" not in data:
            if len(data) >= _MAX_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "no path")
            # Stay within the page, which may be the last one.
            at = address + len(data)
            data += self.memory(at, _PAGE_BYTES - at % _PAGE_BYTES)
        return os.fsdecode(data.partition(b"\0")[0])

    def memory(self, address: int, size: int) -> bytes:
        """Read up to `size` bytes of the caller's memory, at least one.

        Raises:
            OSError: there is no memory at the address, or we may not read it.
        """
        try:
            data = self._read("mem", size, address)
        except OverflowError:
            # Python takes no offset of more than 63 bits.
            data = b""
        if not data:
            raise OSError(errno.EFAULT, "no memory")
        return data

    def our_path(self, folder: int, path: str) -> str:
        """The path at which we can open a path of the caller's.

        Args:
            folder: the caller's descriptor of the folder where a relative path starts, or
                `AT_FDCWD`.
            path: if empty, the folder itself.
        """
        if path.startswith("/proc/self/"):
            # We would find our own process there.
            return self._proc + path.removeprefix("/proc/self")
        if path.startswith("/"):
            return path
        if folder == kernel.AT_FDCWD:
            base = f"{self._proc}/cwd"
        else:
            base = f"{self._proc}/fd/{folder}"
        if path:
            return f"{base}/{path}"
        return base

    def descriptor(self, number: int) -> int:
        """Get a copy of a descriptor of the caller, which we must close.

        Raises:
            OSError: there is no such descriptor, or we may not copy it.
        """
        process = os.pidfd_open(int(self._status(b"Tgid:")))
        try:
            return kernel.system_call("pidfd_getfd", process, number & 0xFFFFFFFF, 0)
        finally:
            os.close(process)

    def umask(self) -> int:
        """The mode bits that the caller does not give to new files."""
        return int(self._status(b"Umask:"), 8)

    def _status(self, name: bytes) -> bytes:
        """The first word of a field of the caller's status."""
        text = self._read("status", _STATUS_HEAD_BYTES)
        _, _, rest = text.partition(name)
        words = rest.split(None, 1)
        if not words:
            raise OSError(errno.ESRCH, "gone")
        return words[0]

    def _read(
        self,
        name: str,
        size: int,
        start: int = 0,
    ) -> bytes:
        """Read from a file in the caller's folder in `/proc`."""
        descriptor = os.open(f"{self._proc}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, start)
        finally:
            os.close(descriptor)


class NotificationListener:
    """Receives the notifications of a filter, and answers them.

    Answers to processes that have ended are dropped.

    Args:
        descriptor: the descriptor that `kernel.set_notifying_filter` returned.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        numbers = numbers_on(os.uname().machine)
        self._names = {number: name for name, number in numbers.items()}

    def next(self) -> PendingCall | None:
        """Wait for a call; None if its thread was killed meanwhile."""
        data = bytearray(kernel.CALL_BYTES)
        try:
            kernel.system_call("ioctl", self.descriptor, kernel.RECEIVE_CALL, data)
        except OSError:
            return None
        return self.call(bytes(data))

    def call(self, data: bytes) -> PendingCall:
        """Parse a call from a `struct seccomp_notif`."""
        number = int.from_bytes(data[16:20], "little")
        return PendingCall(data, self._names.get(number, ""))

    def require_waiting(self, call: PendingCall) -> None:
        """Raise an `OSError` unless the caller still waits for the answer."""
        kernel.system_call("ioctl", self.descriptor, _IS_WAITING, call.id)

    def answer(
        self,
        call: PendingCall,
        *,
        error: int = 0,
        flags: int = 0,
    ) -> None:
        """Let the call succeed, or fail with an error number.

        Args:
            flags: 0, or `CONTINUE` to leave the call to the kernel.
        """
        result = bytes(8)
        error_bytes = (-error).to_bytes(4, "little", signed=True)
        answer = call.id + result + error_bytes + flags.to_bytes(4, "little")
        try:
            kernel.system_call("ioctl", self.descriptor, _ANSWER, answer)
        except OSError:
            return

    def give(
        self,
        call: PendingCall,
        file: int,
        flags: int,
    ) -> None:
        """Answer with a copy of the descriptor `file`, which stays open here.

        Args:
            flags: those of the copy: 0 or `O_CLOEXEC`.

        Raises:
            OSError: the caller cannot have more descriptors.
        """
        any_number = 0
        # `struct seccomp_notif_addfd`: the id, and four integers of 4 bytes.
        integers = kernel.words(4, _AND_ANSWER, file, any_number, flags)
        kernel.system_call("ioctl", self.descriptor, _GIVE, call.id + integers)
