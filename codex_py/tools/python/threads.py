"""Functions that may block, in threads that nobody waits for. LIGHT."""

import asyncio
import contextvars
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from codex_py.errors import ToolError


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


def failure(error: BaseException) -> ToolError:
    text = "".join(traceback.format_exception_only(error)).strip()
    return ToolError(text, code="ToolFailed")
