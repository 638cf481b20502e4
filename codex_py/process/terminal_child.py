"""Runs a program, such as an editor, that has the terminal of this process until it ends."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

_CONTINUES_S: Final = 0.1
"""The longest time between our continuation and the program's, if the shell continues both."""
_LOOK_S: Final = 0.01
"""The time between two looks at the program."""


def run_in_terminal(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program in our terminal and our process group. Returns its exit code.

    The exit code is negative after a signal. If the program stops, as on Ctrl-Z, this process stops
    too, and the shell has the terminal until it continues both. If there is no shell that could do
    so, the program is continued at once.

    SIGTSTP must have its default effect, so that Ctrl-Z also stops this process.

    Raises:
        OSError: the program cannot be run.
    """
    child = subprocess.Popen(command, env=environment)
    status = _next_status(child.pid)
    while os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
        if os.WIFCONTINUED(status):
            status = _next_status(child.pid)
            continue
        # The key may have stopped both of us. Then we run only because the shell has continued us,
        # and it also continues the program.
        soon = _status_soon(child.pid)
        if soon is None:
            # Only the program has stopped: stop with it. The kernel ignores this signal if no shell
            # could continue our group.
            os.kill(0, signal.SIGTSTP)
            child.send_signal(signal.SIGCONT)
            soon = _next_status(child.pid)
        status = soon
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode


def _next_status(process_id: int) -> int:
    """Wait until a child stops or ends."""
    _, status = os.waitpid(process_id, os.WUNTRACED)
    return status


def _status_soon(process_id: int) -> int | None:
    """Return the next status of a stopped child that is continued, or ends, within a moment.

    Returns None if it stays stopped.
    """
    until = time.monotonic() + _CONTINUES_S
    while time.monotonic() < until:
        reported, status = os.waitpid(process_id, os.WCONTINUED | os.WNOHANG)
        if reported:
            return status
        time.sleep(_LOOK_S)
    return None
