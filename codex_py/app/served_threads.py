"""The threads of a server: found by their ids, and closed while nobody uses them."""

import asyncio
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from codex_py.app.served_thread import ServedThread

_MAX_IDLE: Final = 16
"""The number of sessions that stay open between turns, with their MCP servers and connections."""
_ThreadT = TypeVar("_ThreadT", bound=ServedThread)


class ServedThreads(Generic[_ThreadT]):
    """The threads of a server. A thread may have several ids, or none yet."""

    def __init__(self) -> None:
        self._threads: dict[_ThreadT, None] = {}
        """The threads in the order of their last use, the latest at the end."""
        self._by_id: dict[str, _ThreadT] = {}
        self._closing: set[asyncio.Task[None]] = set()
        """The tasks that close sessions."""

    def __iter__(self) -> Iterator[_ThreadT]:
        return iter(list(self._threads))

    def get(self, thread_id: str) -> _ThreadT | None:
        return self._by_id.get(thread_id)

    def use(self, thread: _ThreadT, *ids: str) -> None:
        """Add a thread, or record that it is used again. `ids`: further ids of the thread."""
        self._threads.pop(thread, None)
        self._threads[thread] = None
        for thread_id in ids:
            self._by_id[thread_id] = thread

    def remove(self, thread: _ThreadT) -> None:
        """Forget a thread under all of its ids."""
        self._threads.pop(thread, None)
        ids = [each for each, found in self._by_id.items() if found is thread]
        for thread_id in ids:
            del self._by_id[thread_id]

    def reopen_all(self) -> None:
        """Close every session, so that the next turn opens it with a new configuration.

        A running turn keeps its session until its end. A session that could not be opened again
        stays.
        """
        for thread in self:
            thread.is_outdated = thread.is_open
        self.close_idle()

    def close_idle(self) -> None:
        """Close the sessions that were used longest ago, except for 16 of them."""
        idle = [thread for thread in self if thread.is_idle]
        closing = idle[:-_MAX_IDLE]
        for thread in idle[-_MAX_IDLE:]:
            if thread.is_outdated:
                closing.append(thread)
        for thread in closing:
            task = asyncio.create_task(self._close(thread))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """End every turn, and close every session."""
        closing = [*self._closing, *(thread.close() for thread in self)]
        self._threads = {}
        self._by_id = {}
        await asyncio.gather(*closing, return_exceptions=True)

    async def _close(self, thread: _ThreadT) -> None:
        if thread.is_idle:
            async with thread.lock:
                await thread.close()
