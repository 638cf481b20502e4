"""The system calls of Linux that Python has no names for.

Used by the launcher alone, which starts for every command: so it takes the core of `ctypes`, and spares
2 of the 3 ms that importing the whole of it would be. Numbers above 400 are the same on every architecture.
"""

import _ctypes
import posix
import sys

from codex_py.sandbox.child.system_calls import NUMBERS

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeAlias

    Memory: TypeAlias = "_ctypes.Array[Any]"

_NUMBERS = NUMBERS.get(posix.uname().machine, {})

# What is known of its types is meant for `ctypes`, which makes these same classes of it.
_core: "Any" = _ctypes


class _Long(_core._SimpleCData):
    _type_ = "l"


class _Char(_core._SimpleCData):
    _type_ = "c"


class _Function(_core.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_libc = _core.dlopen(None, posix.RTLD_NOW)
_system_call = _Function(_ctypes.dlsym(_libc, "syscall"))
_signal = _Function(_ctypes.dlsym(_libc, "signal"))

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

_OPENAT2 = 437
_O_PATH = 0o10000000
_RESOLVE_NO_SYMLINKS = 0x04

_F_GETFL = 3

_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE = 1

SIG_DFL, SIG_IGN = 0, 1

RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_NOFILE = 2, 6, 7


def system_call(number: int, *arguments: "int | bytes | Memory | None") -> int:
    """
    Raises:
        OSError: the kernel says no.
    """
    # A bare int would be passed as one of 32 bits.
    words = [_Long(word) if isinstance(word, int) else word for word in arguments]
    result = _system_call(_Long(number), *words)
    if result < 0:
        error = _ctypes.get_errno()
        raise OSError(error, posix.strerror(error))
    return result


def memory(data: bytes) -> "Memory":
    """What the kernel can write to, with a copy of the data in it; `bytes` gives what is there then."""
    kind = type("Memory", (_core.Array,), {"_type_": _Char, "_length_": len(data)})
    return kind.from_buffer_copy(data)


def leave(code: int) -> "NoReturn":
    """End this process at once."""
    posix._exit(code)  # pyright: ignore[reportPrivateUsage] - a name of `os`


def encoded(path: str) -> bytes:
    """As `os.fsencode`."""
    return path.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def prctl(option: int, value: int, *more: int) -> None:
    system_call(_NUMBERS["prctl"], option, *(value, *more, 0, 0, 0)[:4])


def unshare(flags: int) -> None:
    system_call(_NUMBERS["unshare"], flags)


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = encoded(source), encoded(target), None if kind is None else kind.encode()
    system_call(_NUMBERS["mount"], *words, flags, data.encode())


def open_path(path: str, flags: int = 0) -> int:
    """A descriptor that stands for a file, which no link led to. With `O_NOFOLLOW` it may be a link itself.

    Whoever could put a link where a folder was would choose what is given to the command.
    """
    flags |= _O_PATH | posix.O_CLOEXEC
    how = b"".join(word.to_bytes(8, "little") for word in (flags, 0, _RESOLVE_NO_SYMLINKS))
    return system_call(_OPENAT2, -100, encoded(path), how, len(how))


def set_signal(number: int, action: int) -> int:
    """Set `SIG_DFL` or `SIG_IGN`; what it was before. The `signal` module would cost 2 ms."""
    return _signal(_Long(number), _Long(action))


def is_open_for_writing(descriptor: int) -> bool:
    """The `fcntl` module would cost 0.3 ms.

    Raises:
        OSError: it is closed.
    """
    return system_call(_NUMBERS["fcntl"], descriptor, _F_GETFL) & posix.O_ACCMODE != posix.O_RDONLY


def limit(resource: int, most: int) -> None:
    """Lower both limits of this process, and of its children, to `most` where they are higher."""
    number, held = _NUMBERS["prlimit64"], memory(bytes(16))
    system_call(number, 0, resource, None, held)
    limits = (int.from_bytes(bytes(held)[at : at + 8], "little") for at in (0, 8))
    lowered = b"".join(min(each, most).to_bytes(8, "little") for each in limits)
    system_call(number, 0, resource, lowered, None)


def drop_capabilities(*, for_good: bool = True) -> None:
    """Give up all that root can do beyond what others can, but for reading and writing every file.

    Without that one, root could not work in a folder of another user, as it often has to in a container.

    Args:
        for_good: also for the programs that this process becomes: a millisecond that others can spare.
    """
    for number in range(_LAST_CAPABILITY + 1 if for_good else 0):
        if number != CAP_DAC_OVERRIDE:
            try:
                prctl(PR_CAPBSET_DROP, number)
            except OSError:
                # The first that this kernel does not have, or an ordinary user, who may not.
                break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    kept = 1 << CAP_DAC_OVERRIDE if posix.geteuid() == 0 and _may_keep() else 0
    header = _words(_CAPABILITY_VERSION_3, 0)
    system_call(_NUMBERS["capset"], header, _words(kept, kept, 0, 0, 0, 0))


class _Program:
    """`struct sock_fprog`: how many instructions there are, and where."""

    def __init__(self, instructions: bytes) -> None:
        # Kept until the kernel has copied it.
        self._memory = memory(instructions)
        words = len(instructions) // 8, _ctypes.addressof(self._memory)
        self.pointer = b"".join(word.to_bytes(8, "little") for word in words)


def set_filter(instructions: bytes) -> None:
    """Have a program for Berkeley packet filters, instructions of 8 bytes, judge every system call."""
    # An older call, which fewer containers refuse.
    number, program = _NUMBERS["prctl"], _Program(instructions)
    system_call(number, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program.pointer, 0, 0)


def set_notifying_filter(instructions: bytes) -> int:
    """The same; a descriptor for whoever is to be asked about the calls that the program leaves open.

    Raises:
        OSError: this kernel cannot, or somebody is asked already.
    """
    number, program = _NUMBERS["seccomp"], _Program(instructions)
    try:
        # Since Linux 5.19: a signal does not have a call that is being answered begin anew.
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        return system_call(number, _SET_MODE_FILTER, flags, program.pointer)
    except OSError:
        return system_call(number, _SET_MODE_FILTER, _NEW_LISTENER, program.pointer)


def control(descriptor: int, request: int, argument: "bytes | Memory") -> int:
    """`ioctl`.

    Raises:
        OSError: the kernel says no.
    """
    return system_call(_NUMBERS["ioctl"], descriptor, request, argument)


def _may_keep() -> bool:
    held = memory(bytes(24))
    system_call(_NUMBERS["capget"], _words(_CAPABILITY_VERSION_3, 0), held)
    permitted = int.from_bytes(bytes(held)[4:8], "little")
    return bool(permitted & 1 << CAP_DAC_OVERRIDE)


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)
