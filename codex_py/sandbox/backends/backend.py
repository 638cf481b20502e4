"""The ways to hold a command on this platform, the strongest first."""

import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import codex_py
from codex_py.protocol.limits import DEFAULT_LIMITS, SandboxLimits
from codex_py.sandbox.backends import seatbelt
from codex_py.sandbox.backends.bubblewrap import bwrap_command, find_bwrap
from codex_py.sandbox.backends.ulimit import limited
from codex_py.sandbox.child import landlock
from codex_py.sandbox.child.seccomp import filter_program
from codex_py.sandbox.layout import Layout, Roots, absent_names

_PROBE_TIMEOUT_S = 10.0
# A package with our path, and without those around it: the `typing` that they import would cost 5 ms.
_START = (
    "import sys; package = type(sys)('codex_py.sandbox.child'); "
    "package.__path__ = [sys.argv.pop(1)]; "
    "sys.modules['codex_py'] = sys.modules[package.__name__] = package; "
    "from codex_py.sandbox.child.launcher import main; main(sys.argv[1:])"
)
_SHARED_MEMORY = "/dev/shm"
"""Where the locks are that processes share, as those of Python's `multiprocessing`. A view has its own;
elsewhere it is as open as `/tmp`."""
_PACKAGE = Path(codex_py.__file__).resolve().parent
_CHILD = str(_PACKAGE / "sandbox" / "child")


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def command(
        self, argv: Sequence[str], view: Layout, roots: Roots, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        """What runs `argv` in the view; None where what that takes is not on this machine.

        `alive`: see `LivenessPipe.pipe`; empty where nobody is going to ask.
        """
        ...


class LauncherBackend:
    """Held by our own launcher."""

    def __init__(self, name: str, limits: SandboxLimits) -> None:
        """`name`: see `launcher`."""
        self.name = name
        self._limits = limits

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        roots: Roots,
        cwd: Path,  # noqa: ARG002
        alive: str = "",
    ) -> list[str] | None:
        is_supervised = self.name == "supervised"
        is_landlock = is_supervised or self.name == "landlock"
        guard_truncate = is_landlock and landlock.version() < landlock.TRUNCATE_SINCE
        program = filter_program(
            os.uname().machine,
            offline=view.offline,
            guard_truncate=guard_truncate,
            supervised=is_supervised,
        )
        if program is None or not sys.executable:
            return None
        words = [os.path.realpath(sys.executable), "-I", "-S", "-c", _START, _CHILD]
        words += [self.name, f"filter={program.hex()}", f"alive={alive}"]
        words += [f"processes={self._limits.max_processes}", f"files={self._limits.max_open_files}"]
        if self._limits.max_memory_mb is not None:
            words.append(f"memory={self._limits.max_memory_mb << 20}")
        if view.offline:
            words.append("offline")
        for path in view.writable:
            # Alone, Landlock gives a folder whole or in parts, and a temporary one is of no use in parts.
            whole = self.name == "landlock" and path in view.temporary
            words.append(f"{'whole' if whole else 'write'}={path}")
        if is_landlock and Path("/tmp") in view.writable:
            words.append(f"whole={_SHARED_MEMORY}")
        words += [f"protect={path}" for path in view.protected]
        words += [f"{'protect' if is_landlock else 'link'}={path}" for path in view.links]
        words += [f"hide={path}" for path in view.hidden]
        if is_supervised:
            # It keeps names from coming to be, without anything in their place.
            words += [f"protect={path}" for path in absent_names(roots)]
        return [*words, "--", *argv]


class BubblewrapBackend:
    name = "bwrap"

    def __init__(self, search_path: str, limits: SandboxLimits) -> None:
        self._search_path = search_path
        self._limits = limits
        self._user_namespace = os.geteuid() != 0
        self._filters: dict[bool, int] = {}

    def command(
        self, argv: Sequence[str], view: Layout, roots: Roots, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        bwrap = find_bwrap(self._search_path, [*roots.all, *([cwd] if cwd.parent != cwd else [])])
        program = filter_program(os.uname().machine, offline=view.offline)
        if bwrap is None or program is None:
            return None
        if view.offline not in self._filters:
            descriptor = _in_memory(program)
            self._filters[view.offline] = descriptor
            weakref.finalize(self, os.close, descriptor)
        return bwrap_command(
            bwrap,
            limited(argv, self._limits, processes=self._user_namespace),
            view,
            cwd,
            filter_file=f"/proc/{os.getpid()}/fd/{self._filters[view.offline]}",
            info_file=alive or os.devnull,
            user_namespace=self._user_namespace,
        )


class SeatbeltBackend:
    name = "seatbelt"

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        roots: Roots,
        cwd: Path,  # noqa: ARG002
        alive: str = "",  # noqa: ARG002
    ) -> list[str] | None:
        if not os.access(seatbelt.SANDBOX_EXEC, os.X_OK):
            return None
        return seatbelt.seatbelt_command(limited(argv, self._limits, processes=False), view, roots)


def platform_backends(search_path: str, limits: SandboxLimits = DEFAULT_LIMITS) -> list[Backend]:
    """All there are for this platform, whether they work here or not. `search_path`: a `$PATH`."""
    match sys.platform:
        case "linux":
            return [
                LauncherBackend("namespaces", limits),
                BubblewrapBackend(search_path, limits),
                LauncherBackend("views", limits),
                LauncherBackend("supervised", limits),
                LauncherBackend("landlock", limits),
            ]
        case "darwin":
            return [SeatbeltBackend(limits)]
        case _:
            return []


def problem(backend: Backend) -> str | None:
    """Why the backend cannot be used here, in a few words; None if it can. Tries it: some 15 ms."""
    root = Path("/")
    command = backend.command(
        ["/bin/sh", "-c", ": >/dev/null"], Layout((), (), (), offline=True), Roots(), root
    )
    if command is None:
        return "not there"
    try:
        tried = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=root,
            timeout=_PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode == 0:
        return None
    lines = tried.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].rpartition(": ")[2] if lines else f"exit code {tried.returncode}"


def own_paths() -> tuple[Path, ...]:
    """What we run ourselves: a command that could write there would run outside with the next one."""
    # Where we were installed, what we import lies beside us.
    return (_PACKAGE, *map(Path, (sys.executable, sys.prefix, sys.base_prefix)))


def _in_memory(data: bytes) -> int:
    """A descriptor of a file that lies nowhere and that holds the data."""
    if sys.platform != "linux":
        raise NotImplementedError
    descriptor = os.memfd_create("filter")
    os.write(descriptor, data)
    return descriptor
