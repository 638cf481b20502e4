"""How the program ends: with which exit code, for what reason, and with which last words."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_py.core.session import Session


class Leaving:
    """
    Args:
        end: has the screen drawn no more.
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
        """It was closed under us."""
        self._code = self._code or 128 + signal.SIGHUP

    def listen(self) -> None:
        """End when the system says so, and on a mistake of ours that no task has made."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._went_wrong)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # `nohup` asks to live on when the terminal goes.
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._told_to_end, 128 + number)

    def result(self) -> int:
        """The exit code.

        Raises:
            BaseException: the mistake that has ended the program.
        """
        if self._failure is not None:
            raise self._failure
        return self._code or 0

    def _told_to_end(self, code: int) -> None:
        if self._code is not None:
            # For the second time: what we have started dies with us.
            os._exit(code)
        self.leave(code)

    def _went_wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A mistake of ours, outside of every task: out, and with a traceback, as from inside of one."""
        error = context.get("exception")
        if error is None:
            return
        self._failure = self._failure or error
        self._end()


def how_to_resume(session: "Session", *, with_usage: bool) -> str:
    """Last words; empty for a session in which nothing was said."""
    if not session.has_begun:
        return ""
    used = session.token_usage.total
    tokens = (
        f"Token usage: total={used.total_tokens:,} input={used.input_tokens:,}"
        f" (+ {used.cached_input_tokens:,} cached) output={used.output_tokens:,}\n"
        if with_usage and used.total_tokens
        else ""
    )
    return f"{tokens}To continue this session, run: codex-py resume {session.thread_id}\n"
