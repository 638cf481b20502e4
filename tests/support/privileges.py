"""Root may read and write everything; a program under test should not."""

import ctypes
import os
import sys

import pytest

_PR_CAPBSET_DROP = 24
_OVERRIDING = (1, 2, 3)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER."""
_READING_PROCESSES = (19, 21, 38)
"""CAP_SYS_PTRACE, and CAP_SYS_ADMIN and CAP_PERFMON, which newer kernels take for reading."""


def heed_permissions() -> None:
    """For `preexec_fn`: what is executed next goes by the permission bits of files, even for root."""
    _drop(*_OVERRIDING)


def respect_processes() -> None:
    """For `preexec_fn`: what is executed next reads of other processes what an ordinary user could, even for root."""
    _drop(*_READING_PROCESSES)


def _drop(*capabilities: int) -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in capabilities:
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0 and sys.platform != "linux",
    reason="root may read and write everything",
)
