"""Ten attempts to escape from the sandbox. They show how well a backend works on this machine."""

import os
import select
import signal
import socket
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
    """Two workspaces, `work` and `bare`; and targets out of bounds.

    The targets are `home`, `outside`, two sockets and a process.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        for name in ("work/.git/hooks", "bare", "home", "outside"):
            (folder / name).mkdir(parents=True)
        (folder / "home/auth.json").write_text("secret", encoding="ascii")
        (folder / "outside/kept").touch(0o600)
        os.mkfifo(folder / "work/line")
        self.folder = folder
        self.line = os.open(folder / "work/line", os.O_RDONLY | os.O_NONBLOCK)
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

    def is_killed(self) -> bool:
        try:
            return self.process.wait(_DEATH_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    attempt: str
    """A line of Python. An `OSError` ends the attempt."""
    got_out: Callable[[_Scene], bool]
    """Checks for an escape from outside, after the command has ended."""


PROBES = (
    Probe(
        "write outside", 'open(f"{outside}/new", "w")', lambda s: s.has("outside/new")
    ),
    Probe(
        "change a mode outside",
        'os.chmod(f"{outside}/kept", 0o644)',
        lambda s: (s.folder / "outside/kept").stat().st_mode & 0o777 != 0o600,
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
        lambda s: (
            s.has("work/login") and bool((s.folder / "work/login").stat().st_size)
        ),
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
        # When no process holds the pipe any more, it is at its end, and so ready.
        lambda s: not _is_ready(s.line, _DEATH_S),
    ),
)
KNOWN_OPEN = {"landlock": {"change a mode outside", "make .git where there is none"}}
"""The probes that a backend by its nature cannot hold; see docs/sandbox.md."""

_SCRIPT = """
import os, signal, socket, sys, time
outside, process, port = sys.argv[1] + "/outside", int(sys.argv[2]), int(sys.argv[3])
""" + "".join(
    f"print({probe.name!r}, flush=True)\ntry: {probe.attempt}\nexcept OSError: pass\n"
    for probe in PROBES
)


def run_probes(backend: Backend) -> dict[str, bool | None]:
    """Run all probes in one command.

    True for the probes that were held, False for escapes, None for probes that could not be tried.
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
    """The names of the probes that were tried."""
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
    return bool(select.select([file], [], [], timeout_s)[0])
