"""Attempts: agents that work side by side, each in a process of its own.

`Attempts` starts `codex-py exec` with the options and the prompt of an `ExecInvocation`, in any
folder or in a worktree that is removed afterwards, and returns an `ExecResult`. The agents end with
their processes' parent, however that ends. `EVENTS` and `STDERR` are the files that an attempt
leaves in its folder. `Attempts.run_script` runs a script of the user on the result, in the sandbox.
`PROGRAM` are the words that start this program again.

`Interruption` runs the work of a command in an event loop, and cancels it on a signal.
`is_set_within` waits for an `asyncio.Event`, but no longer than some seconds.
"""

from codex_py.app.attempts import Attempts
from codex_py.app.exec_process import (
    EVENTS,
    PROGRAM,
    STDERR,
    ExecInvocation,
    ExecResult,
)
from codex_py.command_line.interruption import Interruption
from codex_py.process.child import is_set_within

__all__ = [
    "EVENTS",
    "PROGRAM",
    "STDERR",
    "Attempts",
    "ExecInvocation",
    "ExecResult",
    "Interruption",
    "is_set_within",
]
