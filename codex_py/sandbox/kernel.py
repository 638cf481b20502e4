"""The system calls of Linux that Python has no names for.

Used by the launcher alone, which starts for every command: of the standard library it imports `os` and
`ctypes` (3 ms). Numbers above 400 are the same on every architecture.
"""

import ctypes
import os

from codex_py.sandbox.system_calls import NUMBERS

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.signal.restype = ctypes.c_void_p
_libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
PR_SET_CHILD_SUBREAPER = 36
_SECCOMP_MODE_FILTER = 2
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

_OPENAT2 = 437
_O_PATH = 0o10000000
_RESOLVE_NO_SYMLINKS = 0x04

_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE = 1

SIG_DFL, SIG_IGN = 0, 1


def system_call(number: int, *arguments: int | bytes | None) -> int:
    """
    Raises:
        OSError: the kernel says no.
    """
    # A bare int would be passed as one of 32 bits.
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *words))


def prctl(option: int, value: int, *more: int) -> None:
    words = [ctypes.c_ulong(word) for word in (value, *more, 0, 0, 0)[:4]]
    _checked(_libc.prctl(ctypes.c_int(option), *words))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    _checked(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            None if kind is None else kind.encode(),
            ctypes.c_ulong(flags),
            data.encode(),
        )
    )


def open_path(path: str) -> int:
    """A descriptor that stands for a file, which no link led to.

    Whoever could put a link where a folder was would choose what is given to the command.
    """
    how = b"".join(
        word.to_bytes(8, "little") for word in (_O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    )
    return system_call(_OPENAT2, -100, os.fsencode(path), how, len(how))


def set_signal(number: int, action: int) -> int | None:
    """Set `SIG_DFL` or `SIG_IGN`; what it was before. The `signal` module would cost 2 ms."""
    return _libc.signal(number, action)


def drop_capabilities() -> None:
    """Give up all that root can do beyond what others can, but for reading and writing every file.

    Without that one, root could not work in a folder of another user, as it often has to in a container.
    """
    for number in range(_LAST_CAPABILITY + 1):
        if number != CAP_DAC_OVERRIDE:
            try:
                prctl(PR_CAPBSET_DROP, number)
            except OSError:
                # The first that this kernel does not have, or an ordinary user, who may not.
                break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    kept = 1 << CAP_DAC_OVERRIDE if os.geteuid() == 0 and _may_keep() else 0
    header = _words(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, _words(kept, kept, 0, 0, 0, 0)))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def set_filter(instructions: bytes) -> None:
    """Have a program for Berkeley packet filters, instructions of 8 bytes, judge every system call."""
    # Held by a name until the kernel has copied it.
    program = _Program(len(instructions) // 8, instructions)
    prctl(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))


def set_filter_that_asks(instructions: bytes) -> int:
    """The same; a descriptor for whoever is to be asked about the calls that the program leaves open.

    Raises:
        OSError: this kernel can not, or somebody is asked already.
    """
    program = _Program(len(instructions) // 8, instructions)
    number = NUMBERS[os.uname().machine]["seccomp"]
    try:
        # Since Linux 5.19: a signal does not have a call that is being answered begin anew.
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        return system_call(number, _SET_MODE_FILTER, flags, ctypes.addressof(program))
    except OSError:
        return system_call(number, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.addressof(program))


def control(descriptor: int, request: int, argument: "bytes | ctypes.Array[ctypes.c_char]") -> int:
    """`ioctl`.

    Raises:
        OSError: the kernel says no.
    """
    return _checked(_libc.ioctl(ctypes.c_int(descriptor), ctypes.c_ulong(request), argument))


def _may_keep() -> bool:
    header, held = _words(_CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    _checked(_libc.capget(header, held))
    permitted = int.from_bytes(held.raw[4:8], "little")
    return bool(permitted & 1 << CAP_DAC_OVERRIDE)


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
