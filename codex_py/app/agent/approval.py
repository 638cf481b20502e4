"""An `Approver` that lets the callback of an `Agent` decide on calls."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

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
"""A function, or an object with a method `review`, that decides on a call.

It answers with True or False, a `ReviewDecision`, or a `Review`, which can also tell the model why.
"""


class Callback:
    """Asks the caller's function about each call.

    A plain function runs in a separate thread, so that it may block. An `async` one runs in the
    loop.
    """

    def __init__(self, approve: Approve) -> None:
        """Raises a `TypeError` if `approve` cannot be called with an `ApprovalRequest`."""
        plain: Any = approve
        self._function: Callable[..., Any] = getattr(plain, "review", plain)
        try:
            inspect.signature(self._function).bind(object())
        except (TypeError, ValueError) as error:
            text = "`approve` must be a function of one argument, the ApprovalRequest"
            raise TypeError(f"{text}: {approve!r}") from error

    async def review(self, request: ApprovalRequest) -> Review:
        """Ask the function.

        Raises its errors, and a `CodexError` if its answer is not an `Answer`.
        """
        if inspect.iscoroutinefunction(self._function):
            return as_review(await self._function(request))
        answer = await in_thread(lambda: self._function(request))
        if inspect.isawaitable(answer):
            answer = await answer
        return as_review(answer)
