"""Confines itself, and becomes the command. It is started for every command that the model runs.

    python -I -S -c '…; from codex_py.sandbox.child.launcher import main; …' \\
        BACKEND [OPTION]... -- COMMAND...

See `Confinement` for the words. If anything fails, a line goes to standard error and the exit code
is `FAILED`: a command never runs with less confinement than requested.

This is a program rather than a thread of the agent that restricts itself, for three reasons:
namespaces need a process without threads; a mistake in here cannot lock the agent up; and nothing
runs between fork and exec of the agent, so the agent can use the cheaper vfork. It takes some 10
ms, most of it for the interpreter. So it imports `posix` rather than `os` (1.5 ms), and neither
`typing` (5 ms) nor `pathlib`, `json`, `signal` or `argparse`.
"""

import posix

from codex_py.sandbox.child import kernel, landlock, namespaces
from codex_py.sandbox.child.confinement import FAILED, Confinement, say
from codex_py.sandbox.child.kernel import signals
from codex_py.sandbox.child.leftovers import Leftovers, wait_for_child
from codex_py.sandbox.child.notified import ListenerLink
from codex_py.sandbox.child.subreaper import (
    Subreaper,
    drop_output,
    exit_as_reported,
    exit_code,
)


def main(
    words: list[str],
    subreaper: type[Subreaper] = Subreaper,
    confinement_type: type[Confinement] = Confinement,
) -> None:
    """Run the command, and exit with its exit code.

    Args:
        words: see `Confinement`.
        subreaper: runs the command if the backend has no process namespace.
        confinement_type: parses the words.
    """
    confinement = confinement_type(words)
    try:
        confinement.begin()
        if confinement.backend == "namespaces":
            _run_in_namespaces(confinement)
        else:
            subreaper(confinement).run()
    except OSError as error:
        say(f"the command could not be confined ({confinement.backend}): {error}")
    kernel.leave(FAILED)


def _run_in_namespaces(confinement: Confinement) -> None:
    """Run the command, and exit with the code reported by the first process of a new namespace.

    It needs no subreaper: when that process ends, the kernel kills all others in the process
    namespace, some 20 ms later.

    Raises:
        OSError: a step failed.
    """
    read_end, report = posix.pipe()
    alive = None
    if confinement.alive:
        alive = posix.open(confinement.alive, posix.O_WRONLY)
    launcher = posix.getpid()
    namespaces.unshare(namespaces.NEWPID)
    first = posix.fork()
    if first:
        exit_as_reported(first, read_end, report)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signals.SIGKILL)
    own, parent = namespaces.outer_ids()
    if parent != launcher:
        # The launcher died before the death signal was set.
        kernel.leave(FAILED)
    if alive is not None:
        # The pipe closes before all others in the namespace are dead, so the agent also waits for
        # this process.
        posix.write(alive, b'"child-pid": %d\n' % own)
    _run_in_new_view(confinement, report)


def _run_in_new_view(confinement: Confinement, report: int) -> None:
    """Run the command as a child of this process, the first one of a process namespace.

    Args:
        report: the descriptor to which the exit code is written, as one byte.

    Raises:
        OSError: a step failed.
    """
    if posix.geteuid() == 0 and "processes" in confinement.limits:
        # The usual limit, which `drop_privileges` sets, does not apply to root.
        namespaces.limit_processes(confinement.limits["processes"])
    namespaces.restrict_view(confinement)
    # No process in there may read our memory or our descriptors.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    link = None
    if confinement.sockets:
        link = ListenerLink()
    command = posix.fork()
    if command:
        _wait_as_first_process(command, report, link)
    landlock.restrict_beyond_view(confinement.writable)
    confinement.drop_privileges()
    confinement.set_filter(link)
    confinement.execute()


def _wait_as_first_process(
    command: int, report: int, link: ListenerLink | None
) -> None:
    """Reap all children until the command has ended and its leftovers have had their moment.

    Then report the exit code, and exit. Processes that remain die with this one.
    """
    # To inspect a process, one needs all capabilities that it has.
    kernel.drop_capabilities(for_good=False, network=link is not None, owners=True)
    drop_output()
    if link is not None:
        link.supervise()
    pid = 0
    status = 0
    while pid != command:
        pid, status = wait_for_child()
    Leftovers().wait()
    code = exit_code(status)
    # Report before the namespaces are taken down, which takes 20 ms.
    posix.write(report, bytes([code]))
    kernel.leave(code)
