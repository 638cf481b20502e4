"""Tries ten ways to escape from the sandbox, to show how well a backend works on this machine."""

import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox

_TIMEOUT_S = 20.0
_DEATH_S = 0.3
"""The time that a process may take to die of a signal that was already sent."""


class _Scene:
    """The folders and targets of the attempts.

    `work` and `bare` are workspaces. Out of bounds are `home`, `outside`, two sockets and a
    process.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        for name in ("work/.git/hooks", "bare", "home", "outside"):
            (folder / name).mkdir(parents=True)
        (folder / "home/auth.json").write_text("secret", encoding="ascii")
        (folder / "outside/kept").touch(0o600)
        os.mkfifo(folder / "work/line")
        self.folder = folder
        self.line = os.open(folder / "work/line", os.O_RDONLY | os.O_NONBLOCK)
        """A named pipe that a process can hold open for writing."""
        stack.callback(os.close, self.line)
        self.tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.stream = stack.enter_context(socket.socket(socket.AF_UNIX))
        self.stream.bind(f"{folder}/socket")
        self.stream.listen()
        self.process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-IS", "-c", "import time; time.sleep(60)"],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # Ctrl-C of the user ends it with a traceback.
            )
        )
        stack.callback(self.process.kill)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def has_login(self) -> bool:
        """True if the command could copy the login."""
        copied = self.folder / "work/login"
        return copied.exists() and copied.stat().st_size > 0

    def has_changed_mode(self) -> bool:
        mode = (self.folder / "outside/kept").stat().st_mode
        return stat.S_IMODE(mode) != 0o600

    def is_killed(self) -> bool:
        """True if the process outside was killed."""
        try:
            return self.process.wait(_DEATH_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt to escape."""

    name: str
    attempt: str
    """A line of Python. An `OSError` ends the attempt."""
    got_out: Callable[[_Scene], bool]
    """Tells whether the attempt got out. It looks from outside, after the command has ended."""


PROBES = (
    Probe(
        "write outside", 'open(f"{outside}/new", "w")', lambda s: s.has("outside/new")
    ),
    Probe(
        "change a mode outside",
        'os.chmod(f"{outside}/kept", 0o644)',
        lambda s: s.has_changed_mode(),
    ),
    Probe(
        "write through another process",
        'open(f"/proc/{process}/root{outside}/through", "w")',
        lambda s: s.has("outside/through"),
    ),
    Probe(
        "plant a git hook",
        'open(".git/hooks/post-commit", "w")',
        lambda s: s.has("work/.git/hooks/post-commit"),
    ),
    Probe(
        "make .git where there is none",
        'os.makedirs("../bare/.git", exist_ok=True); open("../bare/.git/config", "w")',
        lambda s: s.has("bare/.git/config"),
    ),
    Probe(
        "read a stored login",
        'open("login", "w").write(open("../home/auth.json").read())',
        lambda s: s.has_login(),
    ),
    Probe(
        "connect by TCP",
        'socket.create_connection(("127.0.0.1", port), 1)',
        lambda s: _is_ready(s.tcp),
    ),
    Probe(
        "connect to a socket file",
        'socket.socket(socket.AF_UNIX).connect("../socket")',
        lambda s: _is_ready(s.stream),
    ),
    Probe(
        "kill a process outside",
        "os.kill(process, signal.SIGKILL)",
        lambda s: s.is_killed(),
    ),
    Probe(
        "leave a process behind",
        'os.open("line", os.O_WRONLY); os.fork() or (os.setsid(), os.closerange(0, 3), time.sleep(5))',
        # Once no process holds the pipe, it is at its end, and so ready.
        lambda s: not _is_ready(s.line, _DEATH_S),
    ),
)
KNOWN_OPEN = {"landlock": {"change a mode outside", "make .git where there is none"}}
"""The probes that get out of a backend by its nature; see docs/sandbox.md."""

_SCRIPT = """
import os, signal, socket, sys, time
outside, process, port = sys.argv[1] + "/outside", int(sys.argv[2]), int(sys.argv[3])
""" + "".join(
    f"print({probe.name!r}, flush=True)\ntry: {probe.attempt}\nexcept OSError: pass\n"
    for probe in PROBES
)


def run_probes(backend: Backend) -> dict[str, bool | None]:
    """Run all probes in one command.

    Returns:
        For each probe, True if it was held, False if it got out, None if it could not be tried.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix="codex-py-probe-") as name,
            ExitStack() as stack,
        ):
            scene = _Scene(Path(name).resolve(), stack)
            tried = _run_script(backend, scene)
            held: dict[str, bool | None] = {}
            for probe in PROBES:
                if probe.name in tried:
                    held[probe.name] = not probe.got_out(scene)
                else:
                    held[probe.name] = None
            return held
    except (OSError, ToolError, subprocess.TimeoutExpired):
        return dict.fromkeys(probe.name for probe in PROBES)


def _run_script(backend: Backend, scene: _Scene) -> list[str]:
    """Run the script of all attempts; returns the names of the probes that were tried.

    Raises:
        OSError, ToolError, subprocess.TimeoutExpired: the command could not run to its end.
    """
    _, port = scene.tcp.getsockname()
    argv = [
        os.path.realpath(sys.executable),
        "-I",
        "-S",
        "-c",
        _SCRIPT,
        str(scene.folder),
        str(scene.process.pid),
        str(port),
    ]
    work = scene.folder / "work"
    roots = (work, scene.folder / "bare")
    policy = SandboxPolicy(
        "workspace-write", roots, exclude_slash_tmp=True, exclude_tmpdir_env_var=True
    )
    sandbox = PlatformSandbox(
        os.environ, home=scene.folder / "home", backends=[backend]
    )
    try:
        done = subprocess.run(
            sandbox.command(argv, policy, work),
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    finally:
        sandbox.release()
    return done.stdout.decode(errors="replace").splitlines()


def _is_ready(file: socket.socket | int, timeout_s: float = 0.0) -> bool:
    """True if a file can be read, or is at its end."""
    ready, _, _ = select.select([file], [], [], timeout_s)
    return bool(ready)
