"""Makes the system calls of Linux for which Python has no functions, and lends the signals.

A launcher starts for every command, so this module must load fast. Private parts of the standard
library replace public modules that take longer to import: `_ctypes` for `ctypes` (saves 2 of 3 ms)
and `_signal` for `signal` (saves 2 ms).
"""

import errno
import posix
import sys

from codex_py.sandbox.child.system_calls import numbers_on

# With `import`, these would have the types of the public modules, or none.
_ctypes = __import__("_ctypes")
signals = __import__("_signal")
"""The functions and numbers of `signal`, without its enumerations."""

_NUMBERS = numbers_on(posix.uname().machine)


class _Long(_ctypes._SimpleCData):
    _type_ = "l"


class _Char(_ctypes._SimpleCData):
    _type_ = "c"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_own_symbols = _ctypes.dlopen(None, posix.RTLD_NOW)
_system_call = _Function(_ctypes.dlsym(_own_symbols, "syscall"))

leave = posix._exit  # pyright: ignore[reportPrivateUsage] - a public name of `os`
"""End this process at once, with an exit code."""

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_SET_MODE_FILTER = 1
CALL_BYTES = 80
"""The size of `struct seccomp_notif`, a notification."""
RECEIVE_CALL = 0xC0502100
"""The command of `ioctl` that receives a notification from a notifying filter."""
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE = 1 << 5

_AF_INET = 2
_SOCK_DGRAM = 2
_SET_FLAGS = 0x8914
_UP = 1
_NAME_BYTES = 16
_REQUEST_BYTES = 40

AT_FDCWD = -100
"""The working directory, in place of a folder's descriptor."""
_O_PATH = 0o10000000
_RESOLVE_NO_SYMLINKS = 0x04

_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522
CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
CAP_NET_ADMIN = 12

RLIMIT_DATA = 2
RLIMIT_NPROC = 6
RLIMIT_NOFILE = 7


def system_call(name: str, *arguments: int | bytes | bytearray | None) -> int:
    """Make a system call, and return its result. The kernel may write to a `bytearray`.

    Raises:
        OSError: the kernel refused, or this machine has no such call.
    """
    if name not in _NUMBERS:
        raise OSError(errno.ENOSYS, posix.strerror(errno.ENOSYS))
    passed = [_passed(argument) for argument in arguments]
    result = _system_call(_Long(_NUMBERS[name]), *passed)
    if result < 0:
        error = _ctypes.get_errno()
        raise OSError(error, posix.strerror(error))
    return result


def _passed(argument: int | bytes | bytearray | None) -> object:
    """An argument in the form in which it reaches the kernel."""
    if isinstance(argument, int):
        # A bare int would be passed with 32 bits.
        return _Long(argument)
    if isinstance(argument, bytearray):
        return _shared(argument)
    return argument


def encoded(path: str) -> bytes:
    """Encode a path as `os.fsencode` does."""
    return path.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def decoded(path: bytes) -> str:
    """Decode a path as `os.fsdecode` does."""
    return path.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def prctl(
    option: int,
    value: int,
    *more: int,
) -> None:
    """Set an attribute of this process; missing arguments are 0. Raises as `system_call`."""
    arguments = (value, *more, 0, 0, 0)
    system_call("prctl", option, *arguments[:4])


def mount(
    source: str, target: str, kind: str | None, flags: int, data: str = ""
) -> None:
    """Mount a file system, or change a mount if `kind` is None. Raises as `system_call`."""
    kind_bytes = None
    if kind is not None:
        kind_bytes = kind.encode()
    system_call(
        "mount", encoded(source), encoded(target), kind_bytes, flags, data.encode()
    )


def raise_loopback() -> None:
    """Start the interface `lo` of this network namespace.

    Raises:
        OSError: the kernel refused.
    """
    link = system_call("socket", _AF_INET, _SOCK_DGRAM | posix.O_CLOEXEC, 0)
    try:
        # A `struct ifreq`: the name of the interface, and its flags.
        name = b"lo".ljust(_NAME_BYTES, b"\0")
        flags = _UP.to_bytes(2, "little")
        request = (name + flags).ljust(_REQUEST_BYTES, b"\0")
        system_call("ioctl", link, _SET_FLAGS, bytearray(request))
    finally:
        posix.close(link)


def open_path(path: str, flags: int = 0) -> int:
    """Open a path that has no links, as a place. With `O_NOFOLLOW`, its last name may be a link.

    If links were followed, a process that can replace a folder by a link could choose the target
    that the command gets.

    Raises:
        OSError: the path does not exist, or has a link in it.
    """
    flags |= _O_PATH | posix.O_CLOEXEC
    how = words(8, flags, 0, _RESOLVE_NO_SYMLINKS)
    return system_call("openat2", AT_FDCWD, encoded(path), how, len(how))


def limit(resource: int, most: int) -> None:
    """Lower the soft and the hard limit of a resource to `most`, unless they are lower already.

    They hold for this process and its children.
    """
    held = bytearray(16)
    system_call("prlimit64", 0, resource, None, held)
    soft, hard = integers(held)
    lower = words(8, min(soft, most), min(hard, most))
    system_call("prlimit64", 0, resource, lower, None)


def drop_capabilities(
    *, for_good: bool = True, network: bool = False, owners: bool = False
) -> None:
    """Drop all capabilities of root except `CAP_DAC_OVERRIDE`, which gives access to every file.

    Without that one, root could not work in the folder of another user, as it often must in a
    container.

    Args:
        for_good: also drop them for the programs that this process executes. Takes a millisecond.
        owners: root also keeps the capabilities for modes, times and owners of other users' files,
            which unpacking an archive needs. Use it only where mounts alone decide which files
            these are.
        network: also keep `CAP_NET_ADMIN`, which shows the file of a local socket.
    """
    for_root = {CAP_DAC_OVERRIDE}
    if owners:
        for_root |= {CAP_CHOWN, CAP_FOWNER}
    if for_good:
        _bar_capabilities(for_root)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    wanted = 0
    if posix.geteuid() == 0:
        for number in for_root:
            wanted |= 1 << number
    if network:
        wanted |= 1 << CAP_NET_ADMIN
    header = words(4, _CAPABILITY_VERSION_3, 0)
    held = bytearray(24)
    system_call("capget", header, held)
    # Capabilities that this process does not hold cannot be set.
    permitted = int.from_bytes(held[4:8], "little")
    kept = permitted & wanted
    system_call("capset", header, words(4, kept, kept, 0, 0, 0, 0))


def _bar_capabilities(kept: set[int]) -> None:
    """Take all capabilities but these from the programs that this process executes."""
    for number in range(_LAST_CAPABILITY + 1):
        if number in kept:
            continue
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            # This kernel has no more of them, or this user has no right to drop them.
            break


def set_filter(instructions: bytes) -> None:
    """Filter every system call with a seccomp program, which has 8 bytes an instruction.

    Raises:
        OSError: the kernel refused.
    """
    # `prctl` is older than `seccomp`, and fewer containers refuse it.
    data = bytearray(instructions)
    program = _filter_structure(data)
    system_call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0)


def set_notifying_filter(instructions: bytes) -> int:
    """Filter every system call, and notify a supervisor of the calls that the program leaves open.

    Returns:
        The descriptor from which the supervisor receives them.

    Raises:
        OSError: this kernel cannot do it, or there is already a supervisor.
    """
    data = bytearray(instructions)
    program = _filter_structure(data)
    try:
        # Since Linux 5.19, a signal does not restart a call that is being answered.
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        return system_call("seccomp", _SET_MODE_FILTER, flags, program)
    except OSError:
        return system_call("seccomp", _SET_MODE_FILTER, _NEW_LISTENER, program)


def _filter_structure(instructions: bytearray) -> bytes:
    """The `struct sock_fprog`, with the number of instructions and their address.

    The caller must hold the instructions until the kernel has read them.
    """
    return words(8, len(instructions) // 8, _ctypes.addressof(_shared(instructions)))


def _shared(data: bytearray) -> object:
    """Make a C array that shares the memory of `data`."""
    fields = {"_type_": _Char, "_length_": len(data)}
    kind = type("Memory", (_ctypes.Array,), fields)
    return kind.from_buffer(data)


def words(size: int, *values: int) -> bytes:
    """The memory of a structure of integers with `size` bytes each."""
    return b"".join(value.to_bytes(size, "little") for value in values)


def integers(memory: bytes | bytearray) -> list[int]:
    """The integers of 8 bytes each in the memory of a structure."""
    starts = range(0, len(memory), 8)
    return [int.from_bytes(memory[at : at + 8], "little") for at in starts]
