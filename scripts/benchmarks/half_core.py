"""A group of processes that gets half of one processor, as a small container does. Needs root, on Linux."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_QUOTA_US = _PERIOD_US // 2
_NAME = "codex-py-bench"


@contextmanager
def half_core() -> Generator[Path]:
    """Make the group. Yields the file to which a process writes 0 to join it.

    Raises:
        OSError: this user may not make one, or the kernel has no such groups.
    """
    is_unified = (_ROOT / "cgroup.controllers").exists()
    group = _ROOT / _NAME if is_unified else _ROOT / "cpu" / _NAME
    group.mkdir(exist_ok=True)
    try:
        if is_unified:
            limit = f"{_QUOTA_US} {_PERIOD_US}"
            (group / "cpu.max").write_text(limit, encoding="ascii")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US), encoding="ascii")
            (group / "cpu.cfs_quota_us").write_text(str(_QUOTA_US), encoding="ascii")
        yield group / "cgroup.procs"
    finally:
        group.rmdir()
