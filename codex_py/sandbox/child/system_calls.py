"""Knows the numbers of system calls on each architecture.

A number never changes. Those above 423 are the same on all architectures.
https://github.com/torvalds/linux/blob/master/scripts/syscall.tbl
"""

_TABLE = """
open 2 -, ioctl 16 29, socket 41 198, connect 42 203, accept 43 202, bind 49 200, listen 50 201,
socketpair 53 199, clone 56 220, fcntl 72 25, truncate 76 45, rename 82 -, mkdir 83 -, rmdir 84 -,
creat 85 -, link 86 -, unlink 87 -, symlink 88 -, chmod 90 -, fchmod 91 52, chown 92 -,
fchown 93 55, lchown 94 -, ptrace 101 117, syslog 103 116, capget 125 90, capset 126 91,
utime 132 -, mknod 133 -, setpriority 141 140, sched_setparam 142 118, sched_setscheduler 144 119,
pivot_root 155 41, prctl 157 167, acct 163 89, mount 165 40, umount2 166 39, swapon 167 224,
swapoff 168 225, reboot 169 142, init_module 175 105, delete_module 176 106, quotactl 179 60,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15,
fremovexattr 199 16, sched_setaffinity 203 122, utimes 235 -, kexec_load 246 104, add_key 248 217,
request_key 249 218, keyctl 250 219, ioprio_set 251 30, openat 257 56, mkdirat 258 34,
mknodat 259 33, fchownat 260 54, futimesat 261 -, unlinkat 263 35, renameat 264 38, linkat 265 37,
symlinkat 266 36, fchmodat 268 53, unshare 272 97, utimensat 280 88, accept4 288 242,
perf_event_open 298 241, prlimit64 302 261, open_by_handle_at 304 265, setns 308 268,
process_vm_readv 310 270, process_vm_writev 311 271, finit_module 313 273, sched_setattr 314 274,
renameat2 316 276, seccomp 317 277, kexec_file_load 320 294, bpf 321 280, userfaultfd 323 282,
io_uring_setup 425, io_uring_enter 426, io_uring_register 427, open_tree 428, move_mount 429,
fsopen 430, fsconfig 431, fsmount 432, fspick 433, clone3 435, openat2 437, pidfd_getfd 438,
mount_setattr 442, quotactl_fd 443, landlock_create_ruleset 444, landlock_add_rule 445,
landlock_restrict_self 446, fchmodat2 452, setxattrat 463, removexattrat 466, open_tree_attr 467,
file_setattr 469
"""
"""An entry has a name, the number on x86-64, and that on architectures with the generic table.

The last is left out if both are the same. It is `-` for an older form of a call, which those
architectures do not have.
"""
MACHINES = {"x86_64": 1, "aarch64": 2, "riscv64": 2}
"""The column of the table for each machine name from `uname`."""


def numbers_on(machine: str) -> dict[str, int]:
    """Return the numbers by name; none if the machine is not one of `MACHINES`."""
    numbers: dict[str, int] = {}
    if machine not in MACHINES:
        return numbers
    column = MACHINES[machine]
    for entry in _TABLE.split(","):
        row = entry.split()
        last_column = len(row) - 1
        number = row[min(column, last_column)]
        if number != "-":
            numbers[row[0]] = int(number)
    return numbers
