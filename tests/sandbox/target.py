"""What ways out of the sandbox are tried against: made for one attempt, and looked at afterwards."""

import os
import select
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from codex_py.protocol.approval import SandboxPolicy

# What a process may take to die of a signal that it was sent already.
_DEATH_S = 0.3
_CONFIGURATIONS = (
    *("work/.git/config", "work/inner/.git/config", "linked/.git/config"),
    *("temporary/project/.git/config", "home/rules/config"),
)
_TCP, _UDP, _STREAM, _DATAGRAM, _ABSTRACT = (
    "TCP",
    "UDP",
    "STREAM",
    "DATAGRAM",
    "ABSTRACT",
)


@dataclass(slots=True)
class Target:
    """A workspace with an inner root, one whose protected names are links, one below a folder for temporary
    files, `$CODEX_HOME` with a login; outside a folder, pipes, a terminal, a process, and sockets that listen."""

    folder: Path
    output: str = ""
    """What the script has printed."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _sockets: dict[str, socket.socket] = field(default_factory=dict[str, socket.socket])
    _pipes: dict[str, int] = field(default_factory=dict[str, int])
    _victim: subprocess.Popen[bytes] = field(init=False)
    _terminal: str = field(init=False)

    def __enter__(self) -> Self:
        for name in (
            *("work/.git/hooks", "work/inner/.git", "bare", "linked/a/git", "outside"),
            *("temporary/project/.git/hooks", "temporary/project/sub", "home/rules"),
        ):
            (self.folder / name).mkdir(parents=True)
        (self.linked / ".git").symlink_to("a/git")
        (self.linked / ".codex").symlink_to("later/codex")
        for name in (*_CONFIGURATIONS, "outside/kept"):
            (self.folder / name).write_text("kept\n", encoding="ascii")
        (self.outside / "kept").chmod(0o600)
        (self.home / "auth.json").write_text("secret\n", encoding="ascii")
        for name in ("line", "in", "out"):
            self._make_pipe(name)
        os.write(self._pipes["out"], b"secret\n")
        keyboard, terminal = os.openpty()
        self._stack.callback(os.close, keyboard)
        self._stack.callback(os.close, terminal)
        self._terminal = os.ttyname(terminal)
        os.write(keyboard, b"secret\n")
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
    def home(self) -> Path:
        """The `$CODEX_HOME` of the command."""
        return self.folder / "home"

    @property
    def policy(self) -> SandboxPolicy:
        return SandboxPolicy(
            "workspace-write",
            (
                *(self.work, self.work / "inner", self.folder / "bare", self.linked),
                *(
                    self.folder / "temporary/project/sub",
                    self.home,
                    self.home / "rules",
                ),
            ),
            exclude_slash_tmp=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """For a script: where things are."""
        sockets = {
            name: str(
                s.getsockname()[1]
                if s.family == socket.AF_INET
                else self.folder / name[0].lower()
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
            "TMPDIR": str(self.folder / "temporary"),
            "PROJECT": str(self.folder / "temporary/project"),
            "CODEX_HOME": str(self.home),
            "PIPES": str(self.folder),
            "TERMINAL": self._terminal,
            "MOUNTS": self._mounts(),
            "PYTHON": os.path.realpath(sys.executable),
        }

    def _mounts(self) -> str:
        if sys.platform != "linux":
            return ""
        return os.readlink("/proc/self/ns/mnt")  # noqa: PTH115

    def is_changed(self) -> bool:
        """Whether anything outside is not as it was."""
        kept = self.outside / "kept"
        return (
            os.listdir(self.outside) != ["kept"]
            or kept.read_text(encoding="ascii") != "kept\n"
            or kept.stat().st_mode & 0o777 != 0o600
        )

    def is_planted(self) -> bool:
        """Whether a protected name is there that was not, or holds something else."""
        for config in (self.folder / name for name in _CONFIGURATIONS):
            if not config.is_file() or config.read_text(encoding="ascii") != "kept\n":
                return True
        new = (
            *(".git/hooks", ".codex", "../bare/.git", "../linked/.codex"),
            *("../temporary/project/.git/hooks", "../temporary/project/.codex"),
            *("../home/hooks", "../home/rules/new"),
        )
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

    def is_written_to(self) -> bool:
        """Whether something came through the pipe outside."""
        return bool(select.select([self._pipes["in"]], [], [], 0)[0])

    def is_survived(self) -> bool:
        """Whether a process lives on that holds the line."""
        return not select.select([self._pipes["line"]], [], [], _DEATH_S)[0]

    def has_escapee(self) -> bool:
        """Whether the script says that it could do what is not seen from here."""
        return "escaped" in self.output.split()

    def _make_pipe(self, name: str) -> None:
        path = self.folder / ("work" if name == "line" else "") / f"{name}.pipe"
        os.mkfifo(path)
        flags = os.O_RDWR if name == "out" else os.O_RDONLY
        self._pipes[name] = os.open(path, flags | os.O_NONBLOCK)
        self._stack.callback(os.close, self._pipes[name])

    def _listen(
        self, name: str, family: int, kind: int, address: str | tuple[str, int]
    ) -> None:
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        self._sockets[name] = listener
