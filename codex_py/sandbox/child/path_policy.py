"""Finds the files that another process names in a system call, and says which may be changed.

It holds the files open, so that they cannot be replaced.
"""

import errno
import os

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.notifications import NotificationListener, PendingCall

_NO_FOLLOW = 0x100
_EMPTY_PATH = 0x1000


class LeftToKernel(Exception):
    """Raised to leave the call to the kernel, where Landlock refuses it."""


class FolderEntry:
    """An entry of a folder that a call may change."""

    def __init__(self, folder: int, path: str) -> None:
        self.folder = folder
        """The descriptor of the folder."""
        self.path = path
        """The absolute path, without links except for the last name."""
        self.name = path.rpartition("/")[2]


class PathPolicy:
    """Decides which paths may be changed, and finds the path that a call names.

    For each path, the nearest of the writable and the protected paths around it decides. All of
    them are absolute and without links.

    Args:
        writable: folders.
        protected: files and folders. Those that do not exist must not be created.
    """

    def __init__(
        self, listener: NotificationListener, writable: list[str], protected: list[str]
    ) -> None:
        self._listener = listener
        self._writable = frozenset(writable)
        self._protected = frozenset(protected)
        self._held: list[int] = []
        """The open descriptors of the current call."""

    def let_go(self) -> None:
        """Close the files of the current call."""
        while self._held:
            os.close(self._held.pop())

    def entry(
        self, call: PendingCall, folder: int, address: int, *, is_folder: bool = False
    ) -> FolderEntry:
        """Find the entry that the call names.

        Args:
            folder: the caller's descriptor of the folder where a relative path starts.
            address: the address of the path.
            is_folder: the entry may be a folder, so a slash may follow its name.

        Raises:
            LeftToKernel: the entry may not be changed.
            OSError: its folder does not exist.
        """
        path = call.path(address)
        if is_folder:
            path = path.rstrip("/")
        head, slash, name = path.rpartition("/")
        if name in {"", ".", ".."}:
            raise LeftToKernel
        opened = self._open(call, folder, head or slash)
        real = os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115 - 5 ms
        path = real.rstrip("/") + "/" + name
        self._require_changeable(path)
        return FolderEntry(opened, path)

    def linked(self, entry: FolderEntry) -> FolderEntry:
        """Find the target of a link. Raises as `entry`."""
        path = os.path.realpath(entry.path)
        self._require_changeable(path)
        parent, _, _ = path.rpartition("/")
        opened = kernel.open_path(parent or "/")
        return FolderEntry(self.hold(opened), path)

    def file(
        self,
        call: PendingCall,
        folder: int,
        address: int,
        flags: int,
    ) -> str:
        """Find the file that the call names, to change its attributes.

        Args:
            folder: the caller's descriptor of the folder where a relative path starts. Without an
                address, it is the descriptor of the file itself.
            address: the address of the path, or 0.
            flags: those of the call, for links and empty paths.

        Returns:
            The path at which we can open the file until `let_go`.

        Raises:
            PermissionError: the attributes of the file may not be changed.
            OSError: the file does not exist.
        """
        path = ""
        if address:
            path = call.path(address)
        if not path:
            may_be_empty = not address or flags & _EMPTY_PATH
            if not may_be_empty or signed(folder) == kernel.AT_FDCWD:
                raise FileNotFoundError(errno.ENOENT, "no path")
        no_follow = 0
        if path and flags & _NO_FOLLOW:
            no_follow = os.O_NOFOLLOW
        opened = self._open(call, folder, path, no_follow)
        own = f"/proc/self/fd/{opened}"
        real = os.readlink(own)  # noqa: PTH115
        has_name = real.startswith("/") and os.fstat(opened).st_nlink > 0
        if has_name:
            may_change = self._is_writable(real)
        else:
            # A file without a name, such as a pipe or a removed file, belongs to the caller, who
            # has it open. But a path such as /dev/fd/3 leads to one of our own descriptors.
            may_change = not path
        if not may_change:
            raise PermissionError(errno.EPERM, "outside")
        return own

    def hold(self, descriptor: int) -> int:
        """Return the descriptor, which `let_go` will close."""
        self._held.append(descriptor)
        return descriptor

    def _open(
        self,
        call: PendingCall,
        folder: int,
        path: str,
        flags: int = 0,
    ) -> int:
        """Open a file of the caller's as a place, until `let_go`."""
        name = call.our_path(signed(folder), path)
        opened = self.hold(os.open(name, os.O_PATH | os.O_CLOEXEC | flags))
        # Without this check, the thread id could belong to another process by now.
        self._listener.require_waiting(call)
        return opened

    def _require_changeable(self, path: str) -> None:
        """Raise `LeftToKernel` unless an entry may be made, replaced or removed at the path."""
        # The writable folders themselves must stay.
        if path in self._writable or not self._is_writable(path):
            raise LeftToKernel
        if any(inner.startswith(f"{path}/") for inner in self._protected):
            raise LeftToKernel

    def _is_writable(self, path: str) -> bool:
        while True:
            if path in self._protected:
                return False
            if path in self._writable:
                return True
            if path == "/":
                return False
            path = path.rpartition("/")[0] or "/"


def signed(word: int) -> int:
    """Read a register as a number of 32 bits with a sign."""
    value = word & 0xFFFFFFFF
    if value >= 0x80000000:
        return value - 0x100000000
    return value
