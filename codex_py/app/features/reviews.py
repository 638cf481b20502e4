"""Reviews: turns that a child session answers. The child only reads a change.

Such a turn is like any other: its prompt names the change, and its answer is in the history, so
that the user can say "mend the first one". The model of the thread is not asked.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.app.review.change import ReviewedChange, change_to_review
from codex_py.app.review.findings import ReviewReport, data_of, read_review
from codex_py.app.review.formats import as_text, unread_text
from codex_py.app.review.target import ReviewTarget
from codex_py.app.settings import configured_choices, provider_and_model
from codex_py.config.config import Config
from codex_py.config.declared.section import changed
from codex_py.errors import CodexError, ExitCode
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import (
    Event,
    ItemCompleted,
    ItemStarted,
    ReviewStarted,
)
from codex_py.protocol.extension import Extension, NewChild, Thread, TurnStart
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
        self.review: ReviewReport | None = None
        """The `ReviewReport` of the last turn; None if that turn was not a review."""
        self.last: ReviewReport | None = None
        """The last review of all turns."""

    def begin(self, target: ReviewTarget, *, fail_on: int | None = None) -> str:
        """Return the prompt of a review.

        The answer to it is the review, also when the turn is tried again.

        Args:
            fail_on: findings of this priority, or a more serious one, set the exit code 3.
        """
        self._target = target
        self._fail_on = fail_on
        self._prompt = replace_surrogates(f"Review: {target.name}")
        return self._prompt

    def __call__(self, thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(start: TurnStart) -> AsyncGenerator[None]:
            self.review = None
            target = self._target
            prompt = start.prompt
            if target is not None and prompt and prompt.text == self._prompt:
                thread.emit(ReviewStarted(target.name))
            yield

        def wrap_model(inner: ModelStream) -> ModelStream:
            """Answer with the result of a review in turns that ask for one. Pass other requests on."""

            def stream(
                prompt: Prompt,
            ) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
                target = self._target
                # If something was sent into the review, the model itself answers it.
                if target is None or _last_prompt(prompt) != self._prompt:
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
        change = await asyncio.to_thread(
            change_to_review, target, self._setup.config, self._setup.environment
        )
        answer, error = await _reviewed(self._setup, thread, change)
        review = read_review(answer, change)
        if error is not None and not answer.strip():
            raise error
        self.last = review
        self.review = review
        unread = unread_text(review)
        if unread:
            thread.warn(unread)

        async def events() -> AsyncIterator[ResponseEvent]:
            content: Any = [
                {"type": "output_text", "text": as_text(review, change.root)}
            ]
            yield OutputItemDone(0, Message(role="assistant", content=content))
            if error is not None and review.text:
                # The text is shown, and is in the history.
                raise error
            yield Completed(Usage())

        yield events()

    def _turn_facts(self) -> Mapping[str, Any]:
        if self.review is None:
            return {}
        code = ExitCode.DONE
        if _has_failed(self.review, self._fail_on):
            code = ExitCode.GATE
        return {"review": data_of(self.review), "exit_code": code}


def _last_prompt(prompt: Prompt) -> str:
    """Return the text of the last message of the user; empty without one."""
    for item in reversed(prompt.input):
        found = user_prompt(item)
        if found:
            return found.text
    return ""


def _has_failed(review: ReviewReport, fail_on: int | None) -> bool:
    """True if a finding is at least as serious as `fail_on`. A lower number is more serious."""
    if fail_on is None:
        return False
    if review.unread > 0:
        # The priority of findings that cannot be read is unknown.
        return True
    return any(finding.priority <= fail_on for finding in review.findings)


async def _reviewed(
    setup: SessionSetup, thread: Thread, change: ReviewedChange
) -> tuple[str, CodexError | None]:
    """Let a child session read the change.

    Returns the answer of the child, and an error if the answer breaks the schema.

    Raises:
        CodexError: the review failed otherwise.
    """
    assert setup.open_child is not None
    config = _review_config(setup.config, change)
    choices = replace(
        configured_choices(config, ()),
        approval_policy=ApprovalPolicy.NEVER,
        sandbox_policy=config.sandbox_policy(setup.options.add_dirs).locked(),
    )
    new = NewChild("reviewer", role="review", choices=choices, sink=_Commands(thread))
    schema = json.loads(instruction_text("review.json"))
    async with setup.open_child(thread, new, config, None) as child:
        result = await child.run_turn(change.request, output_schema=schema)
    answer = result.last_message or ""
    error = result.error
    if error is None:
        return answer, None
    # Change the class of the error: for some errors of the child's own requests, this turn would
    # repeat the whole review.
    failure = CodexError(
        f"The review failed: {error}", code=error.code, exit_code=error.exit_code
    )
    if error.code != "schema":
        raise failure
    return answer, failure


def _review_config(config: Config, change: ReviewedChange) -> Config:
    """Return the configuration of the session that reads the change."""
    names = {
        "AGENTS.md",
        "AGENTS.override.md",
        *config.settings.project_doc_fallback_filenames,
    }
    touched = {
        path.name for file in change.files for path in (file.path, file.destination)
    }
    # The author of the change must not tell the reviewer what to look for.
    if touched & names:
        config = replace(config, project_doc_max_bytes=0)
    if "SKILL.md" in touched:
        config = replace(config, features=changed(config.features, skills=False))
    model = config.settings.review_model
    if model is not None:
        provider, model = provider_and_model(config, model)
        config = replace(config, model_provider=provider, model=model)
    features = changed(config.features, multi_agent=False)
    rubric = instruction_text("review.md")
    return replace(
        config, base_instructions=rubric, web_search="disabled", features=features
    )


class _Commands:
    """An `EventSink` that shows the reviewer's commands as those of its parent."""

    def __init__(self, parent: Thread) -> None:
        self._parent = parent
        self._ids = defaultdict[str, str](parent.next_item_id)

    def __call__(self, event: Event) -> None:
        if isinstance(event, ItemStarted | ItemCompleted) and isinstance(
            event.item, CommandExecution
        ):
            item = replace(event.item, id=self._ids[event.item.id])
            self._parent.emit(replace(event, item=item))
