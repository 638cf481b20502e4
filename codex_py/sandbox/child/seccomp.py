"""Writes the seccomp filter: a program for the kernel that refuses system calls of a command.

https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
"""

import errno
import struct
from collections.abc import Iterator
from functools import cache
from typing import Final, TypeAlias

from codex_py.sandbox.child.supervisor import CALLS
from codex_py.sandbox.child.system_calls import numbers_on

# The codes of instructions: `linux/bpf_common.h`.
_JUMP = 0x05
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06

# The results of a program: `linux/seccomp.h`.
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

# The offsets in `struct seccomp_data`, which a program reads.
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = 16
_X32_NUMBERS: Final = 0x40000000
"""The base of a second set of call numbers, which x86-64 kernels may accept."""

_NEW_NAMESPACES: Final = 0x7E020000
"""The flags of `clone` and `unshare` for new namespaces."""
_NEW_TIME: Final = 0x80
"""The flag of `unshare` for another one. For `clone`, it is a part of a signal's number."""
_INTERNET: Final = (2, 10)
"""Families of Internet sockets."""
_AF_UNIX = 1
_SOCK_STREAM = 1
_SOCK_DGRAM = 2
_SOCK_SEQPACKET = 5
_SOCK_TYPE_MASK = 0xF
_PROTOCOLS: Final = (0, 6, 17)
"""The default protocol of a socket type, TCP and UDP."""
_FIRST_PROCESS = 1
"""The id of the first process of a namespace."""
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C
_SET_FLAGS = 0x40086602
_SET_MORE_FLAGS = 0x401C5820
_O_ACCMODE_AND_TRUNC = 0o1003
_O_TRUNC = 0o1000
_O_MAKES = 0o100 | 0o20000000
"""`O_CREAT`, and the bit of `O_TMPFILE` that no other flag has."""
_O_WRITES = 0o3 | 0o100 | _O_TRUNC
"""The flags of a file that is opened for writing."""

_NEVER: Final = (
    # Access to other processes, and to data that the kernel keeps for them.
    "pidfd_getfd",
    "add_key",
    "request_key",
    "keyctl",
    # Calls that do the work of other system calls without passing this filter.
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    # Calls that change the view of the file system.
    "mount",
    "umount2",
    "pivot_root",
    "setns",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "open_tree_attr",
    "open_by_handle_at",
    # Calls that affect the machine, and the parts of the kernel that are attacked most.
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
)
_TRACING: Final = (("ptrace", 1), ("process_vm_readv", 0), ("process_vm_writev", 0))
"""Calls, with the index of the argument that is a process id."""
_MODES: Final = (
    ("chmod", 1),
    ("fchmod", 1),
    ("fchmodat", 2),
    ("fchmodat2", 2),
    ("creat", 1),
    ("mknod", 1),
    ("mknodat", 2),
)
"""Calls, with the index of the argument that is a file's mode."""
_SET_USER: Final = 0o4000
"""The bit of a mode that lets a program run as the owner of its file."""
_EXTENDED_ATTRIBUTES: Final = (
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "file_setattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
)
_OPEN: Final = (("open", 1), ("openat", 2))
"""Calls, with the index of the argument that has the flags. The next argument is the mode."""
SUPERVISED_CALLS: Final = CALLS.keys() - dict(_OPEN)
"""Calls that the supervisor gets whatever their arguments. They change an entry of a folder or an
attribute of a file. `fork` is not among them: until the supervisor receives a call, a signal may
interrupt it, which no program expects of `fork`."""
LOCAL_CALLS: Final = ("bind", "connect")
"""Calls that the supervisor of local sockets gets."""
_NETWORK: Final = ("socket", "connect", "accept", "accept4", "bind", "listen")


_ARCHITECTURES: Final = {
    "x86_64": 0xC000003E,
    "aarch64": 0xC00000B7,
    "riscv64": 0xC00000F3,
}
"""The kernel's numbers of the machines that this module knows."""


def _instruction(
    code: int,
    value: int,
    if_true: int = 0,
    if_false: int = 0,
) -> bytes:
    """Encode an instruction.

    Args:
        if_true: how many of the next instructions are skipped if its test holds.
        if_false: how many are skipped if its test does not hold.
    """
    return struct.pack("=HBBI", code, if_true, if_false, value)


_ALLOWED: Final = _instruction(_RETURN, _ALLOW)
_REFUSED: Final = _instruction(_RETURN, _ERRNO | errno.EPERM)
_MISSING: Final = _instruction(_RETURN, _ERRNO | errno.ENOSYS)
_UNSUPPORTED: Final = _instruction(_RETURN, _ERRNO | errno.EOPNOTSUPP)
_NOTIFIED: Final = _instruction(_RETURN, _NOTIFY)
_KILLED: Final = _instruction(_RETURN, _KILL)
_GO_ON: Final = _instruction(_JUMP, 1)
"""A `then` of an `_if` after which the program continues behind the `_if`."""
_NEXT_RULE: Final = _instruction(_LOAD, _NUMBER)
"""Loads the number of the call again, so that the rules that follow can test it."""


@cache
def filter_program(
    machine: str,
    *,
    offline: bool,
    isolated: bool = False,
    local: bool = False,
    guard_truncate: bool = False,
    tracing: bool = False,
    root: bool = False,
    backend: str = "namespaces",
) -> bytes | None:
    """Write the filter, with 8 bytes an instruction; None if this module does not know the machine.

    Refused calls fail with EPERM. A call of another architecture, whose numbers mean other calls,
    ends the process.

    Args:
        machine: the machine's name in `uname`.
        offline: refuse all sockets except pairs of connected local ones, which asyncio and many
            other programs need. Pairs of datagram sockets are refused, because they can send
            anywhere.
        isolated: the command is in a network namespace without a way out, where TCP and UDP reach
            its own servers: refuse the sockets that lead elsewhere. Local sockets are found by a
            path, which such a namespace does not change.
        local: in such a namespace, allow local sockets too, and notify the supervisor when one gets
            or uses a name; see `LocalSockets`.
        guard_truncate: files can be truncated only by opening them for writing. Landlock does not
            prevent truncation before its version 3.
        tracing: let a command trace its own processes, as debuggers and LeakSanitizer do. Only for
            a command that can reach no other processes. The first process of its namespace, which
            may be ours, cannot be traced.
        root: the command runs as root, so it must not make a program that gives root to its users.
            In a folder mounted from another machine, that would be root there.
        backend: for `supervised`, notify the supervisor of calls that change entries and
            attributes. Extended attributes are unsupported, as on a file system without them.
            Without namespaces, a thread may set only its own priority and processors, by the id 0:
            other ids may be those of the agent.
    """
    if machine not in _ARCHITECTURES:
        return None
    # If a call has several rules, they are tried in order.
    rules: list[_Rule] = []
    if guard_truncate:
        rules += _truncation_rules()
    if backend == "supervised":
        rules += _supervision_rules()
    rules += map(_refusal, _NEVER)
    if offline:
        rules += map(_refusal, _NETWORK)
    rules += _tracing_rules(allowed=tracing)
    if root:
        rules += _set_user_rules()
    rules += _argument_rules(offline=offline or isolated)
    if isolated:
        rules += _isolated_rules(local=local)
    if backend != "namespaces":
        rules += _scheduling_rules()
    numbers = numbers_on(machine)
    program = _architecture_check(machine)
    for name, body in rules:
        if name in numbers:
            program.append(_instruction(_EQUAL, numbers[name], if_false=len(body)))
            program += body
    program.append(_ALLOWED)
    return b"".join(program)


def _architecture_check(machine: str) -> list[bytes]:
    """End the process unless the call is one of this machine, and load the number of the call."""
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _ARCHITECTURES[machine], if_true=1),
        _KILLED,
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [_instruction(_AT_LEAST, _X32_NUMBERS, if_false=1), _KILLED]
    return program


_Rule: TypeAlias = tuple[str, list[bytes]]
"""The name of a call, and its instructions, which end with a return or with `_NEXT_RULE`."""


def _refusal(name: str) -> _Rule:
    return name, [_REFUSED]


def _truncation_rules() -> Iterator[_Rule]:
    yield "truncate", [_REFUSED]
    yield "openat2", [_MISSING]
    for name, flags in _OPEN:
        # A file that is truncated must also be opened for writing.
        body = _if(
            flags,
            _EQUAL,
            _O_TRUNC,
            mask=_O_ACCMODE_AND_TRUNC,
            then=_REFUSED,
            otherwise=_NEXT_RULE,
        )
        yield name, body


def _supervision_rules() -> Iterator[_Rule]:
    for name in sorted(SUPERVISED_CALLS):
        yield name, [_NOTIFIED]
    for name, flags in _OPEN:
        yield name, _if(flags, _ANY_BIT, _O_WRITES, then=_NOTIFIED)
    # Programs fall back to `openat`, as they do to `clone` from `clone3`.
    yield "openat2", [_MISSING]
    for name in _EXTENDED_ATTRIBUTES:
        yield name, [_UNSUPPORTED]
    body = _if(
        1,
        _EQUAL,
        _SET_FLAGS,
        _SET_MORE_FLAGS,
        then=_UNSUPPORTED,
        otherwise=_NEXT_RULE,
    )
    yield "ioctl", body


def _tracing_rules(*, allowed: bool) -> Iterator[_Rule]:
    for name, process in _TRACING:
        if allowed:
            yield name, _if(process, _EQUAL, _FIRST_PROCESS, then=_REFUSED)
        else:
            yield name, [_REFUSED]


def _set_user_rules() -> Iterator[_Rule]:
    for name, mode in _MODES:
        yield name, _if(mode, _ANY_BIT, _SET_USER, then=_REFUSED)
    # Programs fall back to `openat`, as they do to `clone` from `clone3`.
    yield "openat2", [_MISSING]
    for name, flags in _OPEN:
        makes_file = _if(flags, _ANY_BIT, _O_MAKES, then=_GO_ON, otherwise=_ALLOWED)
        sets_user = _if(flags + 1, _ANY_BIT, _SET_USER, then=_REFUSED)
        yield name, makes_file + sets_user


def _scheduling_rules() -> Iterator[_Rule]:
    groups_and_users = {
        "setpriority": (1, 2),
        "ioprio_set": (2, 3),
    }
    for name, kinds in groups_and_users.items():
        yield name, _if(0, _EQUAL, *kinds, then=_REFUSED, otherwise=_NEXT_RULE)
        yield name, _if(1, _EQUAL, 0, then=_ALLOWED, otherwise=_REFUSED)
    for name in (
        "sched_setparam",
        "sched_setscheduler",
        "sched_setaffinity",
        "sched_setattr",
    ):
        yield name, _if(0, _EQUAL, 0, then=_ALLOWED, otherwise=_REFUSED)


def _argument_rules(*, offline: bool) -> Iterator[_Rule]:
    # The flags are in memory, which a filter cannot read. If `clone3` is missing, programs fall
    # back to `clone`.
    yield "clone3", [_MISSING]
    yield "clone", _if(0, _ANY_BIT, _NEW_NAMESPACES, then=_REFUSED)
    yield "unshare", _if(0, _ANY_BIT, _NEW_NAMESPACES | _NEW_TIME, then=_REFUSED)
    # The call could take time, memory or files from another process, which then dies.
    yield "prlimit64", _if(0, _EQUAL, 0, then=_ALLOWED, otherwise=_REFUSED)
    # These commands type into the terminal from which we were started.
    yield "ioctl", _if(1, _EQUAL, _TIOCSTI, _TIOCLINUX, then=_REFUSED)
    if offline:
        connected = _connected_kinds()
        # Other families jump to the refusal, which is the last instruction of `connected`.
        is_local = _instruction(_EQUAL, _AF_UNIX, if_false=len(connected) - 1)
        yield "socketpair", [_argument(0), is_local, *connected]


def _connected_kinds() -> list[bytes]:
    """Allow sockets of connected kinds. Datagram sockets are refused: they could send anywhere."""
    return _if(
        1,
        _EQUAL,
        _SOCK_STREAM,
        _SOCK_SEQPACKET,
        mask=_SOCK_TYPE_MASK,
        then=_ALLOWED,
        otherwise=_REFUSED,
    )


def _isolated_rules(*, local: bool) -> Iterator[_Rule]:
    if local:
        connected = _connected_kinds()
        # Other families are judged by the next rule.
        is_local = _instruction(_EQUAL, _AF_UNIX, if_false=len(connected))
        yield "socket", [_argument(0), is_local, *connected, _NEXT_RULE]
        for name in LOCAL_CALLS:
            yield name, [_NOTIFIED]
    family = _if(0, _EQUAL, *_INTERNET, then=_GO_ON, otherwise=_REFUSED)
    kind = _if(
        1,
        _EQUAL,
        _SOCK_STREAM,
        _SOCK_DGRAM,
        mask=_SOCK_TYPE_MASK,
        then=_GO_ON,
        otherwise=_REFUSED,
    )
    protocol = _if(2, _EQUAL, *_PROTOCOLS, then=_ALLOWED, otherwise=_REFUSED)
    yield "socket", family + kind + protocol


def _argument(position: int) -> bytes:
    """Load the low half of an argument: flags and commands have 32 bits.

    The machines are little-endian.
    """
    return _instruction(_LOAD, _ARGUMENTS + 8 * position)


def _if(
    position: int,
    test: int,
    *values: int,
    then: bytes,
    otherwise: bytes = _ALLOWED,
    mask: int = 0xFFFFFFFF,
) -> list[bytes]:
    """Do `then` if a test holds for one of the values, and else `otherwise`.

    Args:
        position: the index of the argument that is tested.
        mask: the bits of it that are tested.
    """
    tests: list[bytes] = []
    left = len(values)
    for value in values:
        left -= 1
        # Skip the tests that are left; the last test must also skip `then` if it fails.
        if left:
            tests.append(_instruction(test, value, if_true=left))
        else:
            tests.append(_instruction(test, value, if_false=1))
    return [_argument(position), _instruction(_AND, mask), *tests, then, otherwise]
