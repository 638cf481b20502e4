"""SIGINT, SIGTERM and SIGHUP end the work in order; a second one ends the program."""

import asyncio
import os
import signal
from types import FrameType
from typing import Any, Self


class Interruption:
    """Cancels one task, on a signal or when asked to.

    While it is entered, the first signal cancels the task, which may then end its turn, kill what it
    runs and close its files. A second signal leaves at once; what was started dies with the process,
    because its guardian sees us go.

    The handlers are plain ones, not the loop's: they also run while a blocking write holds the loop up.

    Attributes:
        signal: the first one that came.
    """

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.signal: signal.Signals | None = None
        self._task = task
        self._loop = task.get_loop()
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` ignores SIGHUP, to let a program outlive the terminal.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = signal.Signals(number)
        self.cancel()
