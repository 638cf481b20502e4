"""Functions that may block, in threads that nobody waits for, and work that is waited for in any case. LIGHT."""

import asyncio
import contextvars
import threading
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from codex_py.errors import ToolError

_T = TypeVar("_T")


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a daemon thread: it cannot fill the pool of the loop, and the program can exit before it
    ends."""
    # Not the exception itself: a future takes no StopIteration.
    ended: Future[tuple[Any, BaseException | None]] = Future()
    # The function ends, even if nobody waits for it any more.
    ended.set_running_or_notify_cancel()
    variables = contextvars.copy_context()

    def run() -> None:
        try:
            outcome = (variables.run(function), None)
        except BaseException as error:  # noqa: BLE001 (it is raised in the task)
            outcome = (None, error)
        ended.set_result(outcome)

    threading.Thread(target=run, daemon=True).start()
    result, error = await asyncio.wrap_future(ended)
    if isinstance(error, KeyboardInterrupt):
        # Not a Ctrl-C, which arrives in the main thread alone. In a task it would end the loop.
        raise failure(error) from error
    if error is not None:
        raise error
    return result


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await work that cannot be stopped, such as that of a thread: a cancellation waits for its end."""
    working = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return working.result()


def failure(error: BaseException) -> ToolError:
    text = "".join(traceback.format_exception_only(error)).strip()
    return ToolError(text, code="ToolFailed")
