"""seccomp notifications: system calls of other processes that wait for our answer.

The data has the layout of `struct seccomp_notif` and related structures in `linux/seccomp.h`.
"""

import errno
import os

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.system_calls import numbers_on

_ANSWER = 0xC0182101
_IS_WAITING = 0x40082102
_GIVE = 0x40182103
CONTINUE = 1
_AND_ANSWER = 2

_MAX_PATH_BYTES = 4096
_PAGE_BYTES = 4096
_STATUS_HEAD_BYTES = 512


class PendingCall:
    def __init__(self, data: bytes, name: str) -> None:
        self.id = data[:8]
        self.name = name
        self.words = kernel.integers(data[32:80])
        """The arguments, as they are in the registers."""
        self.is_taken = False
        """True if the call was answered, or a thread will answer it."""
        self._proc = f"/proc/{int.from_bytes(data[8:12], 'little')}"

    def path(self, address: int) -> str:
        """Read the text at an address. Raises an `OSError` if there is none."""
        data = b""
        while b"\0" not in data:
            if len(data) >= _MAX_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "no path")
            # Stay within the page, which may be the last one.
            at = address + len(data)
            data += self.memory(at, _PAGE_BYTES - at % _PAGE_BYTES)
        return os.fsdecode(data.partition(b"\0")[0])

    def memory(self, address: int, size: int) -> bytes:
        """Read at most `size` bytes of the caller's memory.

        Raises:
            OSError: there is no memory, or we may not read it.
        """
        try:
            data = self._read("mem", size, address)
        except OverflowError:
            data = b""
        if not data:
            raise OSError(errno.EFAULT, "no memory")
        return data

    def our_path(self, folder: int, path: str) -> str:
        """The path at which we can open the caller's path.

        A relative path starts at the folder with that descriptor.
        """
        if path.startswith("/"):
            # We would find our own process there.
            own = path.startswith("/proc/self/")
            if own:
                return self._proc + path.removeprefix("/proc/self")
            return path
        if folder == kernel.AT_FDCWD:
            base = f"{self._proc}/cwd"
        else:
            base = f"{self._proc}/fd/{folder}"
        if path:
            return f"{base}/{path}"
        return base

    def descriptor(self, number: int) -> int:
        """A copy of a descriptor of the caller. We must close it."""
        process = os.pidfd_open(int(self._status(b"Tgid:")))
        try:
            return kernel.system_call("pidfd_getfd", process, number & 0xFFFFFFFF, 0)
        finally:
            os.close(process)

    def umask(self) -> int:
        return int(self._status(b"Umask:"), 8)

    def _status(self, name: bytes) -> bytes:
        text = self._read("status", _STATUS_HEAD_BYTES)
        value = text.partition(name)[2].split(None, 1)
        if not value:
            raise OSError(errno.ESRCH, "gone")
        return value[0]

    def _read(
        self,
        name: str,
        size: int,
        start: int = 0,
    ) -> bytes:
        descriptor = os.open(f"{self._proc}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, start)
        finally:
            os.close(descriptor)


class NotificationListener:
    """Receives the notifications of a filter. Answers to processes that have ended are dropped.

    Args:
        descriptor: from `kernel.set_notifying_filter`.
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
        """Parse a call. `data`: `struct seccomp_notif`."""
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

        `flags`: 0, or `CONTINUE` to leave the call to the kernel.
        """
        words = (
            bytes(8)
            + (-error).to_bytes(4, "little", signed=True)
            + flags.to_bytes(4, "little")
        )
        try:
            kernel.system_call("ioctl", self.descriptor, _ANSWER, call.id + words)
        except OSError:
            return

    def give(
        self,
        call: PendingCall,
        file: int,
        flags: int,
    ) -> None:
        """Answer with a copy of a descriptor. `flags`: 0 or `O_CLOEXEC`.

        Raises:
            OSError: the caller cannot have more descriptors.
        """
        words = kernel.words(4, _AND_ANSWER, file, 0, flags)
        kernel.system_call("ioctl", self.descriptor, _GIVE, call.id + words)
