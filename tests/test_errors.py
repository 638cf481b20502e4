"""How the cause of an error is worded for a user."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.errors import ToolError, cause


def _failure(action: Callable[[], object]) -> OSError:
    with pytest.raises(FileNotFoundError) as caught:
        action()
    return caught.value


def test_the_cause_of_an_os_error_has_neither_a_number_nor_a_class(tmp_path: Path):
    gone = tmp_path / "gone"
    for action in (
        gone.read_bytes,
        gone.rmdir,
        lambda: os.scandir(str(gone)),
        lambda: os.scandir(os.fsencode(gone)),
        lambda: subprocess.run([gone], check=False),
        lambda: gone.rename(tmp_path / "other"),
    ):
        assert cause(_failure(action)) == f"No such file or directory: {gone}"
    assert (
        cause(OSError(2, "No such file or directory", gone))
        == f"No such file or directory: {gone}"
    )


def test_the_cause_of_another_error_is_its_text():
    assert cause(OSError("the server is gone")) == "the server is gone"
    assert cause(OSError(28, "No space left on device")) == "No space left on device"
    assert cause(ConnectionResetError()) == "ConnectionResetError"
    # A descriptor is no path.
    assert cause(OSError(9, "Bad file descriptor", 3)) == "Bad file descriptor"
    assert cause(ToolError("no such file")) == "no such file"
