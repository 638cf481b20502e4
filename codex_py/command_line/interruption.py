"""Handles SIGINT, SIGTERM and SIGHUP: the first ends the work in order, a second one ends the
program."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from codex_py.errors import CodexError
from codex_py.protocol.finishing import being_finished, wait_until_finished

_STDERR: Final = 2


class Interruption:
    """Runs work, and cancels it on a signal or by `cancel`.

    The first signal cancels the work, which may then end its turn, kill its processes and close its
    files. A second signal exits at once, unless something must be finished first; child processes
    die too, because their guardian sees that we are gone.

    The handlers are plain signal handlers, not the loop's: they also run while a blocking write
    holds up the loop.

    Attributes:
        signal: the first signal that arrived; None before.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._task: asyncio.Task[int] | None = None
        self._has_told = False

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
            if being_finished() is not None:
                await asyncio.to_thread(wait_until_finished)
            for number, handler in previous.items():
                signal.signal(number, handler)

    def cancel(self) -> None:
        """Cancel the work; `run` raises `CancelledError`."""
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        unfinished = being_finished()
        if unfinished is not None:
            self._tell(f"Finishing {unfinished} first, for up to half a minute.")
        elif self.signal is not None:
            os._exit(128 + number)
        if self.signal is None:
            self.signal = signal.Signals(number)
            self.cancel()

    def _tell(self, sentence: str) -> None:
        """Tell the user something once. The lock of standard error may be held, so do without it."""
        if not self._has_told:
            self._has_told = True
            with suppress(OSError):
                os.write(_STDERR, f"{sentence}\n".encode())
