"""Confines itself, and becomes the command. Started for every command that the model runs.

    python -I -S -c '…; from codex_py.sandbox.child.launcher import main; …' BACKEND [OPTION]... -- COMMAND...

`BACKEND` is `namespaces`, `views` (the same without a namespace of processes), `landlock` or `supervised`, which
is Landlock with our help; the options are `offline`, `filter=HEX`, `processes=N`, `files=N` (of each process),
`memory=N` (bytes of data of each process), `alive=PATH` (the pipe of `liveness`), `write=PATH` (outermost
first), `protect=PATH`, `hide=PATH`, for the views `link=PATH`, which is to stay the link that it is, and for
Landlock `whole=PATH`, writable with all that is in it. Anything that fails ends it with a line on standard
error and `FAILED`: a command never runs with less than it was to be held by.

A program, rather than a thread of the agent that restricts itself: namespaces need a process without
threads, a mistake in here cannot lock the agent up, and nothing runs between fork and exec of the agent,
which can so be spawned by the cheaper vfork. It costs some 10 ms, most of it the interpreter, and
therefore imports neither `pathlib` nor `json`, `signal` or `argparse`, and `posix`
rather than `os`, which would be 1.5 ms. A standard library is all it needs.
"""

import posix
import sys

from codex_py.sandbox.child import kernel, landlock, namespaces
from codex_py.sandbox.child.subreaper import drop_output, exit_code, run_under_subreaper

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

FAILED = 125
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127

_SIGHUP, _SIGINT, _SIGQUIT, _SIGKILL, _SIGPIPE, _SIGTERM, _SIGXFSZ = 1, 2, 3, 9, 13, 15, 25
_ASKING_TO_END = (_SIGHUP, _SIGINT, _SIGQUIT, _SIGTERM)
_LIMITS = ("processes", "files", "memory")


class Confinement:
    def __init__(self, words: list[str]) -> None:
        end = words.index("--")
        self.backend = words[0]
        self.offline = "offline" in words[1:end]
        self.filter = b""
        self.alive = ""
        self.writable: list[str] = []
        self.whole: list[str] = []
        self.protected: list[str] = []
        self.links: list[str] = []
        self.hidden: list[str] = []
        self.limits: dict[str, int] = {}
        paths = {
            "write": self.writable,
            "whole": self.whole,
            "protect": self.protected,
            "link": self.links,
            "hide": self.hidden,
        }
        for word in words[1:end]:
            name, _, value = word.partition("=")
            if name in paths:
                paths[name].append(value)
            elif name == "filter":
                self.filter = bytes.fromhex(value)
            elif name == "alive":
                self.alive = value
            elif name in _LIMITS:
                self.limits[name] = int(value)
        self.command = words[end + 1 :]

    @property
    def has_own_users(self) -> bool:
        """Whether it is in a user namespace of its own, in which the kernel counts its processes alone."""
        return self.backend in {"namespaces", "views"} and posix.geteuid() != 0


def main(words: list[str]) -> "NoReturn":
    confinement = Confinement(words)
    try:
        _run(confinement)
    except OSError as error:
        _say(f"the command could not be confined ({confinement.backend}): {error}")
    kernel.leave(FAILED)


def _run(confinement: Confinement) -> "NoReturn":
    # Dies with the agent, also where the agent cannot say so any more.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    ours = _ignore_signals()
    if confinement.backend == "supervised":
        _run_supervised(confinement, ours)
    if confinement.backend == "namespaces":
        _run_in_namespaces(confinement, ours)
    run_under_subreaper(confinement.alive, lambda: _start_beside_others(confinement, ours))


def _run_in_namespaces(confinement: Confinement, ours: list[int]) -> "NoReturn":
    """Leave with the exit code that the first process of a new namespace of processes reports.

    It needs no subreaper: the kernel kills everything in there when that process ends, some 20 ms later.
    """
    read_end, report = posix.pipe()
    alive = posix.open(confinement.alive, posix.O_WRONLY) if confinement.alive else None
    launcher = posix.getpid()
    namespaces.begin_processes()
    first = posix.fork()
    if not first:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        own, parent = namespaces.outer_ids()
        if parent != launcher:
            # It died before we asked to be told.
            kernel.leave(FAILED)
        if alive is not None:
            # The pipe closes before everyone else in the namespace is dead, so the agent has to wait for us.
            posix.write(alive, b'"child-pid": %d\n' % own)
        if posix.geteuid() == 0 and "processes" in confinement.limits:
            # The usual limit, which follows below, does not hold root.
            namespaces.limit_processes(confinement.limits["processes"])
        _restrict_view(confinement)
        # Nobody in there is to read our memory or our descriptors.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        command = posix.fork()
        if command:
            _wait_as_first_process(command, report)
        landlock.restrict_beyond_view(confinement.writable)
        _become_command(confinement, ours)
    posix.close(report)
    code = posix.read(read_end, 1)
    kernel.leave(code[0] if code else exit_code(posix.waitpid(first, 0)[1]))


def _start_beside_others(confinement: Confinement, ours: list[int]) -> int:
    """The command itself, in a view of its own or held by Landlock alone."""
    command = posix.fork()
    if not command:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        if confinement.backend == "views":
            _restrict_view(confinement)
            # `kill 0` reaches the group that we were started in.
            landlock.restrict_beyond_view(confinement.writable)
        else:
            _restrict_with_landlock(confinement)
        _become_command(confinement, ours)
    return command


def _restrict_view(confinement: Confinement) -> None:
    cwd = posix.getcwd()
    namespaces.begin_view(offline=confinement.offline)
    namespaces.restrict_writes(
        confinement.writable,
        confinement.protected,
        confinement.links,
        confinement.hidden,
        processes=confinement.backend == "namespaces",
    )
    # Until now it was the one below the mounts.
    posix.chdir(cwd)


def _restrict_with_landlock(confinement: Confinement) -> None:
    landlock.restrict(
        confinement.writable,
        confinement.protected,
        whole=confinement.whole,
        hidden=confinement.hidden,
        offline=confinement.offline,
    )


def _ignore_signals() -> list[int]:
    """What ends the command by asking, asks all of its group: we wait for what it makes of that."""
    return [n for n in _ASKING_TO_END if kernel.set_signal(n, kernel.SIG_IGN) != kernel.SIG_IGN]


def _run_supervised(confinement: Confinement, ours: list[int]) -> "NoReturn":
    # 2 ms that the other ways can do without.
    from codex_py.sandbox.child.supervised import Supervised  # noqa: PLC0415

    def restrict() -> None:
        # Who cannot write elsewhere either; and who is confined further may not look into it.
        whole = [*confinement.writable, *confinement.whole]
        landlock.restrict([], [], whole=whole, hidden=[], offline=False)

    def command(set_filter: "Callable[[bytes], None]") -> "NoReturn":
        _restrict_with_landlock(confinement)
        _become_command(confinement, ours, set_filter=set_filter)

    supervised = Supervised(
        command,
        writable=confinement.writable,
        protected=confinement.protected,
        restrict=restrict,
        max_processes=confinement.limits.get("processes"),
    )
    run_under_subreaper(confinement.alive, supervised.start, supervised.wait)


def _wait_as_first_process(command: int, report: int) -> "NoReturn":
    """Reap everyone's children until the command has ended. What it left behind ends with us."""
    kernel.drop_capabilities(for_good=False)
    drop_output()
    while True:
        pid, status = posix.wait()
        if pid == command:
            # Before the namespaces are taken down: that is 20 ms.
            code = exit_code(status)
            posix.write(report, bytes([code]))
            kernel.leave(code)


def _become_command(
    confinement: Confinement,
    default_signals: "list[int] | tuple[()]",
    *,
    set_filter: "Callable[[bytes], None]" = kernel.set_filter,
) -> "NoReturn":
    kernel.drop_capabilities()
    limits = confinement.limits
    if confinement.has_own_users and "processes" in limits:
        kernel.limit(kernel.RLIMIT_NPROC, limits["processes"])
    if "files" in limits:
        kernel.limit(kernel.RLIMIT_NOFILE, limits["files"])
    if "memory" in limits:
        kernel.limit(kernel.RLIMIT_DATA, limits["memory"])
    # Those that Python ignores itself, and those that we do.
    for number in (_SIGPIPE, _SIGXFSZ, *default_signals):
        kernel.set_signal(number, kernel.SIG_DFL)
    set_filter(confinement.filter)
    posix.closerange(3, 1 << 20)
    command = confinement.command
    try:
        _execute(command)
    except ValueError:
        _say("cannot run '': there is no program without a name")
        kernel.leave(_NOT_FOUND)
    except OSError as error:
        _say(f"cannot run {command[0]!r}: {error.strerror}")
        kernel.leave(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE)


def _execute(command: list[str]) -> "NoReturn":
    """As `os.execvp`. The memory of our own environment may be wiped, of which this is a copy."""
    environment, name = posix.environ, kernel.encoded(command[0])
    # A path is taken as it is, also in front of nothing.
    folders = [b""] if b"/" in name else environment.get(b"PATH", b"/bin:/usr/bin").split(b":")
    problems: list[OSError] = []
    for folder in folders:
        try:
            posix.execve(folder + b"/" + name if folder else name, command, environment)
        except OSError as error:
            problems.append(error)
    missing = (FileNotFoundError, NotADirectoryError)
    raise next((problem for problem in problems if not isinstance(problem, missing)), problems[-1])


def _say(text: str) -> None:
    posix.write(2, f"codex-py sandbox: {text}\n".encode(errors="replace"))


if __name__ == "__main__":
    main(sys.argv[1:])
