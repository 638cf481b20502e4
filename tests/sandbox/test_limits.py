"""How much of the machine a command can take, on every way to hold it that bounds it."""

import os
import sys
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.limits import SandboxLimits
from codex_py.sandbox.backends.backend import Rung, platform_rungs
from tests.sandbox.rungs import RUNGS, run_in

LIMITS = SandboxLimits(max_processes=40, max_open_files=50, max_memory_mb=200)
LIMITED = [
    rung
    for rung in platform_rungs(os.environ["PATH"], LIMITS)
    if rung.name in {working.name for working in RUNGS}
]
PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.parametrize("rung", LIMITED, ids=lambda rung: rung.name)

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


def bounds_processes(rung: Rung) -> bool:
    if os.geteuid() == 0:
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        return rung.name == "supervised" or (rung.name == "namespaces" and release >= (6, 14))
    return rung.name in {"namespaces", "bwrap", "views", "supervised"}


def python(rung: Rung, code: str, cwd: Path) -> tuple[int, str]:
    done = run_in(rung, [PYTHON, "-I", "-c", code], SandboxPolicy(), cwd)
    return done.returncode, done.stdout


def test_a_fork_bomb_is_bounded(rung: Rung, tmp_path: Path) -> None:
    if not bounds_processes(rung):
        pytest.skip("it does not bound processes")
    assert python(rung, FORK_BOMB, tmp_path) in BOUNDED


def test_after_processes_have_ended_there_may_be_others(rung: Rung, tmp_path: Path) -> None:
    done = run_in(
        rung,
        ["/bin/bash", "-c", "for i in {1..100}; do /bin/true & wait; done; (exit 7) & wait $!"],
        SandboxPolicy(),
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (7, "")


def test_threads_count_as_processes(rung: Rung, tmp_path: Path) -> None:
    if not bounds_processes(rung):
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
    assert python(rung, code, tmp_path) in BOUNDED


def test_a_process_opens_no_more_files_than_it_may(rung: Rung, tmp_path: Path) -> None:
    code = """
import os
files = []
try:
    while len(files) < 100:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error.strerror, max(files))
"""
    assert python(rung, code, tmp_path) == (0, "Too many open files 49\n")


def test_a_process_takes_no_more_memory_than_it_may(rung: Rung, tmp_path: Path) -> None:
    code = """
small = bytearray(50 << 20)
try:
    bytearray(300 << 20)
except MemoryError:
    print("bounded")
"""
    assert python(rung, code, tmp_path) == (0, "bounded\n")
