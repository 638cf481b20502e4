"""Handles SIGINT, SIGTERM and SIGHUP: the first ends the work in order, a second one ends the
program."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any

from codex_py.errors import CodexError


class Interruption:
    """Runs work, and cancels it on a signal or by `cancel`.

    The first signal cancels the work, which may then end its turn, kill its processes and close its
    files. A second signal exits at once; child processes die too, because their guardian sees that
    we are gone.

    The handlers are plain signal handlers, not the loop's: they also run while a blocking write
    holds up the loop.

    Attributes:
        signal: the first signal that arrived; None before.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._task: asyncio.Task[int] | None = None

    async def run(self, work: Coroutine[Any, Any, int]) -> int:
        """Run the work. Returns its exit code; the signal's exit code if a signal ended it."""
        self._task = asyncio.create_task(work)
        numbers = [signal.SIGINT, signal.SIGTERM]
        # `nohup` ignores SIGHUP, to let a program outlive the terminal.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        previous = {number: signal.signal(number, self._received) for number in numbers}
        try:
            return await self._task
        except (asyncio.CancelledError, CodexError):
            # Ctrl-C in a terminal also ends a `git` that the work waits for, and the work raises an
            # error about it.
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
