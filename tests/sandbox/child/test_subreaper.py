"""The process that ends everything that a command has left behind."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="subreapers are of Linux"
)

_SLOW = """
import os
from codex_py.sandbox.child.confinement import Confinement
from codex_py.sandbox.child.subreaper import Subreaper

class Slow(Subreaper):
    def start(self):
        command = super().start()
        os.waitid(os.P_PID, command, os.WEXITED | os.WNOWAIT)
        return command

    def become_command(self):
        os._exit(7 if os.getsid(os.getppid()) != os.getsid(0) else 1)

Slow(Confinement(["landlock", "filter=", "alive=", "--"])).run()
"""


def test_a_command_starts_only_when_the_subreaper_has_left_its_group() -> None:
    # However late the subreaper gets the processor: who kills the group must not kill it as well.
    assert (
        subprocess.run(
            [sys.executable, "-c", _SLOW], check=False, timeout=120
        ).returncode
        == 7
    )


_MANY = """
import os, resource, signal
from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.subreaper import descendants, kill_descendants

kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
ended, up = os.pipe()
for _ in range(10):
    if not os.fork():
        for _ in range(9):
            if os.fork():
                break
        os.write(up, b"x")
        signal.pause()
os.close(up)
count = 0
while count < 100:
    count += len(os.read(ended, 100))
found, threads = descendants()
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
kill_descendants()
print(len(found), threads, len(descendants()[0]), os.read(ended, 1))
"""


def test_more_processes_than_descriptors_are_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MANY], capture_output=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == (b"100 100 0 b''\n", b"")
