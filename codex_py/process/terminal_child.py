"""Runs a program that has the terminal of this process until it ends, such as an editor."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

_CONTINUES_S: Final = 0.1
"""Seconds within which a program is continued with us, if the shell continues the whole job."""
_LOOK_S: Final = 0.01


def run_in_terminal(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program in our terminal and our process group. Returns its exit code.

    The exit code is negative after a signal. If the program stops, as on Ctrl-Z, then the whole job
    stops, and the shell has the terminal until it continues the job. Without a shell that could do
    so, the program continues at once.

    SIGTSTP must have its default meaning, so that Ctrl-Z also stops this process.

    Raises:
        OSError: the program cannot be run.
    """
    child = subprocess.Popen(command, env=environment)
    status = _next_status(child.pid)
    while os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
        if os.WIFCONTINUED(status):
            status = _next_status(child.pid)
            continue
        # If the key stopped both of us, this is read after the shell has continued both.
        soon = _status_soon(child.pid)
        if soon is None:
            # The kernel ignores this in a group that no shell could continue.
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
    """The status of a stopped child that is continued, or ends, in a moment; else None."""
    until = time.monotonic() + _CONTINUES_S
    while time.monotonic() < until:
        reported, status = os.waitpid(process_id, os.WCONTINUED | os.WNOHANG)
        if reported:
            return status
        time.sleep(_LOOK_S)
    return None
