"""An `Approver` that lets the callback of an `Agent` decide on calls."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from codex_py.protocol.approval import (
    ApprovalRequest,
    Approver,
    Review,
    ReviewDecision,
    as_review,
)
from codex_py.tools.threads import in_thread

Answer: TypeAlias = bool | ReviewDecision | Review
Approve: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]] | Approver
"""Decides on a call: True or False, a `ReviewDecision`, or a `Review`, which can tell the model why not."""


class Callback:
    """Calls a plain function in a separate thread, so that it may ask somebody and wait."""

    def __init__(self, approve: Approve) -> None:
        """Raises a `TypeError` if `approve` cannot be called with an `ApprovalRequest`."""
        self._function: Callable[..., Any] = getattr(
            approve, "review", cast("Any", approve)
        )
        try:
            inspect.signature(self._function).bind(object())
        except (TypeError, ValueError) as error:
            text = "`approve` must be a function of one argument, the ApprovalRequest"
            raise TypeError(f"{text}: {approve!r}") from error

    async def review(self, request: ApprovalRequest) -> Review:
        """Ask the function.

        Raises its errors, and a `CodexError` if its answer has another type.
        """
        if inspect.iscoroutinefunction(self._function):
            return as_review(await self._function(request))
        answer = await in_thread(lambda: self._function(request))
        return as_review(await answer if inspect.isawaitable(answer) else answer)
