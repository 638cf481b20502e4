"""The supervisor of a command: it makes changes that Landlock could not allow without more.

Landlock grants whole folders: a command that may create files in a folder may also change its
`.git`. So Landlock grants the command less than it may do. The kernel stops it at each call that
changes an entry of a folder or an attribute of a file, and notifies the supervisor. If the change
is allowed, the supervisor makes it, with its own copies of the names and in folders that it holds
open. All other calls continue in the kernel, where Landlock refuses them; so changing a name while
the supervisor looks at it has no effect. Calls for attributes, which Landlock does not cover, never
continue in the kernel. https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html
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
            method(self, call, *(words[place] for place in places))
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
            # RuntimeError: no more threads.
            self._listener.answer(call, error=errno.EAGAIN)
        except Exception:  # noqa: BLE001
            # This is a bug of the supervisor. The calls of other processes still need their
            # answers.
            self._listener.answer(call, error=errno.EPERM)
        finally:
            self._paths.let_go()

    # Each of these methods makes a call. If it raises an `OSError`, the call fails. Paths and times
    # are addresses. `folder` is a descriptor or `AT_FDCWD`; if the path is 0, it is the file
    # itself.

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
        if kind == stat.S_IFIFO:
            # Opening waits for the other end of the pipe; meanwhile, other calls are answered.
            entry = FolderEntry(os.dup(entry.folder), entry.path)
            try:
                _thread.start_new_thread(self._open_pipe, (call, entry, flags))
            except RuntimeError:
                os.close(entry.folder)
                raise
            return
        if flags & os.O_CREAT:
            _require_harmless(mode)
            os.umask(call.umask())
        file = os.open(
            entry.name, flags | os.O_NOFOLLOW, mode & _MODE, dir_fd=entry.folder
        )
        self._listener.give(call, self._paths.hold(file), flags & os.O_CLOEXEC)

    def _open_pipe(
        self,
        call: PendingCall,
        entry: FolderEntry,
        flags: int,
    ) -> None:
        try:
            file = os.open(
                entry.name, flags & ~os.O_CREAT | os.O_NOFOLLOW, dir_fd=entry.folder
            )
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
        is_folder = bool(flags & _REMOVE_FOLDER)
        entry = self._paths.entry(call, folder, path, is_folder=is_folder)
        remove = os.rmdir if is_folder else os.unlink
        remove(entry.name, dir_fd=entry.folder)

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
        """Set times. `unit`: nanoseconds in the number after the seconds; 0 if none follows."""
        file = self._paths.file(call, folder, path, flags)
        data = None
        if times:
            size = 16 if unit else 8
            memory = call.memory(times, 2 * size)
            if len(memory) < 2 * size:
                raise OSError(errno.EFAULT, "no times")
            numbers = kernel.integers(memory)
            if unit:
                accessed, accessed_part, changed, changed_part = numbers
            else:
                accessed, changed = numbers
                accessed_part = changed_part = 0
            data = kernel.words(
                8,
                accessed,
                accessed_part * unit & _LONG,
                changed,
                changed_part * unit & _LONG,
            )
        name = os.fsencode(file)
        kernel.system_call("utimensat", kernel.AT_FDCWD, name, data, 0)


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
    """The kind of the file, as in `stat.S_IFMT`; None if it does not exist."""
    try:
        return stat.S_IFMT(os.lstat(entry.name, dir_fd=entry.folder).st_mode)
    except FileNotFoundError:
        return None


_ARGUMENTS = 6
_CONSTANTS = (
    kernel.AT_FDCWD,
    0,
    os.O_CREAT | os.O_WRONLY | os.O_TRUNC,
    _REMOVE_FOLDER,
    _NO_FOLLOW,
    1,
    1000,
)
_CWD, _NONE, _NEW, _FOLDER, _LINK, _NANO, _MICRO = range(
    _ARGUMENTS, _ARGUMENTS + len(_CONSTANTS)
)
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
"""The method for each call, and the arguments of the call that it gets. Values from `_CWD` on are
constants that replace missing arguments."""
