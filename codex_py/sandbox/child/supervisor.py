"""Makes the changes for a command that Landlock cannot allow without allowing too much.

Landlock grants whole folders: a command that may create files in a folder may also change its
`.git`. So Landlock grants the command less than it may do. The kernel stops the command at each
call that changes an entry of a folder or an attribute of a file, and notifies the supervisor. If
the change is allowed, the supervisor makes it, with its own copies of the names and in folders that
it holds open. All other calls continue in the kernel, where Landlock refuses them; so changing a
name while the supervisor looks at it has no effect. Calls for attributes, which Landlock does not
cover, never continue in the kernel.
https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html
"""

import _thread
import errno
import os
import stat

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.notifications import (
    CONTINUE,
    NotificationListener,
    PendingCall,
)
from codex_py.sandbox.child.path_policy import FolderEntry, LeftToKernel, PathPolicy

_REMOVE_FOLDER = 0x200
_NO_FOLLOW = 0x100
_MAX_RENAME_FLAG = 2
_NODES = (0, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK)
"""The kinds of files that `mknod` may make; 0 means a regular one."""
_SET_USER = 0o4000
_MODE = 0o7777
_KIND_AND_MODE = 0xFFFF
_WORD = 0x7FFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF


class Supervisor:
    """Answers the calls of a command and of all processes that it starts."""

    def __init__(self, listener: NotificationListener, paths: PathPolicy) -> None:
        self._listener = listener
        self._paths = paths

    def answer_one(self) -> None:
        """Wait for the next call, and answer it. If anything goes wrong, that call fails."""
        call = self._listener.next()
        if call is None:
            return
        try:
            method, places = CALLS[call.name]
            words = (*call.words, *_CONSTANTS)
            arguments = [words[place] for place in places]
            method(self, call, *arguments)
            if not call.is_taken:
                self._listener.answer(call)
        except LeftToKernel:
            self._listener.answer(call, flags=CONTINUE)
        except OSError as error:
            self._listener.answer(call, error=error.errno or errno.EPERM)
        except (OverflowError, ValueError):
            # The call has an argument that no such call can have.
            self._listener.answer(call, error=errno.EINVAL)
        except (MemoryError, RuntimeError):
            # A `RuntimeError` means that no more threads can be started.
            self._listener.answer(call, error=errno.EAGAIN)
        except Exception:  # noqa: BLE001
            # This is a bug of the supervisor. The calls of other processes still need their
            # answers.
            self._listener.answer(call, error=errno.EPERM)
        finally:
            self._paths.let_go()

    # Each of these methods makes one kind of call. If it raises an `OSError`, the call fails. Paths
    # and times are addresses in the caller's memory. `folder` is a descriptor of the caller's, or
    # `AT_FDCWD`; if the path is 0, it is the descriptor of the file itself.

    def open(
        self, call: PendingCall, folder: int, path: int, flags: int, mode: int
    ) -> None:
        flags &= _WORD
        # `O_DIRECTORY` is part of `O_TMPFILE`, which creates a file without a name.
        if flags & (os.O_PATH | os.O_DIRECTORY):
            raise LeftToKernel
        entry = self._paths.entry(call, folder, path)
        kind = _kind(entry)
        if kind == stat.S_IFLNK and not flags & (os.O_NOFOLLOW | os.O_EXCL):
            entry = self._paths.linked(entry)
            kind = _kind(entry)
        if kind not in {None, stat.S_IFREG, stat.S_IFIFO}:
            raise LeftToKernel
        call.is_taken = True
        flags |= os.O_NOFOLLOW
        if kind == stat.S_IFIFO:
            self._open_pipe_in_thread(call, entry, flags)
            return
        if flags & os.O_CREAT:
            _require_harmless(mode)
            os.umask(call.umask())
        file = os.open(entry.name, flags, mode & _MODE, dir_fd=entry.folder)
        self._listener.give(call, self._paths.hold(file), flags & os.O_CLOEXEC)

    def _open_pipe_in_thread(
        self, call: PendingCall, entry: FolderEntry, flags: int
    ) -> None:
        """Open a named pipe, which waits for its other end, while other calls are answered."""
        # `let_go` closes the folder of the entry.
        entry = FolderEntry(os.dup(entry.folder), entry.path)
        try:
            _thread.start_new_thread(self._open_pipe, (call, entry, flags))
        except RuntimeError:
            os.close(entry.folder)
            raise

    def _open_pipe(
        self,
        call: PendingCall,
        entry: FolderEntry,
        flags: int,
    ) -> None:
        """Open a named pipe and answer the call. Closes the folder of the entry."""
        try:
            file = os.open(entry.name, flags & ~os.O_CREAT, dir_fd=entry.folder)
            try:
                self._listener.give(call, file, flags & os.O_CLOEXEC)
            finally:
                os.close(file)
        except OSError as error:
            self._listener.answer(call, error=error.errno or errno.EPERM)
        finally:
            os.close(entry.folder)

    def make_folder(
        self,
        call: PendingCall,
        folder: int,
        path: int,
        mode: int,
    ) -> None:
        entry = self._paths.entry(call, folder, path, is_folder=True)
        os.umask(call.umask())
        os.mkdir(entry.name, mode & _MODE, dir_fd=entry.folder)

    def make_node(
        self,
        call: PendingCall,
        folder: int,
        path: int,
        mode: int,
    ) -> None:
        entry = self._paths.entry(call, folder, path)
        if stat.S_IFMT(mode & _WORD) not in _NODES:
            raise LeftToKernel
        _require_harmless(mode)
        os.umask(call.umask())
        os.mknod(entry.name, mode & _KIND_AND_MODE, dir_fd=entry.folder)

    def make_link(
        self,
        call: PendingCall,
        target: int,
        folder: int,
        path: int,
    ) -> None:
        entry = self._paths.entry(call, folder, path)
        os.symlink(call.path(target), entry.name, dir_fd=entry.folder)

    def remove(
        self,
        call: PendingCall,
        folder: int,
        path: int,
        flags: int,
    ) -> None:
        is_folder = flags & _REMOVE_FOLDER != 0
        entry = self._paths.entry(call, folder, path, is_folder=is_folder)
        if is_folder:
            os.rmdir(entry.name, dir_fd=entry.folder)
        else:
            os.unlink(entry.name, dir_fd=entry.folder)

    def rename(
        self,
        call: PendingCall,
        old_folder: int,
        old: int,
        new_folder: int,
        new: int,
        flags: int,
    ) -> None:
        flags &= _WORD
        before = self._paths.entry(call, old_folder, old, is_folder=True)
        after = self._paths.entry(call, new_folder, new, is_folder=True)
        if flags > _MAX_RENAME_FLAG:
            raise LeftToKernel
        old_name = os.fsencode(before.name)
        new_name = os.fsencode(after.name)
        kernel.system_call(
            "renameat2", before.folder, old_name, after.folder, new_name, flags
        )

    def link(
        self,
        call: PendingCall,
        old_folder: int,
        old: int,
        new_folder: int,
        new: int,
        flags: int,
    ) -> None:
        # The file must already be changeable under its other name.
        before = self._paths.entry(call, old_folder, old)
        after = self._paths.entry(call, new_folder, new)
        if flags & _WORD:
            raise LeftToKernel
        folders = {"src_dir_fd": before.folder, "dst_dir_fd": after.folder}
        os.link(before.name, after.name, **folders, follow_symlinks=False)

    def change_mode(
        self, call: PendingCall, folder: int, path: int, mode: int, flags: int
    ) -> None:
        _require_harmless(mode)
        file = self._paths.file(call, folder, path, flags)
        os.chmod(file, mode & _MODE)  # noqa: PTH101 - 5 ms

    def change_owner(
        self,
        call: PendingCall,
        folder: int,
        path: int,
        user: int,
        group: int,
        flags: int,
    ) -> None:
        file = self._paths.file(call, folder, path, flags)
        os.chown(file, _id(user), _id(group))

    def set_times(
        self,
        call: PendingCall,
        folder: int,
        path: int,
        times: int,
        flags: int,
        unit: int,
    ) -> None:
        """Set the times of access and of change; without times, to now.

        Args:
            unit: after the seconds of each time, a number follows that counts so many nanoseconds;
                0 if none follows.
        """
        file = self._paths.file(call, folder, path, flags)
        data = None
        if times:
            data = _times(call, times, unit)
        name = os.fsencode(file)
        kernel.system_call("utimensat", kernel.AT_FDCWD, name, data, 0)


def _times(call: PendingCall, address: int, unit: int) -> bytes:
    """Read two times of the caller's; returns them as for `utimensat`, in nanoseconds.

    Args:
        unit: see `Supervisor.set_times`.
    """
    size = 16
    if unit:
        size = 32
    memory = call.memory(address, size)
    if len(memory) < size:
        raise OSError(errno.EFAULT, "no times")
    numbers = kernel.integers(memory)
    if not unit:
        accessed, changed = numbers
        return kernel.words(8, accessed, 0, changed, 0)
    accessed, accessed_part, changed, changed_part = numbers
    return kernel.words(
        8,
        accessed,
        accessed_part * unit & _LONG,
        changed,
        changed_part * unit & _LONG,
    )


def _require_harmless(mode: int) -> None:
    """Reject a mode that makes a set-user-id program of root's; see `filter_program`."""
    if mode & _SET_USER and os.geteuid() == 0:
        raise OSError(errno.EPERM, "not as root")


def _id(word: int) -> int:
    """Read a register as the id of a user or a group; -1 means no change."""
    word &= 0xFFFFFFFF
    if word == 0xFFFFFFFF:
        return -1
    return word


def _kind(entry: FolderEntry) -> int | None:
    """The kind of an entry, as from `stat.S_IFMT`; None if it does not exist."""
    try:
        return stat.S_IFMT(os.lstat(entry.name, dir_fd=entry.folder).st_mode)
    except FileNotFoundError:
        return None


# The methods above get all arguments of the most general call of their kind. Where a call has fewer
# arguments, constants replace them: a place up to 5 is the index of an argument, and those from
# `_CWD` on are the indexes of `_CONSTANTS` behind the six arguments.
_CONSTANTS = (
    kernel.AT_FDCWD,
    0,
    os.O_CREAT | os.O_WRONLY | os.O_TRUNC,
    _REMOVE_FOLDER,
    _NO_FOLLOW,
    1,
    1000,
)
_CWD, _NONE, _NEW, _FOLDER, _LINK, _NANO, _MICRO = range(6, 13)
CALLS = {
    "open": (Supervisor.open, (_CWD, 0, 1, 2)),
    "openat": (Supervisor.open, (0, 1, 2, 3)),
    "creat": (Supervisor.open, (_CWD, 0, _NEW, 1)),
    "mkdir": (Supervisor.make_folder, (_CWD, 0, 1)),
    "mkdirat": (Supervisor.make_folder, (0, 1, 2)),
    "mknod": (Supervisor.make_node, (_CWD, 0, 1)),
    "mknodat": (Supervisor.make_node, (0, 1, 2)),
    "symlink": (Supervisor.make_link, (0, _CWD, 1)),
    "symlinkat": (Supervisor.make_link, (0, 1, 2)),
    "unlink": (Supervisor.remove, (_CWD, 0, _NONE)),
    "rmdir": (Supervisor.remove, (_CWD, 0, _FOLDER)),
    "unlinkat": (Supervisor.remove, (0, 1, 2)),
    "rename": (Supervisor.rename, (_CWD, 0, _CWD, 1, _NONE)),
    "renameat": (Supervisor.rename, (0, 1, 2, 3, _NONE)),
    "renameat2": (Supervisor.rename, (0, 1, 2, 3, 4)),
    "link": (Supervisor.link, (_CWD, 0, _CWD, 1, _NONE)),
    "linkat": (Supervisor.link, (0, 1, 2, 3, 4)),
    "chmod": (Supervisor.change_mode, (_CWD, 0, 1, _NONE)),
    "fchmod": (Supervisor.change_mode, (0, _NONE, 1, _NONE)),
    "fchmodat": (Supervisor.change_mode, (0, 1, 2, _NONE)),
    "fchmodat2": (Supervisor.change_mode, (0, 1, 2, 3)),
    "chown": (Supervisor.change_owner, (_CWD, 0, 1, 2, _NONE)),
    "lchown": (Supervisor.change_owner, (_CWD, 0, 1, 2, _LINK)),
    "fchown": (Supervisor.change_owner, (0, _NONE, 1, 2, _NONE)),
    "fchownat": (Supervisor.change_owner, (0, 1, 2, 3, 4)),
    "utime": (Supervisor.set_times, (_CWD, 0, 1, _NONE, _NONE)),
    "utimes": (Supervisor.set_times, (_CWD, 0, 1, _NONE, _MICRO)),
    "futimesat": (Supervisor.set_times, (0, 1, 2, _NONE, _MICRO)),
    "utimensat": (Supervisor.set_times, (0, 1, 2, 3, _NANO)),
}
"""The method for each call, and the places of its arguments."""
