"""Time limits that are paused while the user answers a question. LIGHT."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager


class Deadlines:
    """The time limits of the requests to one server."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._left_s: dict[asyncio.Timeout, float] = {}
        """What is left of those that are paused."""
        self._pauses = 0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncGenerator[None]:
        """
        Raises:
            TimeoutError: the time is up.
        """
        async with asyncio.timeout(seconds) as timeout:
            self._running.add(timeout)
            try:
                yield
            finally:
                self._running.discard(timeout)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pause the limits that are running now, until the last of the pauses ends."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        for timeout in self._running - self._left_s.keys():
            if (when := timeout.when()) is not None and not timeout.expired():
                self._left_s[timeout] = when - loop.time()
                timeout.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                left_s, self._left_s = self._left_s, {}
                for timeout in self._running & left_s.keys():
                    timeout.reschedule(loop.time() + left_s[timeout])
