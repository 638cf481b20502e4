"""The parts of the program that a guarded extension wraps: an approver, calls and a model.

An error of such a part passes through the extension. It is no mistake of the extension, so the frame
of `of_others` marks it.
"""

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from codex_py.protocol.approval import as_review


async def of_others(work: Awaitable[Any]) -> Any:
    """Await something that is not the extension's. Its exceptions are known by this frame."""
    return await work


def is_of_others(error: BaseException) -> bool:
    """True if the exception came through `of_others`."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is of_others.__code__ for frame, _ in frames)


class InnerApprover:
    """The approver that an extension wraps."""

    def __init__(self, approver: Any) -> None:
        self._approver = approver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._approver, name)

    async def review(self, request: Any) -> Any:
        """Return the answer of the approver.

        Raises:
            CodexError: it has answered something else than `as_review` takes.
        """
        answer = await of_others(self._approver.review(request))
        as_review(answer)
        return answer


class InnerStream:
    """A response of the model that an extension wraps."""

    def __init__(self, model: Any, prompt: Any) -> None:
        self._response = model(prompt)

    async def __aenter__(self) -> AsyncIterator[Any]:
        events = await of_others(self._response.__aenter__())
        return Events(events, of_others)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        # No frame of `of_others`: most errors here are those of the block, which the extension has.
        return await self._response.__aexit__(kind, error, trace)


class Events:
    """The events of a response.

    Args:
        awaiting: awaits the next event.
    """

    def __init__(
        self, events: Any, awaiting: Callable[[Awaitable[Any]], Awaitable[Any]]
    ) -> None:
        self._events = events
        self._iterator = aiter(events)
        self._awaiting = awaiting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._awaiting(anext(self._iterator))


class ReviewedApprover:
    """The approver of an extension, with another `review`."""

    def __init__(self, approver: Any, review: Callable[[Any], Awaitable[Any]]) -> None:
        self._approver = approver
        self.review = review

    def __getattr__(self, name: str) -> Any:
        return getattr(self._approver, name)
