"""Start the program: as a fork of a process that has it loaded, or as a process of its own."""

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support import fork_server
from tests.support.fork_server import receive_message, send_message

_READ_BY_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
"""Begin the names of variables that count when an interpreter starts, and not after that."""
_FOLDERS = ("PYTHONPATH", "PYTHONSTARTUP")
"""Those of them that name a folder or a file of the test."""
_TERMINAL = ("codex_py.frontends.tui",)
_MCP = ("codex_py.mcp", "codex_py.frontends.mcp_server", "codex_py.frontends.acp")
"""Parts that some servers do not import. The SDKs of MCP and ACP take as long as all the rest."""
_SERVERS: Final[Mapping[tuple[tuple[str, str], ...], tuple[str, ...]]] = {
    (): _TERMINAL,
    (("LANG", "C.UTF-8"),): _MCP,
}
"""The servers for most runs, the second for those in a terminal: which of these variables each has, and what it leaves
out."""


def start_codex_py(
    args: Sequence[str | Path],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    stdin: int | None = subprocess.DEVNULL,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    terminal: bool = False,
    limit: Callable[[], object] | None = None,
    confined: Sequence[str] = (),
    real: bool | None = None,
) -> subprocess.Popen[bytes]:
    """Start `codex-py ARGS`, with this environment and no other variables.

    With `terminal`, it leads a session that its standard input controls. `limit` runs in a process of its own, before
    the program. `confined` is a command that becomes the one behind it.

    A run is a fork unless there is a `limit`, it is asked to be `real`, or a variable needs an interpreter of its own.
    If `real` is False, variables are no reason: the interpreter that is forked has them, those aside that name folders.
    """
    words = [os.fspath(arg) for arg in args]
    of_python = tuple(
        sorted(
            item for item in environment.items() if item[0].startswith(_READ_BY_PYTHON)
        )
    )
    if real is False:
        of_python = tuple(item for item in of_python if item[0] not in _FOLDERS)
    elif of_python not in _SERVERS:
        real = True
    real = real or limit is not None or "REAL_PROCESSES" in os.environ
    if not real and fork_server.CLONE is not None:
        request = {
            "args": words,
            "cwd": str(cwd),
            "environment": dict(environment),
            "terminal": terminal,
        }
        return _Fork(
            _server(of_python, tuple(confined)), request, (stdin, stdout, stderr)
        )
    argv = [*confined, sys.executable, "-m", "codex_py", *words]
    return subprocess.Popen(
        leading_session(argv) if terminal else argv,
        cwd=cwd,
        env=dict(environment),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=terminal,
        preexec_fn=limit,
    )


def leading_session(argv: Sequence[str]) -> list[str]:
    """A command that makes the terminal on its standard input the controlling one of its session, then becomes
    `argv`."""
    code = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execvp(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, *argv]


class _Server:
    def __init__(
        self,
        variables: Mapping[str, str],
        left_out: Sequence[str],
        confined: Sequence[str],
    ) -> None:
        self._channel, theirs = socket.socketpair()
        self._turn = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [*confined, sys.executable, fork_server.__file__, *left_out],
                env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables},
                stdin=theirs.fileno(),
            )
        atexit.register(self._close)

    def fork(self, request: Mapping[str, Any], fds: Sequence[int]) -> int:
        """Start a run with these standard descriptors. Returns the id of the process, a child of ours."""
        with self._turn:
            umask = os.umask(0)
            os.umask(umask)
            send_message(self._channel, {**request, "umask": umask}, fds)
            pid, _ = receive_message(self._channel)
            return pid

    def _close(self) -> None:
        self._channel.close()
        self._process.wait()


@cache
def _server(
    variables: tuple[tuple[str, str], ...], confined: tuple[str, ...]
) -> _Server:
    few_runs = confined or variables not in _SERVERS
    left_out = (*_TERMINAL, *_MCP) if few_runs else _SERVERS[variables]
    return _Server(dict(variables), left_out, confined)


class _Fork(subprocess.Popen[bytes]):
    """A run that a server forks. All that a `Popen` does later works because the process is a child of ours."""

    def __init__(
        self, server: _Server, request: Mapping[str, Any], streams: Sequence[int | None]
    ) -> None:
        self._server, self._request = server, request
        stdin, stdout, stderr = streams
        super().__init__(
            ["codex-py", *request["args"]], stdin=stdin, stdout=stdout, stderr=stderr
        )

    def _execute_child(self, *handed: Any) -> None:
        stdin, _, _, stdout, _, stderr = pipes = handed[10:16]
        fds = [
            inherited if given == -1 else given
            for inherited, given in enumerate((stdin, stdout, stderr))
        ]
        try:
            self.pid = self._server.fork(self._request, fds)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
