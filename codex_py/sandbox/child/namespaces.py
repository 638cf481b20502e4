"""Makes a view of the machine in which only some folders can be written, by way of namespaces.

This does the work of bubblewrap by system calls. It needs Linux 5.12 (`mount_setattr`).
https://man7.org/linux/man-pages/man7/mount_namespaces.7.html
"""

import posix
import stat

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.confinement import Confinement
from codex_py.sandbox.child.landlock import DEVICES

_NEWNS = 1 << 17
_NEWIPC = 1 << 27
_NEWUSER = 1 << 28
NEWPID = 1 << 29
_NEWNET = 1 << 30
_MS_RDONLY = 1
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_NOEXEC = 8
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18

_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_FROM_EMPTY_PATH = 0x04
_MOVE_TO_EMPTY_PATH = 0x40
_READ_ONLY = 1
_NO_SUID = 2
_NO_DEVICES = 4

_EMPTY = "/dev/empty"
"""An empty folder, which covers hidden folders. It exists only while the view is made."""
_TERMINAL = "console"
"""The name of the command's terminal; the terminals in `/dev/pts` are new ones."""
_LINKS = (
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "fd/0"),
    ("stdout", "fd/1"),
    ("stderr", "fd/2"),
)
"""The links in `/dev`, with their targets."""
_PTS = "newinstance,ptmxmode=0666,mode=620"

_RESERVED_PROCESS_IDS = 300
_PROCESS_IDS_SINCE = (6, 14)


def unshare(flags: int) -> None:
    """Leave namespaces of the machine.

    With `NEWPID`, this process keeps its process namespace: its next child becomes the first
    process of a new one. Root needs no user namespace for this, so that it can still work in other
    users' folders. Everyone else, and root without its capabilities, gets a user namespace with the
    same user id.

    Raises:
        OSError: the kernel refused.
    """
    try:
        kernel.system_call("unshare", flags)
    except PermissionError:
        user = posix.geteuid()
        group = posix.getegid()
        kernel.system_call("unshare", flags | _NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def outer_ids() -> tuple[int, int]:
    """The ids, outside of the namespace, of this process and its parent.

    Must be called before the view changes.
    """
    file = posix.open("/proc/self/stat", posix.O_RDONLY | posix.O_CLOEXEC)
    own, _, rest = posix.read(file, 4096).partition(b" ")
    posix.close(file)
    # The name, in parentheses, may contain anything.
    _, _, facts = rest.rpartition(b")")
    _state, parent, *_others = facts.split()
    return int(own), int(parent)


def limit_processes(most: int) -> None:
    """Limit the process ids of this namespace, threads included, to `most` beyond the reserved 300.

    Does nothing before Linux 6.14, where the limit would apply to the whole machine.
    """
    major, minor = posix.uname().release.split(".")[:2]
    digits = "".join(character for character in minor if character.isdigit())
    if (int(major), int(digits)) >= _PROCESS_IDS_SINCE:
        _write("/proc/sys/kernel/pid_max", str(most + _RESERVED_PROCESS_IDS))


def restrict_view(confinement: Confinement) -> None:
    """Leave the mounts and queues of the machine, and its network if the command must not use it.

    The command must not use it if it is offline or has a proxy. In the new view, only the writable
    paths are writable; protected paths in them are read-only again. Links stay links. Hidden paths
    become empty. Only devices such as /dev/null remain.

    In a new process namespace, its first process must call this.

    Raises:
        OSError: a step failed; the view must not be used.
    """
    cwd = posix.getcwd()
    _leave_namespaces(confinement)
    # Clone these before everything becomes read-only, so that they and the mounts in them keep
    # their attributes.
    roots = [(path, _clone(path)) for path in confinement.writable if path != "/"]
    devices = [(name, _clone(f"/dev/{name}")) for name in DEVICES]
    terminal = _terminal()
    if terminal is not None:
        devices.append((_TERMINAL, _clone(terminal)))
    attributes = _NO_SUID | _NO_DEVICES
    if "/" not in confinement.writable:
        attributes |= _READ_ONLY
    _set_attributes("/", attributes)
    _make_devices(devices)
    for path, tree in roots:
        _set_attributes(tree, _NO_SUID | _NO_DEVICES)
        _place(tree, path)
    if confinement.backend == "namespaces":
        # Read-only, because root owns the switches in /proc/sys, and some need no other right.
        flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        kernel.mount("proc", "/proc", "proc", flags)
    for path in confinement.protected:
        tree = _clone(path)
        _set_attributes(tree, _READ_ONLY)
        _place(tree, path)
    for path in confinement.links:
        # A link covered by itself leads to the same place, but cannot be removed or replaced.
        _place(_clone(path, posix.O_NOFOLLOW), path, posix.O_NOFOLLOW)
    _hide(confinement.hidden, confinement.opened)
    _set_attributes("/dev", _READ_ONLY, recursive=False)
    _replace_device("null")
    if terminal is not None:
        _replace_device(_TERMINAL)
    # Until now, the working directory was the folder below the mounts.
    posix.chdir(cwd)


def _leave_namespaces(confinement: Confinement) -> None:
    """Leave the mounts and queues of the machine, and its network if that is confined."""
    is_cut_off = confinement.offline or confinement.proxy
    flags = _NEWNS | _NEWIPC
    if is_cut_off:
        flags |= _NEWNET
    unshare(flags)
    if is_cut_off:
        confinement.listen()
    # Otherwise, later mounts outside would appear here without our attributes.
    kernel.mount("", "/", None, _MS_REC | _MS_PRIVATE)


def _terminal() -> str | None:
    """The path of the terminal that the command gets; None if it gets none."""
    for descriptor in range(3):
        try:
            if posix.isatty(descriptor):
                return posix.ttyname(descriptor)
        except OSError:
            # The terminal has no name here.
            continue
    return None


def _replace_device(name: str) -> None:
    """Replace open descriptors of a device of the machine by the same device in the view.

    So a terminal has a name, and the device cannot be changed outside.
    """
    try:
        flags = posix.O_RDWR | posix.O_NOCTTY | posix.O_CLOEXEC
        device = posix.open(f"/dev/{name}", flags)
    except OSError:
        # The terminal belongs to another user, who gave it to us.
        return
    number = posix.fstat(device).st_rdev
    for descriptor in range(3):
        try:
            if posix.fstat(descriptor).st_rdev == number:
                posix.dup2(device, descriptor)
        except OSError:
            # The descriptor is closed.
            continue
    posix.close(device)


def _make_devices(devices: list[tuple[str, int]]) -> None:
    """Give the view its own `/dev`.

    Commands may not open terminals and disks of the machine, which a read-only mount does not
    prevent; and programs want to make terminals.

    Args:
        devices: the name of each device, and its clone.
    """
    kernel.mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID, "mode=755")
    for name, tree in devices:
        _write(f"/dev/{name}", "")
        # The devices stay writable. This protects their modes and times, which root could change.
        _set_attributes(tree, _READ_ONLY)
        _place(tree, f"/dev/{name}")
    for name in ("pts", "shm"):
        posix.mkdir(f"/dev/{name}")
    kernel.mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, _PTS)
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
    for name, target in _LINKS:
        posix.symlink(target, f"/dev/{name}")


def _cloned(paths: list[str]) -> dict[str, int]:
    """Return a detached mount for each path that is still there."""
    trees: dict[str, int] = {}
    for path in paths:
        try:
            trees[path] = _clone(path, posix.O_NOFOLLOW)
        except FileNotFoundError:
            continue
    return trees


def _put_back(tree: int, path: str) -> None:
    """Place a detached mount, unless its path was removed after it was cloned."""
    try:
        _place(tree, path)
    except FileNotFoundError:
        posix.close(tree)


def _is_covered(path: str, hidden: list[str]) -> bool:
    """True if a hidden folder, or the view's own `/dev`, is above a path, and has no such entry."""
    unseen = ("/dev", *hidden)
    return any(path.startswith(f"{folder}/") for folder in unseen)


def _hide(hidden: list[str], opened: list[str]) -> None:
    """Cover hidden files with a device that cannot be opened, and folders with empty ones.

    Only root can list the empty ones. Opened paths below them are put back; a link stays a link,
    because what it leads to may be hidden. An opened path may have been removed meanwhile.
    """
    trees = _cloned(opened)
    posix.mkdir(_EMPTY, 0)
    outer_first = sorted((*hidden, *trees), key=lambda path: path.count("/"))
    for path in outer_first:
        if path in trees:
            _put_back(trees[path], path)
            continue
        try:
            mode = posix.stat(path).st_mode
        except FileNotFoundError:
            if not _is_covered(path, hidden):
                raise
            continue
        if not stat.S_ISDIR(mode):
            _cover(path, "/dev/null")
        else:
            inside = [each for each in trees if each.startswith(f"{path}/")]
            if inside:
                _empty_folder(path, {each: trees[each] for each in inside})
            else:
                _cover(path, _EMPTY)
    posix.rmdir(_EMPTY)


def _cover(path: str, cover: str) -> None:
    """Mount another entry on a path; a device that is a cover cannot be opened."""
    tree = _clone(cover)
    _set_attributes(tree, _READ_ONLY | _NO_DEVICES)
    _place(tree, path)


def _empty_folder(path: str, trees: dict[str, int]) -> None:
    """Mount a folder on a path that has only the entries that these trees will be mounted on."""
    kernel.mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=555")
    for inner, tree in trees.items():
        _make_entry(path, inner, like=tree)
    _set_attributes(path, _READ_ONLY, recursive=False)


def _make_entry(
    top: str,
    path: str,
    *,
    like: int,
) -> None:
    """Create an entry to mount on, and the folders between `top` and the entry.

    Args:
        like: the descriptor of the folder or the file that is mounted there.
    """
    folder = top
    *names, last = path[len(top) + 1 :].split("/")
    for name in names:
        folder = f"{folder}/{name}"
        try:
            posix.mkdir(folder, 0o111)
        except FileExistsError:
            continue
    if stat.S_ISDIR(posix.fstat(like).st_mode):
        posix.mkdir(f"{folder}/{last}", 0o111)
    else:
        _write(f"{folder}/{last}", "")


def _clone(path: str, how: int = 0) -> int:
    """Clone the mounts at a path; the copy is not mounted yet.

    Args:
        how: the flags of `open_path`.
    """
    at = kernel.open_path(path, how)
    try:
        flags = _OPEN_TREE_CLONE | posix.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
        return kernel.system_call("open_tree", at, b"", flags)
    finally:
        posix.close(at)


def _place(
    tree: int,
    path: str,
    how: int = 0,
) -> None:
    """Mount a clone on a path, and close it."""
    at = kernel.open_path(path, how)
    flags = _MOVE_FROM_EMPTY_PATH | _MOVE_TO_EMPTY_PATH
    kernel.system_call("move_mount", tree, b"", at, b"", flags)
    posix.close(at)
    posix.close(tree)


def _set_attributes(
    where: str | int, attributes: int, *, recursive: bool = True
) -> None:
    """Add attributes to the mount at a path, or to a clone that is not mounted yet.

    Args:
        recursive: also to the mounts in it.
    """
    settings = kernel.words(8, attributes, 0, 0, 0)
    flags = 0
    if recursive:
        flags |= _AT_RECURSIVE
    if isinstance(where, int):
        at = where
        path = b""
        flags |= _AT_EMPTY_PATH
    else:
        at = kernel.AT_FDCWD
        path = kernel.encoded(where)
    kernel.system_call("mount_setattr", at, path, flags, settings, len(settings))


def _write(path: str, text: str) -> None:
    """Write to a file, which is created if it is missing."""
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC
    descriptor = posix.open(path, flags, 0o666)
    try:
        posix.write(descriptor, text.encode())
    finally:
        posix.close(descriptor)
