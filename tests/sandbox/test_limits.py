"""How much of the machine a command can take, on every way to hold it that bounds it."""

import os
import sys
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxLimits, SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import platform_backends
from tests.sandbox.local_backends import BACKENDS, run_in

LIMITS = SandboxLimits(max_processes=40, max_open_files=50, max_memory_mb=200)
LIMITED = [
    backend
    for backend in platform_backends(os.environ["PATH"], LIMITS)
    if backend.name in {working.name for working in BACKENDS}
]
PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.parametrize(
    "backend", LIMITED, ids=lambda backend: backend.name
)

# Ends of itself at 500, should nothing else bound it. Ids of processes are bounded at 300 and some more.
# What counts now and then has ten seconds to notice.
FORK_BOMB = """
import errno, os, signal
count = 0
gate, hold = os.pipe()
try:
    for count in range(500):
        if not os.fork():
            os.close(hold)
            os.read(gate, 1)
            os._exit(0)
except OSError as error:
    assert error.errno == errno.EAGAIN, error
if count > 400:
    signal.alarm(10)
    signal.pause()
print("bounded")
"""


BOUNDED = {(0, "bounded\n"), (137, "")}
"""No more can be started, or the command is killed."""


def bounds_processes(backend: Backend) -> bool:
    if os.geteuid() == 0:
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        return backend.name == "supervised" or (
            backend.name == "namespaces" and release >= (6, 14)
        )
    return backend.name in {"namespaces", "bwrap", "views", "supervised"}


def python(backend: Backend, code: str, cwd: Path) -> tuple[int, str]:
    done = run_in(backend, [PYTHON, "-I", "-c", code], SandboxPolicy(), cwd)
    return done.returncode, done.stdout


def test_a_fork_bomb_is_bounded(backend: Backend, tmp_path: Path) -> None:
    if not bounds_processes(backend):
        pytest.skip("it does not bound processes")
    assert python(backend, FORK_BOMB, tmp_path) in BOUNDED


def test_after_processes_have_ended_there_may_be_others(
    backend: Backend, tmp_path: Path
) -> None:
    done = run_in(
        backend,
        [
            "/bin/bash",
            "-c",
            "for i in {1..100}; do /bin/true & wait; done; (exit 7) & wait $!",
        ],
        SandboxPolicy(),
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (7, "")


def test_threads_count_as_processes(backend: Backend, tmp_path: Path) -> None:
    if not bounds_processes(backend):
        pytest.skip("it does not bound processes")
    code = """
import signal, threading
gate = threading.Event()
count = 0
try:
    for count in range(500):
        threading.Thread(target=gate.wait).start()
except RuntimeError:
    pass
if count > 400:
    signal.alarm(10)
    signal.pause()
gate.set()
print("bounded")
"""
    assert python(backend, code, tmp_path) in BOUNDED


def test_a_process_opens_no_more_files_than_it_may(
    backend: Backend, tmp_path: Path
) -> None:
    code = """
import os
files = []
try:
    while len(files) < 100:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error.strerror, max(files))
"""
    assert python(backend, code, tmp_path) == (0, "Too many open files 49\n")


def test_a_process_takes_no_more_memory_than_it_may(
    backend: Backend, tmp_path: Path
) -> None:
    code = """
small = bytearray(50 << 20)
try:
    bytearray(300 << 20)
except MemoryError:
    print("bounded")
"""
    assert python(backend, code, tmp_path) == (0, "bounded\n")
