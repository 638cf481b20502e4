"""Runs a command below a subreaper: a process that ends after all that the command started is dead.

A command may leave processes behind that have another session, another group and an empty
environment. When their parents have ended, they become children of the subreaper, which kills them.
The subreaper has a session of its own, so that a kill of the command's group does not reach it. It
holds the agent's pipe open, so that the agent knows how long placeholders must stay. A process
namespace needs no subreaper.
"""

import posix

from codex_py.sandbox.child import kernel, landlock, namespaces
from codex_py.sandbox.child.confinement import FAILED, Confinement
from codex_py.sandbox.child.kernel import signals
from codex_py.sandbox.child.leftovers import Leftovers, wait_for_child

_SIGNAL_EXIT_BASE = 128
_PARENT_FIELD = 1
"""The field of `/proc/PID/stat`, behind the name, with the id of the parent."""
_ENVIRONMENT_FIELDS = slice(47, 49)
"""The fields with the start and end address of the environment."""


class Subreaper:
    """Runs a command among the processes of the machine."""

    changes_owners = False
    """True if this process changes modes, times and owners of files for the command."""

    def __init__(self, confinement: Confinement) -> None:
        self.confinement = confinement

    def run(self) -> None:
        """Run the command, and exit with its exit code.

        Processes that it leaves behind get a moment to end; see `Leftovers`.

        Raises:
            OSError: the agent's pipe is missing, or no process can be created.
        """
        read_end, report = posix.pipe()
        if self.confinement.alive:
            # The subreaper inherits this. The command closes all descriptors but the first three.
            posix.open(self.confinement.alive, posix.O_WRONLY)
        launcher = posix.getpid()
        subreaper = posix.fork()
        if subreaper:
            exit_as_reported(subreaper, read_end, report)
        posix.close(read_end)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        # The agent kills every process that has its mark in the environment, but this one must live
        # on.
        _wipe_environment()
        try:
            command = self.start()
            drop_output()
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
            kernel.drop_capabilities(for_good=False, owners=self.changes_owners)
            status = self.wait(command, launcher)
            if status is not None:
                self.wait_for_leftovers(launcher)
                posix.write(report, bytes([exit_code(status)]))
        finally:
            kill_descendants()
        kernel.leave(0)

    def start(self) -> int:
        """Start the command, leave its process group, and return the command's process id."""
        # The command waits at the gate until this process has left the group: if the group is
        # killed before, the command does not start.
        gate, opener = posix.pipe()
        command = posix.fork()
        if not command:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signals.SIGKILL)
            posix.close(opener)
            if posix.read(gate, 1):
                self.become_command()
            kernel.leave(FAILED)
        posix.close(gate)
        posix.setsid()
        posix.write(opener, b"x")
        return command

    def become_command(self) -> None:
        """Confine this process, to its own view or by Landlock alone, and execute the command.

        Raises:
            OSError: a step failed.
        """
        confinement = self.confinement
        if confinement.backend == "views":
            namespaces.restrict_view(confinement)
            # Otherwise, `kill 0` would reach the group that we were started in.
            landlock.restrict_beyond_view(confinement.writable)
        else:
            landlock.restrict(
                confinement.writable,
                confinement.protected,
                whole=confinement.whole,
                hidden=confinement.hidden,
                offline=confinement.offline,
            )
        confinement.drop_privileges()
        self.set_filter()
        confinement.execute()

    def set_filter(self) -> None:
        """Filter the system calls of this process, which then becomes the command."""
        kernel.set_filter(self.confinement.filter)

    def wait(self, command: int, launcher: int) -> int | None:
        """Wait for the command, and reap other processes meanwhile.

        Returns:
            The command's status as from `waitpid`, or None if the launcher died first.
        """
        awaited = (signals.SIGCHLD, signals.SIGUSR1)
        signals.pthread_sigmask(signals.SIG_BLOCK, awaited)
        # SIGUSR1 tells that the launcher has died.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signals.SIGUSR1)
        while posix.getppid() == launcher:
            pid = -1
            while pid:
                pid, status = wait_for_child(posix.WNOHANG)
                if pid == command:
                    return status
            signals.sigwait(awaited)
        return None

    def wait_for_leftovers(self, launcher: int) -> None:
        """Let leftover processes finish, unless the launcher dies."""
        LeftDescendants().wait(parent=launcher)


class LeftDescendants(Leftovers):
    """The leftover processes below this one, among all processes of the machine."""

    def processes(self) -> list[int]:
        found, _ = descendants()
        return list(found)


def exit_as_reported(child: int, read_end: int, report: int) -> None:
    """Exit with the code that a child reports as one byte, or else with the child's own.

    Args:
        read_end: the end of the pipe for the report, which this process reads.
        report: the child's end, which this process closes.
    """
    posix.close(report)
    code = posix.read(read_end, 1)
    if code:
        kernel.leave(code[0])
    _, status = posix.waitpid(child, 0)
    kernel.leave(exit_code(status))


def exit_code(status: int) -> int:
    """The exit code for a status from `waitpid`: 128 + n after signal n."""
    code = posix.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    return _SIGNAL_EXIT_BASE - code


def drop_output() -> None:
    """Close the command's output in this process, so that the output ends with the command."""
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in range(3):
        posix.dup2(null, descriptor)


def descendants() -> tuple[dict[int, int], int]:
    """The processes below this one, each with its parent, and the number of all their threads.

    This process adopts processes whose parents have ended. Takes some 20 us for each process.
    """
    own = posix.getpid()
    children = _children(f"/proc/self/task/{own}")
    found = dict.fromkeys(children, own)
    threads = 0
    waiting = list(found)
    while waiting:
        process = waiting.pop()
        folder = f"/proc/{process}/task"
        try:
            tasks = posix.listdir(folder)
        except OSError:
            # The process has ended meanwhile.
            del found[process]
            continue
        threads += len(tasks)
        for task in tasks:
            inner = dict.fromkeys(_children(f"{folder}/{task}"), process)
            waiting += inner.keys() - found.keys()
            found |= inner
    return found, threads


def kill_descendants() -> None:
    """Kill and reap all processes below this one, including those that are forked meanwhile."""
    try:
        while True:
            found, _ = descendants()
            if not found:
                # If the kernel does not list children, they stay alive.
                return
            for process, parent in found.items():
                try:
                    _kill(process, parent)
                except OSError:
                    # The process has ended meanwhile.
                    continue
            posix.wait()
            while posix.waitpid(-1, posix.WNOHANG)[0]:
                pass
    except ChildProcessError:
        return


def _kill(process: int, parent: int) -> None:
    """Kill a process, unless its parent has reaped it and its id may belong to a stranger."""
    own = posix.getpid()
    if parent == own:
        # Only this process could reap it.
        posix.kill(process, signals.SIGKILL)
        return
    held = posix.pidfd_open(process)
    try:
        if int(_stat(process)[_PARENT_FIELD]) in {parent, own}:
            signals.pidfd_send_signal(held, signals.SIGKILL)
    finally:
        posix.close(held)


def _children(task: str) -> list[int]:
    """The ids of the processes that a thread has started, from its folder in `/proc`."""
    try:
        with open(f"{task}/children", encoding="ascii") as file:  # noqa: PTH123 - pathlib takes 5 ms
            return [int(process) for process in file.read().split()]
    except OSError:
        # The process has ended meanwhile.
        return []


def _stat(process: int | str) -> list[str]:
    """The fields of `/proc/PID/stat` after the name of the process."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()


def _wipe_environment() -> None:
    """Overwrite the environment of this process, which `/proc/PID/environ` shows."""
    begin, end = map(int, _stat("self")[_ENVIRONMENT_FIELDS])
    memory = posix.open("/proc/self/mem", posix.O_WRONLY)
    posix.pwrite(memory, bytes(end - begin), begin)
    posix.close(memory)
