"""The process that ends everything that a command has left behind."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="subreapers are of Linux")

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
    assert subprocess.run([sys.executable, "-c", _SLOW], check=False, timeout=20).returncode == 7
