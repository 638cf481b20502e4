"""Reacts to a failed request: changes it, sends it again after a wait, or fails the turn."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from codex_py.core.session_state import SessionState
from codex_py.errors import ModelError
from codex_py.protocol.events import Reconnecting
from codex_py.protocol.stream import Retry


class RetryBudget(Protocol):
    """Bounds the failed requests of one turn."""

    def next(self, error: ModelError) -> Retry | None:
        """The next retry; None if another attempt cannot help, or the budget is spent."""
        ...

    def renew(self) -> None:
        """Give the next request a full allowance, because one has succeeded."""
        ...


async def recover(
    failure: ModelError,
    retries: RetryBudget,
    remedy: Callable[[ModelError, int], Awaitable[bool]],
    session: SessionState,
) -> bool:
    """Prepare another request after a failed one: by a remedy, or else by a wait.

    Returns True if the remedy has helped; the request may then differ. Returns False after the
    wait, for the same request.

    If the failure is about a part of the request, the extensions may leave it out before the remedy
    is tried.

    Args:
        remedy: tries to make the next request succeed, for instance by compacting. Gets the failure
            and the number of retries left; returns True if the next request is worth sending.

    Raises:
        ModelError: the failure is final.
    """
    retry = retries.next(failure)
    if retry is None:
        left = 0
    else:
        left = retry.maximum - retry.attempt + 1
    if failure.concerns_part and await session.extension.recover(failure, left):
        return True
    if await remedy(failure, left):
        return True
    if retry is None:
        raise failure
    session.emit(
        Reconnecting(
            f"Reconnecting... {retry.attempt}/{retry.maximum} ({failure})",
            failure.code,
            failure.status,
            cause=str(failure),
            attempt=retry.attempt,
            max_attempts=retry.maximum,
            wait_s=round(retry.delay_s, 3),
        )
    )
    await asyncio.sleep(retry.delay_s)
    return False
