"""Filters in force. What the sandbox asks of them is in `test_escapes`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux")

# What Landlock before its version 3 leaves to the filter; newer kernels would never use it.
_GUARDED = """
import os, sys
from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.seccomp import filter_program
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.set_filter(filter_program(os.uname().machine, offline=True, guard_truncate=True))
def refused(call, *arguments):
    try:
        call(*arguments)
    except PermissionError:
        return True
    return False
print(refused(os.truncate, "file", 0), refused(os.open, "file", os.O_RDONLY | os.O_TRUNC), end=" ")
print(open("file").read(), end=" ")
print(refused(os.open, "file", os.O_RDONLY), refused(os.open, "file", os.O_WRONLY | os.O_TRUNC))
"""


def test_files_are_cut_only_where_they_are_opened_for_writing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept", encoding="ascii")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _GUARDED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"True True kept False False\n", b"")
