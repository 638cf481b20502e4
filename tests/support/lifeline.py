"""Learn that processes we have no handle on are dead: they hold a FIFO whose end we wait for."""

import os
import select
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_DEADLINE_S = 120.0


class Lifeline:
    """Put `hold` in front of a shell script: it and all that it starts are on the line then."""

    def __init__(self, directory: Path) -> None:
        path = directory / "lifeline"
        os.mkfifo(path)
        self.hold = f"exec 9>{path}; echo up >&9; "
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def wait_until_up(self, times: int = 1) -> None:
        """Wait until that many holders have said so."""
        seen, deadline = b"", time.monotonic() + _DEADLINE_S
        while len(seen) < times * len("up\n"):
            assert time.monotonic() < deadline, "not up"
            if not (said := self._read()):
                # Nobody holds it just now, which no event ends.
                time.sleep(0.01)
            seen += said

    def wait_until_dead(self) -> None:
        """Wait until no process holds the line; the test fails if one still does after a while."""
        while self._read():
            pass

    def was_held(self) -> bool:
        """Whether anything has happened on the line: it can be waited for only then."""
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def is_held(self) -> bool:
        return not select.select([self._descriptor], [], [], 0)[0]

    def _read(self) -> bytes:
        while True:
            readable, _, _ = select.select([self._descriptor], [], [], _DEADLINE_S)
            assert readable, "still held"
            try:
                return os.read(self._descriptor, 1024)
            except BlockingIOError:
                continue  # it was at its end, and somebody has opened it since
