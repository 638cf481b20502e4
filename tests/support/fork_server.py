"""A process that has the program loaded and forks for each run: starting Python anew takes three times as long.

Run as a program by `tests.support.codex_process`, with a socket as standard input. A request is a message with the
three standard descriptors; the answer is the process id. Each run is a child of whoever started the server, which waits
for it as for any process that it starts itself. Before it forks, the server runs nothing of the program but imports and
one pure function: the children have no threads and no event loop in common, and no caches that depend on anything.
"""

import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, Final, NoReturn

CLONE: Final = (
    {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
    if sys.platform == "linux"
    else None
)
"""The number of the system call; None where it is not known, and nothing can be forked so."""
_CLONE_PARENT = 0x8000
_MAX_FD = 1 << 20
_NOT_IMPORTED = ("codex_py.testing", "codex_py.sandbox.child")
"""They are no part of a run."""


def send_message(channel: socket.socket, message: Any, fds: Sequence[int] = ()) -> None:
    """Send what JSON can hold, and descriptors."""
    data = json.dumps(message).encode()
    # The descriptors come with the first bytes; the others may take several calls.
    socket.send_fds(channel, [struct.pack("!I", len(data))], fds)
    channel.sendall(data)


def receive_message(channel: socket.socket) -> tuple[Any, list[int]]:
    """Receive a message and its descriptors.

    Raises:
        EOFError: the other side is gone.
    """
    head, fds, _, _ = socket.recv_fds(channel, 4, 3)
    while len(head) < 4:
        head += _receive(channel, 4 - len(head))
    (length,) = struct.unpack("!I", head)
    data = bytearray()
    while len(data) < length:
        data += _receive(channel, length - len(data))
    return json.loads(data), fds


def _receive(channel: socket.socket, size: int) -> bytes:
    data = channel.recv(size)
    if not data:
        raise EOFError
    return data


def _serve(left_out: Sequence[str]) -> None:
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 0)
    program = _load((*_NOT_IMPORTED, *left_out))
    # A child that collects garbage would copy every page of what is imported here.
    gc.collect()
    gc.freeze()
    # Python itself puts this into an environment that names no locale.
    coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    while True:
        try:
            request, fds = receive_message(channel)
        except EOFError:
            return
        pid = _fork_sibling()
        if not pid:
            _run(program, request, fds, coerced)
        for fd in fds:
            os.close(fd)
        send_message(channel, pid)


def _load(left_out: tuple[str, ...]) -> ModuleType:
    """Import the program. Returns the module that starts it."""
    # The folder of this script; `python -m codex_py` removes its own one as well.
    del sys.path[0]
    package = importlib.import_module("codex_py")
    importlib.import_module("codex_py.cli.main").keep_libraries_light()
    for module in pkgutil.walk_packages(package.__path__, "codex_py."):
        if not module.name.endswith("__main__") and not module.name.startswith(
            left_out
        ):
            # What needs a package that is not installed here fails in the run that wants it.
            with suppress(ModuleNotFoundError):
                importlib.import_module(module.name)
    # What this compiles takes a fifth of a run with a command.
    importlib.import_module("codex_py.execpolicy.words").plain_script("true")
    return importlib.import_module("codex_py.__main__")


def _fork_sibling() -> int:
    """Fork a child of the parent of this process. Returns its id; 0 in the child."""
    system_call = ctypes.PyDLL(None).syscall
    before, after = (
        ctypes.pythonapi.PyOS_BeforeFork,
        ctypes.pythonapi.PyOS_AfterFork_Parent,
    )
    in_child = ctypes.pythonapi.PyOS_AfterFork_Child
    before()
    pid = system_call(CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid:
        after()
        assert pid > 0, "the system call `clone` failed"
        return pid
    in_child()
    return 0


def _run(
    program: ModuleType, request: Any, fds: list[int], coerced: dict[str, str]
) -> NoReturn:
    """Become a run of the program, as `python -m codex_py` begins it."""
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, _MAX_FD)
        if request["terminal"]:
            os.setsid()
            # The first terminal that a session opens is the one that controls it.
            os.close(os.open(os.ttyname(0), os.O_RDWR))
        os.umask(request["umask"])
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update({**request["environment"], **coerced})
        time.tzset()
        _open_streams()
        sys.argv = [str(program.__file__), *request["args"]]
        sys.orig_argv = [sys.executable, "-m", "codex_py", *request["args"]]
        program.main()
    except BaseException as error:  # noqa: BLE001 -- as the interpreter does
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
    os._exit(1)


def _open_streams() -> None:
    """Give Python streams of the new standard descriptors, as it opens them when it starts."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        file = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedReader(file) if number == 0 else io.BufferedWriter(file),
            encoding=old.encoding,
            errors=old.errors,
            newline=None if number == 0 else "\n",
            line_buffering=number == 2 or file.isatty(),
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    try:
        _serve(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
