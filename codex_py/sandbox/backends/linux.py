"""Confines commands on Linux, with our own launcher, which needs nothing installed, or with
bubblewrap."""

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

# Import the package of the launcher without its parent packages, which would cost 5 ms.
_START = (
    "import sys; package = type(sys)('codex_py.sandbox.child'); "
    "package.__path__ = [sys.argv.pop(1)]; "
    "sys.modules['codex_py'] = sys.modules[package.__name__] = package; "
    "from codex_py.sandbox.child.{} import main; main(sys.argv[1:])"
)
_CHILD = str(PACKAGE / "sandbox" / "child")
_SHARED_MEMORY = "/dev/shm"
"""The folder with the locks that processes share, such as those of Python's `multiprocessing`. A
view has its own one. With Landlock, it can be written if `/tmp` can."""
# A shell opens two files for bwrap, because our own descriptors are closed when a command starts.
# bwrap reads the seccomp filter from descriptor 9, and writes the id of its first process to 8, as
# JSON.
_WITH_FILES = 'info=$1; shift; exec "$@" 9<"$0" 8>"$info"'
# When the command ends, bwrap kills the processes that the command left behind. So a shell runs the
# command, and then waits for these processes as `child.leftovers` does. The shell prints no
# messages of its own, such as one about a signal that ended the command.
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
"""The most words of one kind on a command line. More of them are passed in a file."""
_MAX_FILES = 16
"""The most such files that are kept. A command that started earlier has already read its own."""
_MAX_BWRAP_WORDS = 8000
"""The most words for bwrap, which accepts 9000."""


class LauncherBackend:
    """Builds the command lines of `sandbox.child.launcher`."""

    def __init__(self, name: str, limits: SandboxLimits) -> None:
        """Set up the backend `name`: one of those that `Confinement` lists."""
        self.name = name
        self._limits = [
            f"processes={limits.max_processes}",
            f"files={limits.max_open_files}",
        ]
        """The words for the limits of a command."""
        if limits.max_memory_mb is not None:
            self._limits.append(f"memory={limits.max_memory_mb << 20}")
        self._has_namespaces = name in {"namespaces", "views"}
        self._word_files: list[int] = []

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        cwd: Path,  # noqa: ARG002
        alive: str = "",
    ) -> list[str] | None:
        filters = self._filter_words(view)
        if filters is None or not sys.executable:
            return None
        if view.proxy:
            module = "proxied"
        elif self.name == "supervised":
            module = "supervised"
        else:
            module = "launcher"
        words = [*_python(module), self.name, *filters, f"alive={alive}"]
        words += self._limits
        words += _network_words(view)
        words += self._path_words(view)
        return [*words, "--", *argv]

    def _filter_words(self, view: Layout) -> list[str] | None:
        """The words with the seccomp filters; None if there are none for this machine."""
        # A network namespace without a way out needs another filter than the network of the
        # machine.
        is_isolated = self._has_namespaces and bool(view.offline or view.proxy)
        lacks_truncate = (
            not self._has_namespaces and landlock.version() < landlock.TRUNCATE_SINCE
        )

        def program(*, local: bool) -> bytes | None:
            return filter_program(
                os.uname().machine,
                offline=view.offline and not is_isolated,
                isolated=is_isolated,
                local=local,
                guard_truncate=lacks_truncate,
                root=os.geteuid() == 0,
                tracing=self._reaches_own_processes_alone,
                backend=self.name,
            )

        without_sockets = program(local=False)
        if without_sockets is None:
            return None
        words = [f"filter={without_sockets.hex()}"]
        # With `views`, the process that waits for the command has another view.
        if is_isolated and self.name == "namespaces" and _may_supervise():
            with_sockets = program(local=True)
            if with_sockets is not None:
                words.append(f"sockets={with_sockets.hex()}")
        return words

    def _path_words(self, view: Layout) -> list[str]:
        words = self._shortened([self._writable(path, view) for path in view.writable])
        if not self._has_namespaces and Path("/tmp") in view.writable:
            words.append(f"whole={_SHARED_MEMORY}")
        words += [f"protect={path}" for path in view.protected]
        if self._has_namespaces:
            words += [f"link={path}" for path in view.links]
        else:
            words += [f"protect={path}" for path in view.links]
        words += self._shortened([f"hide={path}" for path in view.hidden])
        words += self._shortened([f"open={path}" for path in view.opened])
        if self.name == "supervised":
            # The supervisor refuses to create these names, so they need no placeholders.
            words += [f"protect={path}" for path in absent_names(view.roots)]
        return words

    @cached_property
    def _reaches_own_processes_alone(self) -> bool:
        """True if a command can inspect no processes but its own."""
        if self.name == "views":
            # Landlock confines it, as far as `restrict_beyond_view` can.
            return landlock.version() >= landlock.REFER_SINCE
        return self.name == "namespaces"

    def _writable(self, path: Path, view: Layout) -> str:
        """The word for a writable folder.

        Landlock alone grants a folder whole or in parts, and a folder for temporary files is
        useless in parts.
        """
        if self.name == "landlock" and path in view.temporary:
            return f"whole={path}"
        return f"write={path}"

    def _shortened(self, words: list[str]) -> list[str]:
        """The words, or one word for a file with them: a command line has a limit."""
        if len(words) <= _MAX_WORDS:
            return words
        descriptor = os.memfd_create("words")
        self._word_files.append(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(os.fsencode("\0".join(words)))
        if len(self._word_files) > _MAX_FILES:
            os.close(self._word_files.pop(0))
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
    """Builds the command lines of `bwrap`, if it is installed.

    Some systems, such as some versions of Ubuntu, let bubblewrap make namespaces, but not programs
    without a profile of their own. Our launcher is preferred, because bubblewrap's monitor dies of
    Ctrl-C in a terminal, along with commands that would have caught it.
    https://github.com/containers/bubblewrap
    """

    name = "bwrap"

    def __init__(self, search_path: str, limits: SandboxLimits) -> None:
        self._search_path = search_path
        self._limits = limits
        # Ordinary users need a user namespace. Root must have none, to work in the folders of other
        # users.
        self._user_namespace = os.geteuid() != 0

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        bwrap = self._program(view, cwd)
        filter_file = _filter_file(isolated=view.offline or bool(view.proxy))
        if bwrap is None or filter_file is None:
            return None
        command = ["/bin/sh", "-c", _WITH_FILES, filter_file, alive or os.devnull]
        command += [bwrap, "--die-with-parent"]
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
        inner = limited(awaited, self._limits, processes=self._user_namespace)
        if view.proxy:
            # While a process lives in there, `bwrap` holds the link to the agent; see `proxied`.
            outside = [*_python("proxied"), "out", view.proxy]
            command = [*outside, *command, "--sync-fd", "7"]
            allows_local = str(int(view.allows_local))
            inside = [*_python("proxied"), "in", allows_local, ",".join(view.direct)]
            inner = [*inside, *inner]
        return [*command, "--chdir", os.path.realpath(cwd), "--", *inner]

    def _program(self, view: Layout, cwd: Path) -> str | None:
        """The real path of `bwrap`; None if there is none outside of what the model can write."""
        barred = [*view.roots.all]
        if cwd != _ROOT:
            barred.append(Path(os.path.realpath(cwd)))

        def may_use(path: str | Path) -> bool:
            real = Path(os.path.realpath(path))
            return not any(real.is_relative_to(folder) for folder in barred)

        bwrap = find_program("bwrap", self._search_path, may_use)
        if bwrap is None:
            return None
        return os.path.realpath(bwrap)


@cache
def _may_supervise() -> bool:
    """True if this machine lets a process inspect its children, as a supervisor must."""
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
    """The options of `bwrap` for the mounts of a view, in the order of their effect."""
    if _ROOT in view.writable:
        words = ["--bind", "/", "/"]
    else:
        words = ["--ro-bind", "/", "/"]
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
        words += _hiding_mount(path, view)
    for path in view.hidden:
        if path.is_dir():
            words += ["--remount-ro", str(path)]
    return words


def _hiding_mount(path: Path, view: Layout) -> list[str]:
    """The options that hide a path, or that open one below a hidden path."""
    if path in view.opened:
        is_writable = is_inside(path, view.writable)
        if is_writable and not is_inside(path, view.protected):
            return ["--bind", str(path), str(path)]
        return ["--ro-bind", str(path), str(path)]
    if path.is_dir():
        return ["--perms", "0111", "--tmpfs", str(path)]
    # A device cannot be opened through such a mount.
    return ["--ro-bind", os.devnull, str(path)]


@cache
def _filter_file(*, isolated: bool) -> str | None:
    """The path of an anonymous file with the filter, for children of this process.

    None if there is no filter for this machine.
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
