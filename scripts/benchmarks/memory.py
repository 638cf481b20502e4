"""The memory of many processes together, where pages that they share count once."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_EVERY_S = 0.05


def pss_bytes(pid: int) -> int:
    """The proportional set size (PSS) of a process; 0 if it is over."""
    return _field_bytes(pid, "smaps_rollup", "Pss:")


def peak_rss_bytes(pid: int) -> int:
    """The most memory that was resident since the program was started; 0 if it is over."""
    return _field_bytes(pid, "status", "VmHWM:")


class PeakMemory:
    """Samples the memory of processes and of all that they start. Linux only.

    Use it as a context manager around their lives; then `peak_bytes` is the largest sum that was seen.
    """

    def __init__(
        self, pids: Sequence[int], memory: Callable[[int], int] = pss_bytes
    ) -> None:
        self._pids = pids
        self._memory = memory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(_EVERY_S):
            family = [member for pid in self._pids for member in _with_descendants(pid)]
            self.peak_bytes = max(self.peak_bytes, sum(map(self._memory, family)))


def _with_descendants(pid: int) -> Iterator[int]:
    yield pid
    # A process may end while it is looked at.
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text("ascii").split():
                yield from _with_descendants(int(child))


def _field_bytes(pid: int, file: str, field: str) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text("utf-8").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0
