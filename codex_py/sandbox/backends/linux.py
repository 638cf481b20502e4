"""Confinement on Linux: by our own launcher, which needs nothing installed, or by bubblewrap."""

import os
import sys
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path

from codex_py.programs import find_program
from codex_py.protocol.approval import SandboxLimits
from codex_py.sandbox.backends.backend import limited
from codex_py.sandbox.child import landlock
from codex_py.sandbox.child.seccomp import filter_program
from codex_py.sandbox.layout import PACKAGE, Layout, absent_names, is_inside

# The package of the launcher, without its parent packages, whose imports would cost 5 ms.
_START = (
    "import sys; package = type(sys)('codex_py.sandbox.child'); "
    "package.__path__ = [sys.argv.pop(1)]; "
    "sys.modules['codex_py'] = sys.modules[package.__name__] = package; "
    "from codex_py.sandbox.child.{} import main; main(sys.argv[1:])"
)
_CHILD = str(PACKAGE / "sandbox" / "child")
_SHARED_MEMORY = "/dev/shm"
"""The folder with the locks that processes share, such as those of Python's `multiprocessing`. A
view has its own; with Landlock it is as open as `/tmp`."""
# A shell opens both files, because our own descriptors are closed when a command starts. Descriptor
# 9 has the seccomp filter; to 8, bwrap writes the id of its first process, as JSON.
_WITH_FILES = 'info=$1; shift; exec "$@" 9<"$0" 8>"$info"'
# When the command ends, bwrap kills the processes that it left behind. So a shell runs the command,
# and waits for them as `child.leftovers` does. The shell prints no messages of its own, such as one
# about a signal that ended the command.
_OUTLIVE = r"""
trap : HUP INT QUIT TERM
exec 3>&2 2>/dev/null
(exec "$@") 2>&3 3>&-
code=$?
exec 3>&-
look() {
  seen=
  for process in /proc/[0-9]*; do
    case $process in /proc/1 | "/proc/$$") continue ;; esac
    read -r stat <"$process/stat" || continue
    { read -r _ && read -r written; } <"$process/io" || written=
    seen="$seen$stat $written"
  done
}
before= quiet=0 looks=0
while look; [ -n "$seen" ] && [ "$looks" -lt 90 ]; do
  case $seen in "$before") quiet=$((quiet + 1)) ;; *) quiet=0 ;; esac
  case $seen in *') R '* | *') D '*) ;; *) [ "$quiet" -lt 15 ] || break ;; esac
  before=$seen looks=$((looks + 1))
  sleep 0.02
done
exit "$code"
"""
_ATTACH_BY_ADMINISTRATORS_ALONE = 2
_ROOT = Path("/")
_MAX_WORDS = 100
_MAX_SPILLS = 16
"""The number of word files that are kept. A command that started earlier has already read its
own."""
_MAX_BWRAP_WORDS = 8000
"""The most words for bwrap, which accepts 9000."""


class LauncherBackend:
    """Confinement by `sandbox.child.launcher`."""

    def __init__(self, name: str, limits: SandboxLimits) -> None:
        """`name`: `namespaces`, `views`, `supervised` or `landlock`; see the launcher."""
        self.name = name
        self._limits = [
            f"processes={limits.max_processes}",
            f"files={limits.max_open_files}",
        ]
        """The words for the limits of a command."""
        if limits.max_memory_mb is not None:
            self._limits.append(f"memory={limits.max_memory_mb << 20}")
        self._spills: list[int] = []

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        cwd: Path,  # noqa: ARG002
        alive: str = "",
    ) -> list[str] | None:
        is_supervised = self.name == "supervised"
        is_landlock = is_supervised or self.name == "landlock"
        is_isolated = not is_landlock and (view.offline or bool(view.proxy))

        def program(*, local: bool = False) -> bytes | None:
            return filter_program(
                os.uname().machine,
                offline=view.offline and not is_isolated,
                isolated=is_isolated,
                local=local,
                guard_truncate=is_landlock
                and landlock.version() < landlock.TRUNCATE_SINCE,
                root=os.geteuid() == 0,
                tracing=self._reaches_own_processes_alone,
                backend=self.name,
            )

        without_sockets = program()
        # With `views`, the process that waits for the command has another view.
        supervises = is_isolated and self.name == "namespaces" and _may_supervise()
        with_sockets = program(local=True) if supervises else None
        if without_sockets is None or not sys.executable:
            return None
        if view.proxy:
            module = "proxied"
        elif is_supervised:
            module = "supervised"
        else:
            module = "launcher"
        words = [*_python(module), self.name]
        words += [f"filter={without_sockets.hex()}", f"alive={alive}"]
        if with_sockets is not None:
            words.append(f"sockets={with_sockets.hex()}")
        words += self._limits
        words += _network_words(view)
        words += self._spilt([self._writable(path, view) for path in view.writable])
        if is_landlock and Path("/tmp") in view.writable:
            words.append(f"whole={_SHARED_MEMORY}")
        words += [f"protect={path}" for path in view.protected]
        if is_landlock:
            words += [f"protect={path}" for path in view.links]
        else:
            words += [f"link={path}" for path in view.links]
        words += self._spilt([f"hide={path}" for path in view.hidden])
        words += self._spilt([f"open={path}" for path in view.opened])
        if is_supervised:
            # The supervisor refuses to create these names; they need no placeholders.
            words += [f"protect={path}" for path in absent_names(view.roots)]
        return [*words, "--", *argv]

    @cached_property
    def _reaches_own_processes_alone(self) -> bool:
        """True if a command can inspect only its own processes, in a view thanks to Landlock."""
        is_view = self.name == "views" and landlock.version() >= landlock.REFER_SINCE
        return self.name == "namespaces" or is_view

    def _writable(self, path: Path, view: Layout) -> str:
        """The word for a writable folder.

        Landlock alone grants a folder whole or in parts, and a folder for temporary files is
        useless in parts.
        """
        if self.name == "landlock" and path in view.temporary:
            return f"whole={path}"
        return f"write={path}"

    def _spilt(self, words: list[str]) -> list[str]:
        """The words; or one word for a file with them, because a command line has a limit."""
        if len(words) <= _MAX_WORDS:
            return words
        descriptor = os.memfd_create("words")
        self._spills.append(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(os.fsencode("\0".join(words)))
        if len(self._spills) > _MAX_SPILLS:
            os.close(self._spills.pop(0))
        return [f"more=/proc/{os.getpid()}/fd/{descriptor}"]


def _network_words(view: Layout) -> list[str]:
    words: list[str] = []
    if view.offline:
        words.append("offline")
    if view.proxy:
        words += [f"proxy={view.proxy}", f"direct={','.join(view.direct)}"]
    if view.proxy and view.allows_local:
        words.append("local")
    return words


class BubblewrapBackend:
    """Confinement by `bwrap`, if it is installed: https://github.com/containers/bubblewrap

    Some systems, such as some Ubuntu, let bubblewrap make namespaces, but not programs without a
    profile of their own. Our launcher comes first, because bubblewrap's monitor dies of Ctrl-C in a
    terminal, along with commands that would have caught it.
    """

    name = "bwrap"

    def __init__(self, search_path: str, limits: SandboxLimits) -> None:
        self._search_path = search_path
        self._limits = limits
        # Ordinary users need a user namespace. Without one, root can work in other users' folders.
        self._user_namespace = os.geteuid() != 0

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        # A `bwrap` in a folder that the model can write to is not used.
        barred = [*view.roots.all]
        if cwd != _ROOT:
            barred.append(Path(os.path.realpath(cwd)))

        def may_use(path: str | Path) -> bool:
            real = Path(os.path.realpath(path))
            return not any(real.is_relative_to(folder) for folder in barred)

        bwrap = find_program("bwrap", self._search_path, may_use)
        filter_file = _filter_file(isolated=view.offline or bool(view.proxy))
        if bwrap is None or filter_file is None:
            return None
        command = ["/bin/sh", "-c", _WITH_FILES, filter_file, alive or os.devnull]
        command += [os.path.realpath(bwrap), "--die-with-parent"]
        command += ["--info-fd", "8", "--seccomp", "9"]
        if self._user_namespace:
            command.append("--unshare-user")
        else:
            command += ["--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE"]
        command += ["--unshare-pid", "--unshare-ipc", *_mounts(view)]
        if view.offline or view.proxy:
            command.append("--unshare-net")
        if len(command) > _MAX_BWRAP_WORDS:
            return None
        awaited = ["/bin/sh", "-c", _OUTLIVE, "sh", *argv]
        held = limited(awaited, self._limits, processes=self._user_namespace)
        if view.proxy:
            # While a process lives in there, `bwrap` holds the link to the agent; see `proxied`.
            command = [
                *_python("proxied"),
                "out",
                view.proxy,
                *command,
                "--sync-fd",
                "7",
            ]
            allows_local = str(int(view.allows_local))
            held = [
                *_python("proxied"),
                "in",
                allows_local,
                ",".join(view.direct),
                *held,
            ]
        return [*command, "--chdir", os.path.realpath(cwd), "--", *held]


@cache
def _may_supervise() -> bool:
    """False if this machine does not let a process inspect its children, as a supervisor must."""
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text("ascii")
    except OSError:
        return True
    return int(scope) < _ATTACH_BY_ADMINISTRATORS_ALONE


@cache
def _python(module: str) -> Sequence[str]:
    """The words that run a module from the launcher's package."""
    start = _START.format(module)
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", start, _CHILD]


def _mounts(view: Layout) -> list[str]:
    words = ["--bind" if _ROOT in view.writable else "--ro-bind", "/", "/"]
    words += ["--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    for path in view.writable:
        if path != _ROOT:
            words += ["--bind", str(path), str(path)]
    # Read-only, because root owns the switches in /proc/sys, and some need no other right.
    words += ["--proc", "/proc", "--remount-ro", "/proc"]
    for path in view.protected:
        words += ["--ro-bind", str(path), str(path)]
    outer_first = sorted(
        (*view.hidden, *view.opened),
        key=lambda path: len(path.parts),
    )
    for path in outer_first:
        if path in view.opened:
            is_protected = is_inside(path, view.protected)
            if is_inside(path, view.writable) and not is_protected:
                how = "--bind"
            else:
                how = "--ro-bind"
            words += [how, str(path), str(path)]
        elif path.is_dir():
            words += ["--perms", "0111", "--tmpfs", str(path)]
        else:
            # A device cannot be opened through such a mount.
            words += ["--ro-bind", os.devnull, str(path)]
    for path in view.hidden:
        if path.is_dir():
            words += ["--remount-ro", str(path)]
    return words


@cache
def _filter_file(*, isolated: bool) -> str | None:
    """The path of an anonymous file with the filter, for children of this process.

    None if there is no filter.
    """
    program = filter_program(
        os.uname().machine,
        offline=False,
        isolated=isolated,
        tracing=True,
        root=os.geteuid() == 0,
    )
    if program is None or sys.platform != "linux":
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    return f"/proc/{os.getpid()}/fd/{descriptor}"
