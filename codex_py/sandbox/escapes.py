"""Ways out of the sandbox, tried for real against a target that is made for it."""

import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.ladder import LadderSandbox
from codex_py.sandbox.rungs import Rung

_TIMEOUT_S = 20.0
# What a process may take to die of a signal that it was sent already.
_DEATH_S = 0.3
_CONFIGURATIONS = ("work/.git/config", "work/inner/.git/config", "linked/.git/config")
_TCP, _UDP, _STREAM, _DATAGRAM, _ABSTRACT = "TCP", "UDP", "STREAM", "DATAGRAM", "ABSTRACT"


@dataclass(slots=True)
class Target:
    """A workspace with an inner root, one whose protected names are links, a folder outside, a process,
    and sockets that listen."""

    folder: Path
    output: str = ""
    """What the script has printed."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _sockets: dict[str, socket.socket] = field(default_factory=dict[str, socket.socket])
    _victim: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        for name in ("work/.git/hooks", "work/inner/.git", "bare", "linked/a/git", "outside"):
            (self.folder / name).mkdir(parents=True)
        (self.linked / ".git").symlink_to("a/git")
        (self.linked / ".codex").symlink_to("later/codex")
        for name in (*_CONFIGURATIONS, "outside/kept"):
            (self.folder / name).write_text("kept\n", encoding="ascii")
        (self.outside / "kept").chmod(0o600)
        self._victim = self._stack.enter_context(
            subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        )
        self._listen(_TCP, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._listen(_UDP, socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._listen(_STREAM, socket.AF_UNIX, socket.SOCK_STREAM, f"{self.folder}/s")
        self._listen(_DATAGRAM, socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.folder}/d")
        if sys.platform == "linux":
            name = f"\0codex-py-{os.getpid()}"
            self._listen(_ABSTRACT, socket.AF_UNIX, socket.SOCK_STREAM, name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._victim.kill()
        self._stack.close()

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def linked(self) -> Path:
        return self.folder / "linked"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def policy(self) -> SandboxPolicy:
        return SandboxPolicy(
            "workspace-write",
            (self.work, self.work / "inner", self.folder / "bare", self.linked),
            exclude_slash_tmp=True,
            exclude_tmpdir_env_var=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """For a script: where things are."""
        sockets = {
            name: str(
                s.getsockname()[1] if s.family == socket.AF_INET else self.folder / name[0].lower()
            )
            for name, s in self._sockets.items()
            if name != _ABSTRACT
        }
        return {
            **os.environ,
            **sockets,
            _ABSTRACT: f"codex-py-{os.getpid()}",
            "OUT": str(self.outside),
            "BARE": str(self.folder / "bare"),
            "LINKED": str(self.linked),
            "VICTIM": str(self._victim.pid),
            "PYTHON": os.path.realpath(sys.executable),
        }

    def is_changed(self) -> bool:
        """Whether anything outside is not as it was."""
        kept = self.outside / "kept"
        return (
            os.listdir(self.outside) != ["kept"]  # noqa: PTH208
            or kept.read_text(encoding="ascii") != "kept\n"
            or kept.stat().st_mode & 0o777 != 0o600
        )

    def is_planted(self) -> bool:
        """Whether a protected name is there that was not, or holds something else."""
        for config in (self.folder / name for name in _CONFIGURATIONS):
            if not config.is_file() or config.read_text(encoding="ascii") != "kept\n":
                return True
        new = (".git/hooks", ".codex", "../bare/.git", "../linked/.codex")
        return any(any((self.work / name).glob("*")) for name in new)

    def is_hurt(self) -> bool:
        try:
            self._victim.wait(_DEATH_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_reached(self) -> bool:
        """Whether anyone has connected or sent something."""
        return bool(select.select(list(self._sockets.values()), [], [], 0)[0])

    def has_escapee(self) -> bool:
        """Whether the script says that it could do what is not seen from here."""
        return "escaped" in self.output.split()

    def _listen(self, name: str, family: int, kind: int, address: str | tuple[str, int]) -> None:
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        self._sockets[name] = listener


@dataclass(frozen=True, slots=True)
class Escape:
    """One way out."""

    name: str
    script: str
    """For `sh`, with the working directory `work` and the variables of the target. It says when it begins,
    and may fail then."""
    happened: Callable[[Target], bool]


KNOWN_OPEN = {
    "landlock": {
        *("change a mode outside", "change the flags of a file outside"),
        "make .git where there is none",
    },
    "bwrap": {"replace a .git that is a link"},
}
"""What a rung can not hold, by its nature."""


def try_escape(escape: Escape, rung: Rung) -> bool:
    """Whether the rung holds it.

    Raises:
        ToolError: the rung does not work here, or the script did not come to try it. That is neither
            of the two answers: a machine that is short of memory would seem to hold everything.
        OSError: the target can not be made, as where no socket can be.
    """
    folder = Path(tempfile.mkdtemp(prefix="codex-py-escape-")).resolve()
    try:
        with Target(folder) as target:
            sandbox = LadderSandbox(target.environment, rungs=[rung])
            try:
                done = subprocess.run(
                    sandbox.command(["/bin/sh", "-c", escape.script], target.policy, target.work),
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
                return not escape.happened(target)
            finally:
                sandbox.release()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_TRIED = "tried"


def _sh(script: str) -> str:
    return f"echo {_TRIED}; {script}"


def _python(code: str) -> str:
    begin = f'import ctypes, os, socket\nenv = os.environ\nprint("{_TRIED}", flush=True)'
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
        "cut a file outside", _python('os.truncate(env["OUT"] + "/kept", 0)'), Target.is_changed
    ),
    Escape(
        "cut a file outside that is only opened for reading",
        _python('os.open(env["OUT"] + "/kept", os.O_RDONLY | os.O_TRUNC)'),
        Target.is_changed,
    ),
    Escape("remove outside", _sh("rm -f $OUT/kept"), Target.is_changed),
    Escape("write through a link", _sh("ln -s $OUT link; echo x >link/a"), Target.is_changed),
    Escape("write through a hard link", _sh("ln $OUT/kept hard; echo x >>hard"), Target.is_changed),
    Escape(
        "write through /proc/self/root", _sh("echo x >/proc/self/root$OUT/a"), Target.is_changed
    ),
    Escape(
        "write through another process", _sh("echo x >/proc/$VICTIM/root$OUT/a"), Target.is_changed
    ),
    Escape("write through our parent", _sh("echo x >/proc/$PPID/root$OUT/a"), Target.is_changed),
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
    Escape("make a device", _sh("mknod disk b 1 0 && echo escaped"), Target.has_escapee),
    Escape("plant a hook", _sh("echo x >.git/hooks/post-commit"), Target.is_planted),
    Escape("replace .git", _sh("mv .git old; mkdir .git; echo x >.git/config"), Target.is_planted),
    Escape("make .codex", _sh("mkdir .codex; echo x >.codex/config.toml"), Target.is_planted),
    Escape(
        "replace what keeps .codex", _sh("rmdir .codex; mkdir .codex; >.codex/x"), Target.is_planted
    ),
    Escape("link .codex", _sh("mkdir c; >c/x; rmdir .codex; ln -s c .codex"), Target.is_planted),
    Escape("move .codex there", _sh("mkdir c; >c/x; mv -T c .codex"), Target.is_planted),
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
    Escape("mount over .git", _sh("mkdir m; mount --bind m .git && >.git/x"), Target.is_planted),
    Escape("unmount", _sh("umount .git; umount -l .; echo x >.git/hooks/x"), Target.is_planted),
    Escape(
        "a user namespace of one's own", _sh("unshare -Ur true && echo escaped"), Target.has_escapee
    ),
    Escape("connect by TCP", _connect("", '("127.0.0.1", int(env["TCP"]))'), Target.is_reached),
    Escape(
        "send by UDP",
        _connect("type=socket.SOCK_DGRAM", '("127.0.0.1", int(env["UDP"]))'),
        Target.is_reached,
    ),
    Escape(
        "connect to a socket file", _connect("socket.AF_UNIX", 'env["STREAM"]'), Target.is_reached
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
        _python('socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print("escaped")'),
        Target.has_escapee,
    ),
    Escape("io_uring", _system_call(425, 425, "8, buffer"), Target.has_escapee),
    Escape("kill a process outside", _sh("kill -KILL $VICTIM"), Target.is_hurt),
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
    Escape("read the keys of the kernel", _system_call(250, 219, "0, -3, 1"), Target.has_escapee),
    Escape(
        "type into the terminal",
        _python('import fcntl\nfcntl.ioctl(0, 0x5412, b"x"); print("escaped")'),
        Target.has_escapee,
    ),
)
