"""An event loop in a separate thread, for callers that do not await."""

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeAlias

_END_S: Final = 10.0
"""The time that the end of the program waits for a conversation that nobody closed."""


_Started: TypeAlias = Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
"""Gets the loop once it runs, and the event that ends it."""


class LoopThread:
    """Runs `loop` until `close`. Tasks that still run there are then cancelled."""

    def __init__(self) -> None:
        started: _Started = Future()
        # The program does not wait for a daemon thread, but `close` may be called at its end.
        self._thread = threading.Thread(
            target=_run,
            args=(started,),
            daemon=True,
        )
        self._thread.start()
        self.loop, self._end = started.result()

    def close(self) -> None:
        """End the loop, and wait up to 10 s for the end of its thread."""
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that can end while the program ends.

    asyncio waits for the default executor in a new thread, and Python 3.12.0 and 3.12.1 start none
    at that time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor()
        self.set_default_executor(self._threads)

    # It never waits, so it needs no time-out.
    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ARG002
        self._threads.shutdown(wait=False, cancel_futures=True)


def _run(started: _Started) -> None:
    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(_serve(started))


async def _serve(started: _Started) -> None:
    end = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), end))
    await end.wait()
