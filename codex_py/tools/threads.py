"""Runs blocking functions in their own threads, and awaits work that cannot be stopped. LIGHT."""

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
    """Call a function in a daemon thread. Raises whatever it raises.

    The program can exit before the function ends, and functions that never end do not fill the
    thread pool of the loop.
    """
    # The exception is part of the result, because a future does not accept a `StopIteration`.
    ended: Future[tuple[Any, BaseException | None]] = Future()
    # Only a running future can get a result after the caller has stopped waiting.
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
    if error is not None:
        raise error
    return result


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await work that cannot be stopped, such as a thread's.

    A cancellation takes effect after the end of the work, in place of its result.
    """
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
    """The error for the model about an exception: its type and text."""
    text = "".join(traceback.format_exception_only(error)).strip()
    return ToolError(text, code="ToolFailed")
