"""Reviews: a turn that a child session answers, which reads a change and cannot change anything.

The turn is one as any other: its prompt names what is reviewed, and its answer is in the history, so that the user can
say "mend the first one". The model of the thread is not asked.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.app.review.findings import Review
from codex_py.app.review.run import run_review
from codex_py.app.review.target import ReviewTarget
from codex_py.errors import ExitCode
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.items import Message
from codex_py.protocol.stream import (
    Completed,
    ModelStream,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
)


class Reviews:
    """Makes the next turn of a thread a review; see `begin`."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._target: ReviewTarget | None = None
        """Of the turn that begins or runs; None if it is no review."""
        self._fail_on: int | None = None
        self.review: Review | None = None
        """The `Review` of the last turn; None if it was none."""

    def begin(self, target: ReviewTarget, *, fail_on: int | None = None) -> str:
        """Let the next turn be a review. Returns the prompt for it.

        Args:
            fail_on: findings of this priority, or a more serious one, set the exit code 3.
        """
        self._target, self._fail_on = target, fail_on
        return f"Review: {target.name}"

    def __call__(self, thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
            self.review = None
            try:
                yield
            finally:
                self._target = None

        def wrap_model(inner: ModelStream) -> ModelStream:
            def stream(prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
                target = self._target
                return inner(prompt) if target is None else self._answer(thread, target)

            return stream

        return Extension(
            around_turn=around_turn, wrap_model=wrap_model, turn_facts=self._turn_facts
        )

    @asynccontextmanager
    async def _answer(
        self, thread: Thread, target: ReviewTarget
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        self.review, text = await run_review(self._setup, thread, target)

        async def events() -> AsyncIterator[ResponseEvent]:
            content: Any = [{"type": "output_text", "text": text}]
            yield OutputItemDone(0, Message(role="assistant", content=content))
            yield Completed(Usage())

        yield events()

    def _turn_facts(self) -> Mapping[str, Any]:
        if self.review is None:
            return {}
        most = -1 if self._fail_on is None else self._fail_on
        has_failed = any(finding.priority <= most for finding in self.review.findings)
        code = ExitCode.GATE if has_failed else ExitCode.DONE
        return {"review": asdict(self.review), "exit_code": code}
