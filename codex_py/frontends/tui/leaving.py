"""Ends the program in order: for which reason, and with which exit code."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any


class Leaving:
    """
    Args:
        end: stops the drawing.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._code: int | None = None
        """To exit with, once it is settled."""
        self._failure: BaseException | None = None

    @property
    def is_under_way(self) -> bool:
        return self._code is not None

    def leave(self, code: int = 0) -> None:
        """End in order, with this exit code."""
        if self._code is None:
            self._code = code
        self._end()

    def lost_terminal(self) -> None:
        """End because the terminal was closed."""
        self._code = self._code or 128 + signal.SIGHUP

    def listen(self) -> None:
        """End on a signal, and on a bug outside of all tasks."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._went_wrong)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # `nohup` asks to live on when the terminal goes.
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._told_to_end, 128 + number)

    def result(self) -> int:
        """The exit code.

        Raises:
            BaseException: the bug that has ended the program.
        """
        if self._failure is not None:
            raise self._failure
        return self._code or 0

    def _told_to_end(self, code: int) -> None:
        if self._code is not None:
            # The second signal: our child processes die with us.
            os._exit(code)
        self.leave(code)

    def _went_wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End with the traceback of a bug outside of all tasks, as with one inside of a task."""
        error = context.get("exception")
        if error is None:
            return
        self._failure = self._failure or error
        self._end()
