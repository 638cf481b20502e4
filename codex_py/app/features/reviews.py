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
from codex_py.protocol.messages import replace_surrogates
from codex_py.protocol.prompts import user_prompt
from codex_py.protocol.stream import (
    Completed,
    ModelStream,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
)


class Reviews:
    """Makes turns of a thread reviews; see `begin`."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._target: ReviewTarget | None = None
        self._prompt = ""
        self._fail_on: int | None = None
        self.review: Review | None = None
        """The `Review` of the last turn; None if it was none."""
        self.last: Review | None = None
        """The last one of all."""

    def begin(self, target: ReviewTarget, *, fail_on: int | None = None) -> str:
        """Returns a prompt. What answers it is the review, also when the turn is tried again.

        Args:
            fail_on: findings of this priority, or a more serious one, set the exit code 3.
        """
        self._target, self._fail_on = target, fail_on
        self._prompt = replace_surrogates(f"Review: {target.name}")
        return self._prompt

    def __call__(self, thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
            self.review = None
            yield

        def wrap_model(inner: ModelStream) -> ModelStream:
            def stream(prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
                target = self._target
                said = (p.text for item in reversed(prompt.input) if (p := user_prompt(item)))
                # The model itself answers what was sent into the review.
                if target is None or next(said, "") != self._prompt:
                    return inner(prompt)
                return self._answer(thread, target)

            return stream

        return Extension(
            around_turn=around_turn, wrap_model=wrap_model, turn_facts=self._turn_facts
        )

    @asynccontextmanager
    async def _answer(
        self, thread: Thread, target: ReviewTarget
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        self.review, text = await run_review(self._setup, thread, target)
        self.last = self.review

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
