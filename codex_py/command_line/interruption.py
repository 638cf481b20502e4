"""SIGINT, SIGTERM and SIGHUP end the work in order; a second one ends the program."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any

from codex_py.errors import CodexError


class Interruption:
    """Cancels the work that it runs, on a signal or when asked to.

    The first signal cancels the work, which may then end its turn, kill what it runs and close its files. A
    second signal leaves at once; what was started dies with the process, because its guardian sees us go.

    The handlers are plain ones, not the loop's: they also run while a blocking write holds the loop up.

    Attributes:
        signal: the first one that came.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._task: asyncio.Task[int] | None = None

    async def run(self, work: Coroutine[Any, Any, int]) -> int:
        """Do the work, which returns an exit code. If a signal ends it, that of the signal is returned."""
        self._task = asyncio.create_task(work)
        numbers = [signal.SIGINT, signal.SIGTERM]
        # `nohup` ignores SIGHUP, to let a program outlive the terminal.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        previous = {number: signal.signal(number, self._received) for number in numbers}
        try:
            return await self._task
        except (asyncio.CancelledError, CodexError):
            # Ctrl-C in a terminal also ends the git that the work was waiting for, which is an error there.
            if self.signal is None:
                raise
            return 128 + self.signal
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def cancel(self) -> None:
        """Cancel the work; `run` raises `CancelledError`."""
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = signal.Signals(number)
        self.cancel()
