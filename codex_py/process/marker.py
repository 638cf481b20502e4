"""A mark in the environment of commands, by which their descendants are found in any group.

A process that calls `setsid`, as daemons and the jobs of an interactive shell do, leaves the group that
we can signal. It keeps its environment, which Linux shows in `/proc/PID/environ`; on other systems only the
group is killed. A process that also replaces its environment is not found: only the sandbox ends it.
"""

import os
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_VARIABLE = "CODEX_PY_PROCESS"
_PROC = Path("/proc")
# Each round kills what was forked during the last one. This does not stop a fork bomb.
_MAX_ROUNDS = 10


@dataclass(slots=True)
class Marker:
    """Marks the commands of one agent, each with a number of its own."""

    token: str = field(default_factory=lambda: secrets.token_hex(8))
    _count: int = 0

    @property
    def prefix(self) -> str:
        """In the environment of every command of this agent."""
        return f"{_VARIABLE}={self.token}."

    def mark(self, environment: dict[str, str]) -> tuple[dict[str, str], str]:
        """The environment with a new mark, and the mark, which is unique to the command."""
        self._count += 1
        value = f"{self.token}.{self._count}"
        return {**environment, _VARIABLE: value}, f"{_VARIABLE}={value}\0"


def kill_marked(mark: str) -> None:
    """SIGKILL every process with the mark in its environment. Takes some 2 ms for 100 processes."""
    if sys.platform != "linux":
        return
    killed: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        found = _marked(mark.encode()) - killed
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def _marked(mark: bytes) -> set[int]:
    pids: set[int] = set()
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            # It has ended, or belongs to another user.
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    pids.add(int(entry.name))
    return pids
