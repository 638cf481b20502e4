"""Finds files that another process names in a system call.

Holds them open, so that they cannot be replaced.
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
    """An entry of a folder, which a call may change."""

    def __init__(self, folder: int, path: str) -> None:
        self.folder = folder
        """The descriptor of the folder."""
        self.path = path
        """The absolute path, without links except for the last name."""
        self.name = path.rpartition("/")[2]


class PathPolicy:
    """Decides which paths may be changed, and finds the path that a call names.

    Args:
        writable: folders, absolute and without links. The nearest of these and of `protected`
            decides.
        protected: paths, with everything in them. If they do not exist, they must not be created.
    """

    def __init__(
        self, listener: NotificationListener, writable: list[str], protected: list[str]
    ) -> None:
        self._listener = listener
        self._writable = frozenset(writable)
        self._protected = frozenset(protected)
        self._held: list[int] = []

    def let_go(self) -> None:
        """Close the files of the present call."""
        while self._held:
            os.close(self._held.pop())

    def entry(
        self, call: PendingCall, folder: int, address: int, *, is_folder: bool = False
    ) -> FolderEntry:
        """The entry that the call names. With `is_folder`, a slash may follow the name.

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
        path = os.readlink(f"/proc/self/fd/{opened}").rstrip("/") + "/" + name  # noqa: PTH115 - 5 ms
        self._require_changeable(path)
        return FolderEntry(opened, path)

    def linked(self, entry: FolderEntry) -> FolderEntry:
        """The target of a link. Raises the errors of `entry`."""
        path = os.path.realpath(entry.path)
        self._require_changeable(path)
        opened = kernel.open_path(path.rpartition("/")[0] or "/")
        return FolderEntry(self.hold(opened), path)

    def file(
        self,
        call: PendingCall,
        folder: int,
        address: int,
        flags: int,
    ) -> str:
        """The path at which we can open the file that the call names.

        Without an address, the file is the one that the descriptor `folder` refers to.

        Raises:
            PermissionError: its attributes may not be changed.
            OSError: it does not exist.
        """
        path = ""
        if address:
            path = call.path(address)
        if not path:
            may_be_empty = not address or flags & _EMPTY_PATH
            if not may_be_empty or signed(folder) == kernel.AT_FDCWD:
                raise FileNotFoundError(errno.ENOENT, "no path")
        if path and flags & _NO_FOLLOW:
            no_follow = os.O_NOFOLLOW
        else:
            no_follow = 0
        opened = self._open(call, folder, path, no_follow)
        own = f"/proc/self/fd/{opened}"
        real = os.readlink(own)  # noqa: PTH115
        has_name = real.startswith("/") and os.fstat(opened).st_nlink
        if has_name:
            may_change = self._is_writable(real)
        else:
            # Such as a pipe or a removed file: it belongs to the caller, who has it open. A path
            # such as /dev/fd/3 leads to one of our own descriptors instead.
            may_change = not path
        if not may_change:
            raise PermissionError(errno.EPERM, "outside")
        return own

    def hold(self, descriptor: int) -> int:
        """Let `let_go` close this descriptor too. Returns the descriptor."""
        self._held.append(descriptor)
        return descriptor

    def _open(
        self,
        call: PendingCall,
        folder: int,
        path: str,
        flags: int = 0,
    ) -> int:
        name = call.our_path(signed(folder), path)
        opened = self.hold(os.open(name, os.O_PATH | os.O_CLOEXEC | flags))
        # Without this check, the thread id could belong to another process by now.
        self._listener.require_waiting(call)
        return opened

    def _require_changeable(self, path: str) -> None:
        """Raise `LeftToKernel` unless an entry may be made, replaced or removed at the path."""
        if (
            path in self._writable
            or not self._is_writable(path)
            or any(inner.startswith(f"{path}/") for inner in self._protected)
        ):
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
    """Read a register as an `int`."""
    return ((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
