"""Forks runs of the program from a process that has it loaded: loading takes two thirds of a short run.

It is started by `process.forked.ForkServer`, with a socket as standard input, and in the environment
of all its runs.

Nothing that belongs to one run may be there before the fork:

- The server runs nothing of the program but its imports. It has no thread, no event loop, no key, no
  connection, and no file but its socket.
- A run gets its own session and process group, streams, working directory, umask, arguments and no
  blocked signals. It closes every other descriptor. The environment is that of the server.
- Locks, threads and the state of `random` are renewed by Python itself, that of OpenSSL by OpenSSL.
- The seed of `hash` is that of the server.
- What a session starts when it needs it, such as the guardian and the sandbox, is started in the run.

A run is a child of whoever started the server, and dies with that thread, but not with the server.
"""

import ctypes
import gc
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from codex_py.app import tool_parts
from codex_py.app.features import (
    loop_guard,
    nested_agents_md,
    tool_choice,
    turn_changes,
)
from codex_py.app.features.agents import feature as agents
from codex_py.command_line import exec_program, parsing, worktrees
from codex_py.errors import UsageError
from codex_py.frontends.exec import command, exec_run, json_lines
from codex_py.model.responses import decoder, wire
from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.system_calls import numbers_on
from codex_py.tools.patch import apply_patch

LOADED: Final = (
    agents,
    apply_patch,
    command,
    decoder,
    exec_program,
    exec_run,
    json_lines,
    loop_guard,
    nested_agents_md,
    parsing,
    tool_choice,
    tool_parts,
    turn_changes,
    wire,
    worktrees,
)
"""The modules that most runs load late. What they import is loaded with them."""
_CLONE_PARENT: Final = 0x8000
_MAX_DESCRIPTOR: Final = 1 << 20


def serve_forks(_words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Fork a run for each request, until the other end of the socket is closed.

    Args:
        environment: the variables of all runs.

    Raises:
        UsageError: a user has started it, without a socket.
    """
    if not stat.S_ISSOCK(os.fstat(0).st_mode):
        raise UsageError(
            "--fork-server is for `codex-py batch`, which starts it by itself"
        )
    channel = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    # A collection in a run would copy every page of what is loaded here.
    gc.collect()
    gc.freeze()
    channel.sendall(b"r")
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, 1, 5)
        if not request:
            return 0
        if _fork_sibling() == 0:
            _run(descriptors, environment)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_sibling() -> int:
    """Fork a child of the parent of this process. Returns its id; 0 in the child, -1 if it failed."""
    system_call = ctypes.PyDLL(None).syscall
    number = numbers_on(os.uname().machine)["clone"]
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = system_call(number, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def _run(descriptors: list[int], environment: Mapping[str, str]) -> NoReturn:
    """Become a run of the program, as `python -m codex_py` begins it.

    Args:
        descriptors: the standard ones, the working directory, and the socket that has the request.
    """
    try:
        *standard, folder, own = descriptors
        request = _received(own)
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
        os.fchdir(folder)
        os.closerange(3, _MAX_DESCRIPTOR)
        # The start of the server has changed some for itself.
        os.environ.clear()
        os.environ.update(environment)
        os.umask(request["umask"])
        args: list[str] = request["args"]
        sys.argv[1:] = args
        # The last word is that of the server.
        sys.orig_argv[-1:] = args
        entry = sys.modules["__main__"]
        entry.main()
    except BaseException as error:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
    os._exit(1)


def _received(descriptor: int) -> Any:
    """Tell the id of this process, and wait for the request.

    If it does not come, the other side has given this run up, and has started another one.
    """
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    # Whoever started the driver may have blocked some, such as SIGTERM, which ends a run.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with socket.socket(fileno=descriptor) as channel:
        channel.sendall(b"%d\n" % os.getpid())
        with channel.makefile("rb") as file:
            data = file.read()
    request = None
    with suppress(ValueError):
        request = json.loads(data)
    if request is None or os.getppid() != request["parent"]:
        os._exit(128 + signal.SIGKILL)
    return request
