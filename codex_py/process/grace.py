"""Decides how long a program's output is read after the program has ended.

A process that the program left behind may keep the output open.
"""

import asyncio
from collections.abc import Callable

_QUIET_S = 0.3
"""Reading ends when nothing has come for this long."""
_MOST_S = 2.0
"""Reading ends after this time, however much comes."""


class OutputGrace:
    """Calls a function once, when output has stopped coming or has come for too long.

    Make it when the program has ended. The launcher of the sandbox decides in the same way when it
    kills the processes that a command has left behind.
    """

    def __init__(self, is_over: Callable[[], None]) -> None:
        """
        Args:
            is_over: called in the running loop.
        """
        self._is_over = is_over
        self._loop = asyncio.get_running_loop()
        self._end_s = self._loop.time() + _MOST_S
        self._quiet_end_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.extend()
        self._wait()

    def extend(self) -> None:
        """Note that some output has come, so that more is waited for."""
        quiet_end_s = self._loop.time() + _QUIET_S
        self._quiet_end_s = min(quiet_end_s, self._end_s)

    def cancel(self) -> None:
        """End the wait without calling `is_over`."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        if self._loop.time() < self._quiet_end_s:
            self._timer = self._loop.call_at(self._quiet_end_s, self._wait)
        else:
            self._is_over()
