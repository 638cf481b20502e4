"""An event loop in a separate thread, for callers that do not await."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeAlias

from codex_py.app.hosted import Outcome, outcome_of

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

    def close_after(self, ending: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `ending` in the loop, for up to 10 s, and end the loop.

        In the thread of the loop, or if the loop has ended, only `close` is called.

        Raises the exception of `ending`.
        """
        if threading.current_thread() is self._thread or self.loop.is_closed():
            self.close()
            return

        async def ended() -> Outcome[None]:
            return await outcome_of(ending())

        work = ended()
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            # The loop was closed just now.
            work.close()
            return
        try:
            wait([future], _END_S)
        finally:
            self.close()
        # If the loop was ended by another thread, or after 10 s, the ending was cancelled.
        if future.done() and not future.cancelled():
            with suppress(asyncio.CancelledError):
                future.result().result()

    def close(self) -> None:
        """End the loop, and wait up to 10 s for the end of its thread."""
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that no task can end, and that can end while the program ends.

    asyncio stops a loop when a task raises `KeyboardInterrupt` or `SystemExit`, and the callers in
    other threads would wait for ever. No Ctrl-C arrives in this thread: the exception belongs to
    the task, which keeps it, and its callers get it.

    asyncio also waits for the default executor in a new thread, and Python 3.12.0 and 3.12.1 start
    none while the program ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self._must_stop = False
        self._threads = ThreadPoolExecutor()
        self.set_default_executor(self._threads)

    def run_forever(self) -> None:
        try:
            while not self._ran_to_its_stop():
                pass
        finally:
            self._must_stop = False

    def stop(self) -> None:
        self._must_stop = True
        super().stop()

    def _ran_to_its_stop(self) -> bool:
        """Run until `stop`, or until a task raises. True if the loop was stopped."""
        try:
            super().run_forever()
        except (KeyboardInterrupt, SystemExit):
            # When a task raises, asyncio clears its own mark of `stop`.
            return self._must_stop
        return True

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
