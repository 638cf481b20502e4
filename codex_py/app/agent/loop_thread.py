"""An event loop in a thread of its own, for callers that do not await."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

_END_S: Final = 10.0
"""How long the end of the program waits for a conversation that nobody closed."""


class LoopThread:
    """`loop` runs until `close`. What still runs there then is cancelled."""

    def __init__(self) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # A daemon: the program does not wait for it, but `close` may be called when it ends.
        self._thread = threading.Thread(target=lambda: asyncio.run(_serve(started)), daemon=True)
        self._thread.start()
        self.loop, self._end = started.result()

    def close(self) -> None:
        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)


async def _serve(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    end = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), end))
    await end.wait()
