"""Starts the programs of one agent, and kills them if the agent itself is killed.

SIGKILL leaves an agent no time to clean up. So a child process, the guardian, waits for the end of
a pipe that only the agent holds open: the kernel closes it, however the agent ends. Then the
guardian kills the programs.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from codex_py.process.child import Child, kill_marked

_KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
_VARIABLE = "CODEX_PY_PROCESS"
"""The variable that marks every program; each program has its own value."""

# The guardian reads lines. `+N`: the leader of group N runs. `=N`: the leader was reaped, and
# members are left; if there is a process N at the end, the id belongs to a stranger. `-N`: nothing
# is left of the group.
#
# At the end of the pipe, it kills all listed groups. Then, if /proc shows environments, it kills
# every process with our mark, whatever its group. A process that just calls `execve` has no
# environment for a moment, so it looks several times.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM
running=' ' orphaned=' '
while read -r line; do
  id=${line#?}
  case $running in *" $id "*) running="${running%% $id *} ${running#* $id }" ;; esac
  case $orphaned in *" $id "*) orphaned="${orphaned%% $id *} ${orphaned#* $id }" ;; esac
  case $line in
    +*) running="$running$id " ;;
    =*) orphaned="$orphaned$id " ;;
  esac
done
for id in $running; do kill -s KILL -- "-$id"; done
for id in $orphaned; do kill -s 0 -- "$id" || kill -s KILL -- "-$id"; done
for round in 1 2 3 4 5; do
  marked=$(grep -lsF -e "$1" /proc/[0-9]*/environ)
  for file in $marked; do id=${file#/proc/}; kill -s KILL -- "${id%/environ}"; done
done
"""


class Guardian:
    """Starts programs, and tells the guardian process which groups to kill.

    The guardian process outlives us by a moment. Starting it takes about 1 ms.
    """

    def __init__(self) -> None:
        self._token = os.urandom(8).hex()  # `secrets` takes 8 ms to import
        self._mark = f"{_VARIABLE}={self._token}."
        """The beginning of the mark in the environment of every program of this agent."""
        self._count = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._listed: dict[int, str] = {}
        """The state that the guardian process knows of each group: `+` or `=`; see `_SCRIPT`."""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        prepare: Callable[[], object] | None = None,
    ) -> Child:
        """Start a program.

        Args:
            stdin, stdout, stderr: descriptors, or constants of `subprocess`.
            prepare: called in the child before the program runs. It needs fork instead of vfork,
                whose cost grows with our memory (11 ms at 300 MB).

        Raises:
            OSError: the program cannot be started; if that is due to the directory, `filename` is
                `cwd`.
            ValueError: an argument has a NUL, or a character that the file system's encoding lacks.
        """
        environment, mark = self.marked(environment)
        with _default_keyboard_signals():
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
                cwd=cwd,
                env=environment,
                preexec_fn=prepare,
            )
        child = Child(process, mark)
        self.watch(child)
        return child

    def watch(self, child: Child) -> None:
        """Watch the group of a child."""
        self._tell("+", child.id)

    def marked(self, environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
        """Mark the environment of a program; returns it, and the mark for `kill_marked`.

        The guardian process then kills the program with this agent, even if somebody else starts
        it, where `/proc` shows environments.
        """
        if self._child is None:
            self._start()
        self._count += 1
        value = f"{self._token}.{self._count}"
        return {**environment, _VARIABLE: value}, f"{_VARIABLE}={value}\0"

    def reaped(self, child: Child) -> bool:
        """Note that a child was reaped; False if nothing is left of its group.

        As long as something is left, it is still watched.
        """
        has_members = child.has_members()
        if has_members:
            self._tell("=", child.id)
        else:
            self._tell("-", child.id)
        return has_members

    def forget(self, child: Child) -> None:
        """Stop watching the group of a child. The group must have no living members."""
        self._tell("-", child.id)

    def kill_all(self) -> None:
        """Send SIGKILL to all programs, and to all that they started."""
        if self._child is not None:
            kill_marked(self._mark)

    def close(self) -> None:
        """End the guardian process without killing the programs that it watches."""
        self._listed.clear()
        self._stop()

    def _start(self) -> None:
        self._child = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "guardian", self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # In a session of its own and without our environment: if this agent is itself the
            # command of another agent, the other guardian must not find and kill this one before
            # its work is done.
            start_new_session=True,
            env={"PATH": os.defpath},
            cwd="/",
        )
        assert self._child.stdin is not None
        self._pipe = self._child.stdin.fileno()
        os.set_blocking(self._pipe, False)

    def _tell(self, state: str, group: int) -> None:
        """Tell the guardian process about a group. The states are those of `_SCRIPT`."""
        if self._listed.get(group) == state:
            return
        if state == "-":
            self._listed.pop(group, None)
        else:
            self._listed[group] = state
        if self._child is None:
            return
        try:
            os.write(self._pipe, f"{state}{group}\n".encode())
        except (BrokenPipeError, BlockingIOError):
            # The guardian process was killed, or stopped until the pipe was full.
            self._replace()

    def _replace(self) -> None:
        """Start a new guardian process, and tell it the whole list."""
        self._stop()
        self._start()
        lines = [f"{state}{group}\n" for group, state in self._listed.items()]
        os.write(self._pipe, "".join(lines).encode())

    def _stop(self) -> None:
        if self._child is None:
            return
        with self._child:
            # Kill it before the pipe closes: it would take that for our death.
            self._child.kill()
            self._child.wait()
        self._child = None


@contextmanager
def _default_keyboard_signals() -> Generator[None]:
    """Start commands such that the keyboard can interrupt them, even if we ignore its signals.

    A shell without job control starts `codex-py exec … &` with these signals ignored. Every command
    inherits that, and shells cannot undo it. A signal that is caught is reset in a command.
    """
    ignored = [
        number
        for number in _KEYBOARD_SIGNALS
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not ignored or not is_main_thread:
        yield
        return
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
