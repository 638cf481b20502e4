"""Debuggers and the like: a command may look into its own processes, and into no others."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from tests.sandbox.local_backends import BACKENDS, run_in, workspace

PYTHON = os.path.realpath(sys.executable)
_TRACES = {"namespaces", "bwrap", "views"}

pytestmark = pytest.mark.parametrize(
    "backend", BACKENDS, ids=lambda backend: backend.name
)

# Numbers of system calls: x86-64, then other machines.
_TRACER = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, TRACEME = 0x4206, 0
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def read(process, place):
    copy = ctypes.create_string_buffer(6)
    here, there = Vector(ctypes.addressof(copy), 6), Vector(place, 6)
    count = libc.process_vm_readv(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return copy.raw[:max(count, 0)]
def write(process, place):
    text = ctypes.create_string_buffer(b"poked!")
    here, there = Vector(ctypes.addressof(text), 6), Vector(place, 6)
    return libc.process_vm_writev(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
secret = ctypes.create_string_buffer(b"secret")
place = ctypes.addressof(secret)
"""


def _python(
    backend: Backend, code: str, cwd: Path, policy: SandboxPolicy | None = None
) -> str:
    argv = [PYTHON, "-I", "-S", "-c", f"{_TRACER}\n{code}"]
    return run_in(backend, argv, policy or workspace(cwd), cwd).stdout


@pytest.fixture
def traces(backend: Backend) -> None:
    if backend.name not in _TRACES:
        pytest.skip("it lets nothing be traced")


@pytest.mark.usefixtures("traces")
def test_a_command_traces_its_children(backend: Backend, tmp_path: Path) -> None:
    code = """
child = os.fork()
if not child:
    signal.pause()
seized = libc.ptrace(SEIZE, child, 0, 0)
print(seized, read(child, place), write(child, place), read(child, place))
os.kill(child, signal.SIGKILL)
"""
    assert _python(backend, code, tmp_path) == "0 b'secret' 6 b'poked!'\n"


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize(
    ("tool", "script"),
    [
        ("gdb", "gcc -g main.c && gdb -batch -ex 'break f' -ex run -ex 'print x' -ex kill ./a.out"),
        ("strace", "gcc main.c && strace -f -e trace=openat ./a.out 2>trace; grep -q openat trace && echo '$1 = 6'"),
        ("gcc", "gcc -fsanitize=address main.c && ./a.out || test $? = 42 && echo '$1 = 6'"),
    ],
)  # fmt: skip
def test_debuggers_and_sanitizers_work(
    backend: Backend, tmp_path: Path, tool: str, script: str
) -> None:
    if shutil.which(tool) is None or shutil.which("gcc") is None:
        pytest.skip("needs its program")
    (tmp_path / "main.c").write_text(
        "int f(int x) { return 7 * x; }\nint main(void) { return f(6); }\n",
        encoding="ascii",
    )
    policy = SandboxPolicy("workspace-write", (tmp_path,))
    done = run_in(backend, ["/bin/bash", "-c", script], policy, tmp_path)
    assert "$1 = 6" in done.stdout, done.stdout


@pytest.mark.usefixtures("traces")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_leak_is_found(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(7); p = 0; return 0; }\n",
        encoding="ascii",
    )
    policy = SandboxPolicy("workspace-write", (tmp_path,))
    script = "gcc -fsanitize=address main.c && ./a.out"
    done = run_in(backend, ["/bin/bash", "-c", script], policy, tmp_path)
    assert (done.returncode != 0, "7 byte(s) leaked" in done.stdout) == (True, True), (
        done.stdout
    )


_OTHERS = """
for process in {processes}:
    print(libc.ptrace(SEIZE, process, 0, 0), read(process, place), write(process, place), end=" ")
    for name in ("mem", "environ", "fd/0", "root/etc", "cwd"):
        try:
            os.open(f"/proc/{{process}}/{{name}}", os.O_RDONLY)
            print(name)
        except OSError:
            pass
"""


def test_the_process_that_holds_a_command_is_not_traced(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap":
        pytest.skip("it is bubblewrap's own, and nothing is in it")
    # The first one of the namespace, or the subreaper.
    output = _python(backend, _OTHERS.format(processes="(1, os.getppid())"), tmp_path)
    assert output == "-1 b'' -1 -1 b'' -1 "


def test_the_agent_is_not_traced(backend: Backend, tmp_path: Path) -> None:
    output = _python(backend, _OTHERS.format(processes=[os.getpid()]), tmp_path)
    assert output == "-1 b'' -1 "


def test_a_process_outside_is_not_traced(backend: Backend, tmp_path: Path) -> None:
    code = f"""
import subprocess
{_OTHERS.format(processes="[int(os.environ['OTHER'])]")}
"""
    other = os.fork()
    if not other:
        os.execvp("sleep", ["sleep", "600"])
    try:
        argv = [PYTHON, "-I", "-S", "-c", f"{_TRACER}\n{code}"]
        environment = {"OTHER": str(other)}
        output = run_in(
            backend, argv, workspace(tmp_path), tmp_path, environment
        ).stdout
    finally:
        os.kill(other, 9)
        os.waitpid(other, 0)
    assert output == "-1 b'' -1 "


@pytest.mark.usefixtures("traces")
def test_a_command_that_wants_its_parent_to_trace_it_goes_on(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap":
        pytest.skip("its parent is a shell, which waits for a tracer")
    code = """
libc.ptrace(TRACEME, 0, 0, 0)
if os.fork():
    os.wait()
    os.execv("/bin/sh", ["sh", "-c", "trap 'echo caught; exit 4' USR1; kill -USR1 $$"])
"""
    argv = [PYTHON, "-I", "-S", "-c", f"{_TRACER}\n{code}"]
    done = run_in(backend, argv, workspace(tmp_path), tmp_path)
    assert (done.returncode, done.stdout) == (4, "caught\n")
