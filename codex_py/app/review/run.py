"""Runs a review: a child session reads the change, and its answer is checked and placed."""

import asyncio
from collections import defaultdict
from dataclasses import replace

from codex_py.app.options import SessionSetup
from codex_py.app.review.change import Change, change_to_review
from codex_py.app.review.findings import SCHEMA, Review, read_review
from codex_py.app.review.formats import as_text
from codex_py.app.review.target import ReviewTarget
from codex_py.app.settings import configured_choices
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.errors import CodexError
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import Event, ItemCompleted, ItemStarted
from codex_py.protocol.extension import NewChild, Thread
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS


async def run_review(
    setup: SessionSetup, thread: Thread, target: ReviewTarget
) -> tuple[Review, str]:
    """Returns the review, and its text for people.

    Raises:
        CodexError: there is nothing to review, the reviewer failed, or its answer cannot be used.
    """
    assert setup.open_child is not None
    change = await asyncio.to_thread(change_to_review, target, setup.config, setup.environment)
    config = _reviewers(setup.config, change)
    choices = replace(
        configured_choices(config, ()),
        approval_policy=ApprovalPolicy.NEVER,
        sandbox_policy=config.sandbox_policy(setup.options.add_dirs).locked(),
    )
    sink = _Commands(thread)
    new = NewChild("reviewer", role="review", choices=choices, sink=sink)
    async with setup.open_child(thread, new, config, None) as child:
        result = await child.run_turn(change.request, output_schema=SCHEMA)
    if (error := result.error) is not None:
        # As a failure of the child's own requests it would be tried again here.
        raise CodexError(f"The review failed: {error}", code=error.code, exit_code=error.exit_code)
    review = read_review(result.last_message or "", change)
    return review, as_text(review, change.root)


def _reviewers(config: Config, change: Change) -> Config:
    names = {"AGENTS.md", "AGENTS.override.md", *config.project_doc_fallback_filenames}
    touched = {path.name for file in change.files for path in (file.path, file.destination)}
    # Who wrote the change does not tell the reviewer what to look for.
    if touched & names:
        config = replace(config, project_doc_max_bytes=0)
    if "SKILL.md" in touched:
        config = replace(config, features={**config.features, "skills": False})
    if (model := config.review_model) is not None:
        named = split_model(model, {*BUILT_IN_PROVIDERS, *config.model_providers})
        provider, model = named or (config.model_provider, model)
        config = replace(config, model_provider=provider, model=model)
    features = {**config.features, "multi_agent": False}
    rubric = instruction_text("review.md")
    return replace(config, base_instructions=rubric, web_search="disabled", features=features)


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
