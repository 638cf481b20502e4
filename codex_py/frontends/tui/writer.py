"""A terminal to write to that may be slow, stopped with Ctrl-S, or gone."""

import io
import os
import threading
import time
from collections import deque
from collections.abc import Callable


class TerminalWriter(io.TextIOBase):
    """Writes from a thread of its own, so that a terminal which takes nothing holds nothing up.

    What is written goes out in order, after the next `flush`. Neither of them blocks or raises: see
    `backlog` before adding what can wait, and `on_failure`.
    """

    def __init__(self, fd: int) -> None:
        self.on_failure: Callable[[], None] = lambda: None
        """Called in the writing thread, once, when the terminal is gone."""
        self._fd = fd
        self._parts: list[str] = []
        self._queue: deque[bytes] = deque()
        self._backlog = 0
        self._is_closing = False
        self._has_failed = False
        self._state = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="terminal writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Bytes that the terminal has not taken yet."""
        return self._backlog

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def write(self, text: str, /) -> int:
        self._parts.append(text)
        return len(text)

    def flush(self) -> None:
        data = "".join(self._parts).encode(errors="replace")
        self._parts.clear()
        if not data:
            return
        with self._state:
            if not self._has_failed:
                self._queue.append(data)
                self._backlog += len(data)
                self._state.notify_all()

    def drain(self, timeout_s: float) -> bool:
        """Wait until all is written; whether it was in time."""
        deadline = time.monotonic() + timeout_s
        with self._state:
            while self._backlog and not self._has_failed:
                left = deadline - time.monotonic()
                if left <= 0 or not self._state.wait(left):
                    return False
        return True

    def _run(self) -> None:
        while True:
            with self._state:
                while not self._queue:
                    self._state.wait()
                data = memoryview(self._queue.popleft())
            while data:
                try:
                    count = os.write(self._fd, data[:4096])
                except BlockingIOError:
                    # Another program made the terminal non-blocking. Rare, and soon over.
                    time.sleep(0.01)
                    continue
                except OSError:
                    self._fail()
                    return
                data = data[count:]
                with self._state:
                    self._backlog -= count
                    self._state.notify_all()

    def _fail(self) -> None:
        with self._state:
            self._has_failed = True
            self._queue.clear()
            self._backlog = 0
            self._state.notify_all()
        self.on_failure()
