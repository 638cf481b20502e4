"""The process that outlives a command until everything that the command started is dead.

A command may leave processes behind that have another session, another group and an empty environment. The
subreaper is their parent once their own has ended. It has a session of its own, so that what kills the group
of the command does not kill it, and it holds the agent's pipe open, so that the agent knows how long the
empty folders that protect names have to stay. A namespace of processes needs no subreaper.
"""

import _signal  # pyright: ignore[reportMissingImports] - `signal`, without the 2 ms of its enumerations
import posix

from codex_py.sandbox.child import kernel

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_signals: "Any" = _signal

_SIGKILL, _SIGUSR1, _SIGCHLD = 9, 10, 17
_SIGNAL_EXIT_BASE = 128
_ENVIRONMENT_FIELDS = slice(47, 49)
"""Of `/proc/PID/stat`, behind the name: where the environment begins and ends."""


def run_under_subreaper(
    alive: str,
    start: "Callable[[], int]",
    wait: "Callable[[int, int], int | None] | None" = None,
) -> "NoReturn":
    """Run a command below a subreaper, and leave with its exit code as soon as that is known.

    Args:
        alive: a pipe that is held open for writing until nothing of the command lives; empty for none.
        start: called in the subreaper; forks, and returns the child that is the command. The subreaper's own
            environment is wiped then, `posix.environ` is not.
        wait: called in the subreaper with that child and the launcher; returns the child's status, or None once
            the launcher is dead. None to do nothing else meanwhile.

    Raises:
        OSError: the pipe is not there, or no process can be made.
    """
    read_end, report = posix.pipe()
    if alive:
        # Inherited by the subreaper; a command closes everything but its three.
        posix.open(alive, posix.O_WRONLY)
    launcher = posix.getpid()
    subreaper = posix.fork()
    if subreaper:
        posix.close(report)
        code = posix.read(read_end, 1)
        kernel.leave(code[0] if code else exit_code(posix.waitpid(subreaper, 0)[1]))
    posix.close(read_end)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    # The agent kills what has its mark in the environment, and we are needed until the end.
    _wipe_environment()
    try:
        child = start()
        posix.setsid()
        drop_output()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.drop_capabilities(for_good=False)
        status = (wait or _wait_for)(child, launcher)
        if status is not None:
            posix.write(report, bytes([exit_code(status)]))
    finally:
        end_children()
    kernel.leave(0)


def exit_code(status: int) -> int:
    code = posix.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNAL_EXIT_BASE - code


def drop_output() -> None:
    """Let the output of the command end with the command, not with this process."""
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in range(3):
        posix.dup2(null, descriptor)


def end_children() -> None:
    """Kill what the command left behind, and whatever becomes our child by that."""
    try:
        while True:
            with open(f"/proc/self/task/{posix.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
                children = file.read().split()
            for child in children:
                posix.kill(int(child), _SIGKILL)
            for _ in children or [""]:
                posix.wait()
    except OSError:
        # There are none any more, or this kernel does not tell them.
        return


def _wait_for(child: int, launcher: int) -> int | None:
    """The child's status, reaping everyone else's children meanwhile; None once the launcher is dead."""
    awaited = (_SIGCHLD, _SIGUSR1)
    _signals.pthread_sigmask(_signals.SIG_BLOCK, awaited)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGUSR1)
    while posix.getppid() == launcher:
        pid = -1
        while pid:
            pid, status = posix.waitpid(-1, posix.WNOHANG)
            if pid == child:
                return status
        _signals.sigwait(awaited)
    return None


def _wipe_environment() -> None:
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        begin, end = map(int, file.read().rpartition(")")[2].split()[_ENVIRONMENT_FIELDS])
    memory = posix.open("/proc/self/mem", posix.O_WRONLY)
    posix.pwrite(memory, bytes(end - begin), begin)
    posix.close(memory)
