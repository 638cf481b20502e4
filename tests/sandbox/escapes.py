"""Ways out of the sandbox, tried for real against a target that is made for it."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from tests.sandbox.target import Target

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Escape:
    """One way out."""

    name: str
    script: str
    """For `sh`, with the working directory `work` and the variables of the target. It says when it begins,
    and may fail then."""
    happened: Callable[[Target], bool]


_READ_PIPE = "read from a named pipe outside"
_CHANGE_DEVICE = "change the mode of a device"
"""Root can, and nobody else."""
KNOWN_OPEN = {
    "namespaces": {_READ_PIPE},
    "bwrap": {
        *("replace a .git that is a link", "write to a named pipe outside", _READ_PIPE),
        *("get what is mounted outside later", _CHANGE_DEVICE),
    },
    "views": {_READ_PIPE},
    "supervised": {_READ_PIPE},
    "landlock": {
        *("change a mode outside", "change the flags of a file outside"),
        *(
            "make .git where there is none",
            "plant a hook above, below a temporary folder",
        ),
        "make .codex above, below a temporary folder",
        *(_READ_PIPE, _CHANGE_DEVICE),
    },
}
"""What a backend cannot hold, by its nature."""


def try_escape(escape: Escape, backend: Backend) -> bool:
    """Whether the backend holds it.

    Raises:
        ToolError: the backend does not work here, or the script did not come to try it. That is neither
            of the two answers: a machine that is short of memory would seem to hold everything.
        OSError: the target cannot be made, as where no socket can be.
    """
    folder = Path(tempfile.mkdtemp(prefix="codex-py-escape-")).resolve()
    try:
        with Target(folder) as target:
            sandbox = PlatformSandbox(
                target.environment, home=target.home, backends=[backend]
            )
            try:
                done = subprocess.run(
                    sandbox.command(
                        ["/bin/sh", "-c", escape.script], target.policy, target.work
                    ),
                    cwd=target.work,
                    env=target.environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=_TIMEOUT_S,
                )
                target.output = done.stdout.decode(errors="replace")
                if not target.output.startswith(_TRIED):
                    raise ToolError(f"{escape.name}: {done}", code="SandboxNotTried")
            finally:
                sandbox.release()
            return not escape.happened(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_TRIED = "tried"


def _sh(script: str) -> str:
    return f"echo {_TRIED}; {script}"


def _python(code: str) -> str:
    begin = (
        f'import ctypes, os, socket\nenv = os.environ\nprint("{_TRIED}", flush=True)'
    )
    return f"\"$PYTHON\" -I -S -c '\n{begin}\n{code}'"


def _connect(make: str, address: str) -> str:
    return _python(f's = socket.socket({make}); s.connect({address}); s.send(b"x")')


def _system_call(x86_64: int, elsewhere: int, arguments: str) -> str:
    """A script that tells whether the kernel does the call."""
    number = f'{x86_64} if os.uname().machine == "x86_64" else {elsewhere}'
    return _python(
        f"buffer = ctypes.create_string_buffer(256)\n"
        f'if ctypes.CDLL(None).syscall({number}, {arguments}) >= 0: print("escaped")'
    )


ESCAPES = (
    Escape("write outside", _sh("echo x >$OUT/a"), Target.is_changed),
    Escape("write into a file outside", _sh("echo x >>$OUT/kept"), Target.is_changed),
    Escape(
        "cut a file outside",
        _python('os.truncate(env["OUT"] + "/kept", 0)'),
        Target.is_changed,
    ),
    Escape(
        "cut a file outside that is only opened for reading",
        _python('os.open(env["OUT"] + "/kept", os.O_RDONLY | os.O_TRUNC)'),
        Target.is_changed,
    ),
    Escape("remove outside", _sh("rm -f $OUT/kept"), Target.is_changed),
    Escape(
        "write through a link",
        _sh("ln -s $OUT link; echo x >link/a"),
        Target.is_changed,
    ),
    Escape(
        "write through a hard link",
        _sh("ln $OUT/kept hard; echo x >>hard"),
        Target.is_changed,
    ),
    Escape(
        "write through /proc/self/root",
        _sh("echo x >/proc/self/root$OUT/a"),
        Target.is_changed,
    ),
    Escape(
        "write through another process",
        _sh("echo x >/proc/$VICTIM/root$OUT/a"),
        Target.is_changed,
    ),
    Escape(
        "write through our parent",
        _sh("echo x >/proc/$PPID/root$OUT/a"),
        Target.is_changed,
    ),
    Escape("move a file out", _sh("echo x >a; mv a $OUT/a"), Target.is_changed),
    Escape("move a file in", _sh("mv $OUT/kept kept"), Target.is_changed),
    Escape("change a mode outside", _sh("chmod 644 $OUT/kept"), Target.is_changed),
    Escape(
        "change the flags of a file outside",
        _python(
            "import fcntl\n"
            'file = os.open(env["OUT"] + "/kept", os.O_RDONLY)\n'
            "flags = bytearray(8)\nfcntl.ioctl(file, 0x80086601, flags)\n"
            'fcntl.ioctl(file, 0x40086602, flags); print("escaped")'
        ),
        Target.has_escapee,
    ),
    Escape(
        "write to a kernel setting",
        _sh("echo 1 >/proc/sys/vm/drop_caches && echo escaped"),
        Target.has_escapee,
    ),
    Escape(
        "make a device", _sh("mknod disk b 1 0 && echo escaped"), Target.has_escapee
    ),
    Escape("plant a hook", _sh("echo x >.git/hooks/post-commit"), Target.is_planted),
    Escape(
        "replace .git",
        _sh("mv .git old; mkdir .git; echo x >.git/config"),
        Target.is_planted,
    ),
    Escape(
        "make .codex",
        _sh("mkdir .codex; echo x >.codex/config.toml"),
        Target.is_planted,
    ),
    Escape(
        "replace what keeps .codex",
        _sh("rmdir .codex; mkdir .codex; >.codex/x"),
        Target.is_planted,
    ),
    Escape(
        "link .codex",
        _sh("mkdir c; >c/x; rmdir .codex; ln -s c .codex"),
        Target.is_planted,
    ),
    Escape(
        "move .codex there", _sh("mkdir c; >c/x; mv -T c .codex"), Target.is_planted
    ),
    Escape(
        "exchange .git with a folder",
        _python(
            'os.mkdir("c"); open("c/config", "w").close()\n'
            'number = 316 if os.uname().machine == "x86_64" else 276\n'
            'ctypes.CDLL(None).syscall(number, -100, b"c", -100, b".git", 2)'
        ),
        Target.is_planted,
    ),
    Escape(
        "link into .git by a descriptor",
        _python(
            'open("c", "w").close(); file = os.open("c", os.O_RDONLY)\n'
            'os.link(f"/proc/self/fd/{file}", ".git/hooks/x", src_dir_fd=file)'
        ),
        Target.is_planted,
    ),
    Escape(
        "move the folder of .git",
        _sh("mv inner moved; echo x >moved/.git/config"),
        Target.is_planted,
    ),
    Escape(
        "make .git where there is none",
        _sh("mkdir $BARE/.git; echo x >$BARE/.git/config"),
        Target.is_planted,
    ),
    Escape(
        "replace a .git that is a link",
        _sh("cd $LINKED; rm .git; mkdir .git; echo x >.git/config"),
        Target.is_planted,
    ),
    Escape(
        "move what .git leads to",
        _sh("cd $LINKED; mv a b; mkdir -p a/git; echo x >a/git/config"),
        Target.is_planted,
    ),
    Escape(
        "make what .codex leads to",
        _sh("cd $LINKED; mkdir -p later/codex; echo x >later/codex/config.toml"),
        Target.is_planted,
    ),
    Escape(
        "make .codex as the command ends",
        _python(
            "import time\n"
            # Until long after the command has ended, but not for minutes where nothing kills them.
            "ends = time.monotonic() + 10\n"
            "for number in range(20):\n"
            '    os.makedirs(f"own{number}/x")\n'
            "    if not os.fork():\n"
            "        os.closerange(0, 3); os.setsid()\n"
            "        while time.monotonic() < ends:\n"
            '            try: os.rename(f"own{number}", ".codex")\n'
            "            except OSError: pass\n"
            "        os._exit(0)"
        ),
        Target.is_planted,
    ),
    Escape(
        "plant a hook above, below a temporary folder",
        _sh("echo x >$PROJECT/.git/hooks/x"),
        Target.is_planted,
    ),
    Escape(
        "make .codex above, below a temporary folder",
        _sh("mkdir $PROJECT/.codex; echo x >$PROJECT/.codex/config.toml"),
        Target.is_planted,
    ),
    Escape(
        "change the rules of the home",
        _sh(
            "echo x >>$CODEX_HOME/rules/config; mkdir $CODEX_HOME/hooks; >$CODEX_HOME/hooks/x"
        ),
        Target.is_planted,
    ),
    Escape(
        "read a stored login",
        _sh("grep -q secret $CODEX_HOME/auth.json && echo escaped"),
        Target.has_escapee,
    ),
    Escape(
        "write to a named pipe outside",
        _python(
            'os.write(os.open(env["PIPES"] + "/in.pipe", os.O_WRONLY | os.O_NONBLOCK), b"x")'
        ),
        Target.is_written_to,
    ),
    Escape(
        _READ_PIPE,
        _python(
            'if os.read(os.open(env["PIPES"] + "/out.pipe", os.O_RDONLY | os.O_NONBLOCK), 9): print("escaped")'
        ),
        Target.has_escapee,
    ),
    Escape(
        "read what is typed into another terminal",
        _python(
            'if os.read(os.open(env["TERMINAL"], os.O_RDONLY | os.O_NONBLOCK), 9): print("escaped")'
        ),
        Target.has_escapee,
    ),
    Escape(
        "get what is mounted outside later",
        _sh(
            '[ "$(readlink /proc/self/ns/mnt)" != "$MOUNTS" ] '
            "&& grep -q ' master:\\| shared:' /proc/self/mountinfo && echo escaped"
        ),
        Target.has_escapee,
    ),
    Escape(
        "live on in another session",
        _sh(
            "(exec 9>line.pipe; env -i setsid sleep 5 </dev/null >/dev/null 2>&1 9>&9 &)"
        ),
        Target.is_survived,
    ),
    Escape(
        "mount over .git",
        _sh("mkdir m; mount --bind m .git && >.git/x"),
        Target.is_planted,
    ),
    Escape(
        "unmount",
        _sh("umount .git; umount -l .; echo x >.git/hooks/x"),
        Target.is_planted,
    ),
    Escape(
        "a user namespace of one's own",
        _sh("unshare -Ur true && echo escaped"),
        Target.has_escapee,
    ),
    Escape(
        "connect by TCP",
        _connect("", '("127.0.0.1", int(env["TCP"]))'),
        Target.is_reached,
    ),
    Escape(
        "send by UDP",
        _connect("type=socket.SOCK_DGRAM", '("127.0.0.1", int(env["UDP"]))'),
        Target.is_reached,
    ),
    Escape(
        "connect to a socket file",
        _connect("socket.AF_UNIX", 'env["STREAM"]'),
        Target.is_reached,
    ),
    Escape(
        "send to a socket file",
        _connect("socket.AF_UNIX, socket.SOCK_DGRAM", 'env["DATAGRAM"]'),
        Target.is_reached,
    ),
    Escape(
        "send from one of a pair",
        _python(
            'a, b = socket.socketpair(type=socket.SOCK_DGRAM); a.sendto(b"x", env["DATAGRAM"])'
        ),
        Target.is_reached,
    ),
    Escape(
        "connect to an abstract socket",
        _connect("socket.AF_UNIX", r'"\0" + env["ABSTRACT"]'),
        Target.is_reached,
    ),
    Escape(
        "a socket of the kernel",
        _python(
            'socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print("escaped")'
        ),
        Target.has_escapee,
    ),
    Escape(
        _CHANGE_DEVICE,
        _python(
            'for name in "/dev/null", "/dev/zero", "/proc/self/fd/0":\n'
            "    try:\n"
            "        os.chmod(name, os.stat(name).st_mode & 0o7777)\n"
            '        print("escaped")\n'
            "    except OSError:\n"
            "        continue"
        ),
        Target.has_escapee,
    ),
    Escape("io_uring", _system_call(425, 425, "8, buffer"), Target.has_escapee),
    Escape("kill a process outside", _sh("kill -KILL $VICTIM"), Target.is_hurt),
    Escape(
        "slow a process outside",
        _python(
            'victim = int(env["VICTIM"])\n'
            "idle = os.SCHED_IDLE, os.sched_param(0)\n"
            "for slow in (\n"
            "    lambda: os.setpriority(os.PRIO_PROCESS, victim, 12),\n"
            "    lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(victim), 12),\n"
            "    lambda: os.sched_setaffinity(victim, [min(os.sched_getaffinity(0))]),\n"
            "    lambda: os.sched_setscheduler(victim, *idle),\n"
            "    lambda: os.sched_setparam(victim, os.sched_param(0)),\n"
            "):\n"
            "    try:\n"
            "        slow()\n"
            '        print("escaped")\n'
            "    except OSError:\n"
            "        continue"
        ),
        Target.has_escapee,
    ),
    Escape(
        "slow the disk for a process outside",
        _system_call(251, 30, '1, int(env["VICTIM"]), 3 << 13'),
        Target.has_escapee,
    ),
    Escape(
        "limit a process outside",
        _python(
            "import resource\n"
            'resource.prlimit(int(env["VICTIM"]), resource.RLIMIT_NOFILE, (9, 9)); print("escaped")'
        ),
        Target.has_escapee,
    ),
    Escape(
        "trace a process",
        _system_call(101, 117, '16, int(env["VICTIM"]), 0, 0'),
        Target.has_escapee,
    ),
    Escape(
        "read the keys of the kernel",
        _system_call(250, 219, "0, -3, 1"),
        Target.has_escapee,
    ),
    Escape(
        "type into the terminal",
        _python('import fcntl\nfcntl.ioctl(0, 0x5412, b"x"); print("escaped")'),
        Target.has_escapee,
    ),
)
