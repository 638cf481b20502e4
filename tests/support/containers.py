"""What containers do to a program, done to one program: https://docs.docker.com/engine/security/seccomp/"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from codex_py.sandbox.child.system_calls import numbers_on

NOBODY = 65534
_LANDLOCK = (444, 445, 446)

# What Docker refuses, our filter does too, new namespaces by `clone` and mounts among them.
_BECOME = """
import os, struct, sys
from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.seccomp import filter_program
program = filter_program(os.uname().machine, offline=False)
at = len(program) - 8
numbers = [int(word) for word in sys.argv[1].split(",")]
extra = b"".join(
    struct.pack("=HBBI", 0x15, 0, 1, n) + struct.pack("=HBBI", 6, 0, 0, 0x50001) for n in numbers
)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.set_filter(program[:at] + extra + program[at:])
os.execvp(sys.argv[2], sys.argv[2:])
"""


def in_container(
    argv: Sequence[str],
    *,
    landlock: bool = True,
    asking: bool = True,
    capabilities: bool = True,
    user: int | None = None,
) -> list[str]:
    """What runs a program as a container does that has Docker's seccomp profile.

    Args:
        landlock: whether the kernel has it.
        asking: whether a filter may ask a supervisor.
        capabilities: whether root has any.
        user: whom it runs as; see `can_become`.
    """
    numbers = numbers_on(os.uname().machine)
    refused = [numbers["unshare"]]
    refused += () if landlock else _LANDLOCK
    refused += () if asking else [numbers["seccomp"]]
    command = [sys.executable, "-c", _BECOME, ",".join(map(str, refused)), *argv]
    options = [] if capabilities else ["--bounding-set=-all", "--inh-caps=-all"]
    if user is not None:
        options += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", "--no-new-privs", *options, *command] if options else command


def can_become(user: int) -> bool:
    """Whether we may run the program as somebody else, who can then read what it is made of."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    test = ["-c", "import codex_py.app.session; print()"]
    tried = subprocess.run(
        in_container([sys.executable, *test], user=user),
        capture_output=True,
        cwd="/",
        check=False,
    )
    return tried.returncode == 0
