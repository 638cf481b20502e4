"""Time limits that are paused while the user answers a question. LIGHT."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager


class Deadlines:
    """The time limits of the requests to one server."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()

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
        """Pause the limits that are running now."""
        now = asyncio.get_running_loop().time()
        left = {
            timeout: when - now
            for timeout in self._running
            if (when := timeout.when()) is not None and not timeout.expired()
        }
        for timeout in left:
            timeout.reschedule(None)
        try:
            yield
        finally:
            now = asyncio.get_running_loop().time()
            for timeout in self._running & left.keys():
                timeout.reschedule(now + left[timeout])
