"""The seccomp filter: a program for the kernel that refuses system calls of a confined command.

https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
"""

import errno
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from codex_py.sandbox.child.system_calls import NUMBERS

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06

_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

_NUMBER, _ARCHITECTURE = 0, 4
_X32_NUMBERS: Final = 0x40000000
"""A second set of numbers, which x86-64 kernels may take."""

_NEW_NAMESPACES: Final = 0x7E020000
_NEW_TIME: Final = 0x80
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 1, 5, 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SET_FLAGS, _SET_MORE_FLAGS = 0x40086602, 0x401C5820
_O_ACCMODE_AND_TRUNC, _O_TRUNC = 0o1003, 0o1000
_O_WRITES = 0o3 | 0o100 | _O_TRUNC

_NEVER: Final = (
    # Other processes, and what the kernel keeps for them.
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("add_key", "request_key", "keyctl"),
    # Does what other system calls do, past this filter.
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # Other views of the file system.
    *("mount", "umount2", "pivot_root", "setns", "open_tree", "move_mount", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "open_tree_attr", "open_by_handle_at"),
    # The machine, and the parts of the kernel that are attacked most.
    *("bpf", "perf_event_open", "userfaultfd", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl"),
    *("quotactl_fd", "syslog"),
)
SUPERVISED_CALLS: Final = (
    *(
        "creat",
        "mkdir",
        "mkdirat",
        "rmdir",
        "unlink",
        "unlinkat",
        "rename",
        "renameat",
        "renameat2",
    ),
    *("link", "linkat", "symlink", "symlinkat", "mknod", "mknodat"),
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
"""Calls that the supervisor gets: those that change an entry of a folder or an attribute of a file. (Opening for
writing is below.) `fork` is none of them: until the supervisor receives a call, a signal may interrupt it, which no
program expects of `fork`."""
_EXTENDED_ATTRIBUTES: Final = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "file_setattr"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
_OPEN: Final = (("open", 1), ("openat", 2))
"""With the index of the argument that has the flags."""
_NETWORK: Final = ("socket", "connect", "accept", "accept4", "bind", "listen")


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def encode(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


_ARCHITECTURES: Final = {
    "x86_64": 0xC000003E,
    "aarch64": 0xC00000B7,
    "riscv64": 0xC00000F3,
}


def filter_program(
    machine: str, *, offline: bool, guard_truncate: bool = False, supervised: bool = False
) -> bytes | None:
    """The filter, 8 bytes an instruction; None for a machine whose system calls are unknown here.

    Refused calls fail with EPERM. A call of another architecture, whose numbers mean other calls, ends the process.

    Args:
        machine: as `uname` names it.
        offline: refuse all sockets, except pairs of connected local ones, which asyncio and many others need.
            Not pairs of datagram sockets, which can send anywhere.
        guard_truncate: files can be truncated only by opening them for writing. Landlock does not prevent
            that before its version 3.
        supervised: notify the supervisor of calls that change entries and attributes. Extended attributes
            are unsupported, as on a file system without them.
    """
    if machine not in _ARCHITECTURES:
        return None
    architecture, numbers = _ARCHITECTURES[machine], NUMBERS[machine]
    program = [
        _Instruction(_LOAD, _ARCHITECTURE),
        _Instruction(_EQUAL, architecture, if_true=1),
        _Instruction(_RETURN, _KILL),
        _Instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [_Instruction(_AT_LEAST, _X32_NUMBERS, if_false=1), _Instruction(_RETURN, _KILL)]
    rules = [
        # If several rules are for one call, the first one decides.
        _cut_nothing() if guard_truncate else (),
        _ask() if supervised else (),
        _never(),
        _offline() if offline else (),
    ]
    for name, *body in chain.from_iterable(rules):
        if name in numbers:
            program += [_Instruction(_EQUAL, numbers[name], if_false=len(body)), *body]
    program.append(_ALLOWED)
    return b"".join(instruction.encode() for instruction in program)


def _argument(position: int) -> _Instruction:
    """Load the low half of an argument: flags and commands are 32 bits, on machines of low byte first."""
    return _Instruction(_LOAD, 16 + 8 * position)


_ALLOWED: Final = _Instruction(_RETURN, _ALLOW)
_REFUSED: Final = _Instruction(_RETURN, _ERRNO | errno.EPERM)
_MISSING: Final = _Instruction(_RETURN, _ERRNO | errno.ENOSYS)
_UNSUPPORTED: Final = _Instruction(_RETURN, _ERRNO | errno.EOPNOTSUPP)
_NOTIFIED: Final = _Instruction(_RETURN, _NOTIFY)

# A rule is the name of a call and the instructions for it. They end with a return, or by loading the number of
# the call again for the following rules.
_Rule: TypeAlias = tuple[str, *tuple[_Instruction, ...]]


def _never() -> Iterator[_Rule]:
    for name in _NEVER:
        yield name, _REFUSED
    # Its flags are in memory, which a filter cannot read; programs fall back to `clone` if it is missing.
    yield "clone3", _MISSING
    for name, flags in (("clone", _NEW_NAMESPACES), ("unshare", _NEW_NAMESPACES | _NEW_TIME)):
        yield name, _argument(0), _Instruction(_ANY_BIT, flags, if_false=1), _REFUSED, _ALLOWED
    # It can take time, memory or files from another process, which then dies.
    yield "prlimit64", _argument(0), _Instruction(_EQUAL, 0, if_true=1), _REFUSED, _ALLOWED
    # These type into the terminal from which we were started.
    yield (
        "ioctl",
        _argument(1),
        _Instruction(_EQUAL, _TIOCSTI, if_true=1),
        _Instruction(_EQUAL, _TIOCLINUX, if_false=1),
        _REFUSED,
        _ALLOWED,
    )


def _offline() -> Iterator[_Rule]:
    for name in _NETWORK:
        yield name, _REFUSED
    yield (
        "socketpair",
        _argument(0),
        _Instruction(_EQUAL, _AF_UNIX, if_false=4),
        _argument(1),
        _Instruction(_AND, _SOCK_TYPE_MASK),
        _Instruction(_EQUAL, _SOCK_STREAM, if_true=2),
        _Instruction(_EQUAL, _SOCK_SEQPACKET, if_true=1),
        _REFUSED,
        _ALLOWED,
    )


def _cut_nothing() -> Iterator[_Rule]:
    yield "truncate", _REFUSED
    yield "openat2", _MISSING
    for name, position in _OPEN:
        yield (
            name,
            _argument(position),
            _Instruction(_AND, _O_ACCMODE_AND_TRUNC),
            _Instruction(_EQUAL, _O_TRUNC, if_false=1),
            _REFUSED,
            _Instruction(_LOAD, _NUMBER),
        )


def _ask() -> Iterator[_Rule]:
    for name in SUPERVISED_CALLS:
        yield name, _NOTIFIED
    for name, position in _OPEN:
        yield (
            name,
            _argument(position),
            _Instruction(_ANY_BIT, _O_WRITES, if_false=1),
            _NOTIFIED,
            _ALLOWED,
        )
    # As for `clone3`: programs fall back to `openat`.
    yield "openat2", _MISSING
    for name in _EXTENDED_ATTRIBUTES:
        yield name, _UNSUPPORTED
    yield (
        "ioctl",
        _argument(1),
        _Instruction(_EQUAL, _SET_FLAGS, if_true=1),
        _Instruction(_EQUAL, _SET_MORE_FLAGS, if_false=1),
        _UNSUPPORTED,
        _Instruction(_LOAD, _NUMBER),
    )
