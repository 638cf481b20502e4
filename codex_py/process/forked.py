"""Starts runs of this program as forks of a process that has it loaded, on Linux.

See `cli.fork_server` for what such a process may hold.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.process.child import Child
from codex_py.process.guardian import Guardian

_TIMEOUT_S: Final = 5.0
"""The time that a fork may take. It takes some ms."""
_STATUS: Final = Path("/proc/self/status")
_MACHINES: Final = frozenset({"x86_64", "aarch64"})


class ForkServer:
    """A process that forks a run of the program on request. No other process can reach it.

    It is not ready before it has loaded the program, and it never is where the system has no such
    forks. After a failure it is given up. The runs that it has forked go on then.
    """

    def __init__(
        self,
        command: Sequence[str],
        guardian: Guardian,
        environment: Mapping[str, str],
    ) -> None:
        """Start the process.

        Args:
            command: becomes the process.
            guardian: kills the process and its runs if this process is killed.
            environment: the variables of all runs.
        """
        self._guardian = guardian
        self._environment = dict(environment)
        self._channel: socket.socket | None = None
        self._child: Child | None = None
        self._has_loaded = False
        if sys.platform == "linux" and os.uname().machine in _MACHINES:
            self._start(command)

    def _start(self, command: Sequence[str]) -> None:
        try:
            self._channel, others = socket.socketpair()
            with others:
                self._child = self._guardian.spawn(
                    command,
                    cwd=Path("/"),
                    environment=self._environment,
                    stdin=others.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        except OSError:
            self.close()

    def spawn(
        self,
        args: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> Child | None:
        """Start `codex-py ARGS`. Returns None if it was not started; then start it anew.

        It is never started where an ordinary start raises an error: that says why.

        This blocks for some ms, and for 5 s if the process does not answer, which is given up then.

        The run leads a session and a process group, and it ends with the thread that has made this
        server.

        Args:
            streams: the descriptors of its standard streams.
        """
        if environment != self._environment or not self.is_ready:
            return None
        if any("\0" in word for word in args):
            return None
        try:
            # With the dot, this also fails if the folder may not be entered.
            folder = os.open(f"{cwd}/.", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            request = {"args": [*args], "parent": os.getpid(), "umask": _umask()}
            run = self._fork(json.dumps(request).encode(), [*streams, folder])
        except (OSError, ValueError):
            # The process was killed or stopped, or the system refuses another one.
            self.close()
            return None
        finally:
            os.close(folder)
        _, mark = self._guardian.marked({})
        child = Child(run, mark)
        self._guardian.watch(child)
        return child

    @property
    def is_ready(self) -> bool:
        """True if the process has loaded the program. Does not wait for that."""
        if self._channel is None or self._has_loaded:
            return self._has_loaded
        try:
            self._has_loaded = self._channel.recv(1, socket.MSG_DONTWAIT) == b"r"
        except BlockingIOError:
            return False
        except OSError:
            self._has_loaded = False
        if not self._has_loaded:
            self.close()
        return self._has_loaded

    def _fork(self, request: bytes, descriptors: Sequence[int]) -> "_ForkedRun":
        """Ask for a fork, which tells its id before it gets the request.

        So a fork of which we do not know ends by itself, and no run happens twice.

        Args:
            descriptors: the standard ones, and the working directory.

        Raises:
            OSError: there is no fork.
            ValueError: its answer is not an id.
        """
        assert self._channel is not None
        own, others = socket.socketpair()
        with own:
            own.settimeout(_TIMEOUT_S)
            with others:
                socket.send_fds(self._channel, [b"f"], [*descriptors, others.fileno()])
            with own.makefile("rb") as file:
                run = _ForkedRun(int(file.readline()))
            own.sendall(request)
        return run

    def close(self) -> None:
        """End the process, but none of its runs."""
        self._has_loaded = False
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._child is not None:
            os.kill(self._child.id, signal.SIGKILL)
            self._child.process.wait()
            self._guardian.forget(self._child)
            self._child = None


class _ForkedRun(subprocess.Popen[bytes]):
    """A child of this process that it did not start itself. It can be waited for, without a timeout."""

    def __init__(self, pid: int) -> None:  # pyright: ignore[reportMissingSuperCall] - that starts one
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = None
        self.stdout = None
        self.stderr = None
        self._waiting = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002 - as in `Popen`
        # Only one call can learn the exit code from the system.
        with self._waiting:
            if self.returncode is None:
                _, status = os.waitpid(self.pid, 0)
                self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode


def _umask() -> int:
    """Return the umask of this process.

    `os.umask` would change it for a moment, in which another thread may create a file.

    Raises:
        OSError: the system does not tell it.
    """
    found = re.search(rb"^Umask:\s*([0-7]+)$", _STATUS.read_bytes(), re.MULTILINE)
    if found is None:
        raise OSError(f"{_STATUS} has no umask")
    return int(found[1], 8)
