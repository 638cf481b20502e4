"""The order in which calls run: concurrently if their tools allow it, else one by one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

_MAX_CONCURRENT = 64
"""Calls that run at once. A response may hold thousands, and each can start processes."""


class CallQueue:
    """A first-come lock with shared and exclusive turns; `_MAX_CONCURRENT` shared ones run at once.

    A shared turn waits for the exclusive ones before it; an exclusive one waits for all before it and
    holds up all after it. A plain readers-writer lock would let later readers overtake a waiting writer.
    """

    def __init__(self) -> None:
        self._ahead: list[tuple[asyncio.Event, bool]] = []
        self._free = asyncio.Semaphore(_MAX_CONCURRENT)

    @asynccontextmanager
    async def turn(self, *, parallel: bool) -> AsyncGenerator[None]:
        """Wait for the turn, which lasts as long as the context. The place in the queue is taken before the first await."""
        done = asyncio.Event()
        place = (done, parallel)
        before = [event for event, shared in self._ahead if not (parallel and shared)]
        self._ahead.append(place)
        try:
            for event in before:
                await event.wait()
            async with self._free:
                yield
        finally:
            self._ahead.remove(place)
            done.set()
