"""Which system calls a confined command may not make, as a program for the kernel.

https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
"""

import errno
import struct
from dataclasses import dataclass
from typing import Final

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

_NUMBER, _ARCHITECTURE = 0, 4
_X32_NUMBERS: Final = 0x40000000
"""A second set of numbers, which x86-64 kernels may take."""

_NEW_NAMESPACES: Final = 0x7E020000
_NEW_TIME: Final = 0x80
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 1, 5, 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_O_ACCMODE_AND_TRUNC, _O_TRUNC = 0o1003, 0o1000

_SAME_EVERYWHERE: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}

_X86_64: Final = _SAME_EVERYWHERE | {
    "open": 2,
    "ioctl": 16,
    "socket": 41,
    "connect": 42,
    "accept": 43,
    "bind": 49,
    "listen": 50,
    "socketpair": 53,
    "clone": 56,
    "truncate": 76,
    "ptrace": 101,
    "syslog": 103,
    "pivot_root": 155,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "openat": 257,
    "unshare": 272,
    "accept4": 288,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}

_GENERIC: Final = _SAME_EVERYWHERE | {
    "ioctl": 29,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "truncate": 45,
    "openat": 56,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "socket": 198,
    "socketpair": 199,
    "bind": 200,
    "listen": 201,
    "accept": 202,
    "connect": 203,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "accept4": 242,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}

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
_OFFLINE: Final = ("socket", "connect", "accept", "accept4", "bind", "listen")


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def encode(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


_MACHINES: Final = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
}


def filter_program(machine: str, *, offline: bool, guard_truncate: bool = False) -> bytes | None:
    """The filter, 8 bytes an instruction; None for a machine whose system calls are not known here.

    Calls fail with EPERM. One of another architecture, whose numbers mean other things, ends the process.

    Args:
        machine: as `uname` names it.
        offline: no socket of any family is made; a pair of connected local ones is, as asyncio and
            many others need it for themselves. Not of datagrams: such a one can send anywhere.
        guard_truncate: files are not cut but where they are opened for writing, which Landlock did not
            see to before its version 3.
    """
    if machine not in _MACHINES:
        return None
    architecture, numbers = _MACHINES[machine]
    refuse = _Instruction(_RETURN, _ERRNO | errno.EPERM)
    allow = _Instruction(_RETURN, _ALLOW)
    program = [
        _Instruction(_LOAD, _ARCHITECTURE),
        _Instruction(_EQUAL, architecture, if_true=1),
        _Instruction(_RETURN, _KILL),
        _Instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [_Instruction(_AT_LEAST, _X32_NUMBERS, if_false=1), _Instruction(_RETURN, _KILL)]

    def on(name: str, *body: _Instruction) -> None:
        if name in numbers:
            program.append(_Instruction(_EQUAL, numbers[name], if_false=len(body)))
            program.extend(body)

    for name in (*_NEVER, *(_OFFLINE if offline else ())):
        on(name, refuse)
    # Its flags are in memory, where a filter can not look; who is told that it is missing uses clone.
    on("clone3", _Instruction(_RETURN, _ERRNO | errno.ENOSYS))
    for name, flags in (("clone", _NEW_NAMESPACES), ("unshare", _NEW_NAMESPACES | _NEW_TIME)):
        on(name, _argument(0), _Instruction(_ANY_BIT, flags, if_false=1), refuse, allow)
    # Types into the terminal of whoever started us.
    on(
        "ioctl",
        _argument(1),
        _Instruction(_EQUAL, _TIOCSTI, if_true=1),
        _Instruction(_EQUAL, _TIOCLINUX, if_false=1),
        refuse,
        allow,
    )
    if offline:
        on(
            "socketpair",
            _argument(0),
            _Instruction(_EQUAL, _AF_UNIX, if_false=4),
            _argument(1),
            _Instruction(_AND, _SOCK_TYPE_MASK),
            _Instruction(_EQUAL, _SOCK_STREAM, if_true=2),
            _Instruction(_EQUAL, _SOCK_SEQPACKET, if_true=1),
            refuse,
            allow,
        )
    if guard_truncate:
        on("truncate", refuse)
        on("openat2", _Instruction(_RETURN, _ERRNO | errno.ENOSYS))
        for name, position in (("open", 1), ("openat", 2)):
            on(
                name,
                _argument(position),
                _Instruction(_AND, _O_ACCMODE_AND_TRUNC),
                _Instruction(_EQUAL, _O_TRUNC, if_false=1),
                refuse,
                allow,
            )
    program.append(allow)
    return b"".join(instruction.encode() for instruction in program)


def _argument(position: int) -> _Instruction:
    """Load the low half of an argument: flags and commands are 32 bits, on machines of low byte first."""
    return _Instruction(_LOAD, 16 + 8 * position)
