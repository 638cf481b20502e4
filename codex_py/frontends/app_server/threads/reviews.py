"""Answers the method that has a change reviewed."""

import asyncio
from functools import partial

from codex_py.app.features.reviews import Reviews
from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.review.change import change_to_review
from codex_py.app.review.target import ReviewTarget
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads.thread_params import (
    BaseBranch,
    Commit,
    CustomReview,
    ReviewStart,
)
from codex_py.frontends.app_server.turn_items.items import Fields


class ReviewMethods(MethodGroup):
    """Answers `review/start`."""

    @serves("review/start", ReviewStart)
    async def start(self, asked: ReviewStart) -> Fields:
        """Start a turn that a reviewer answers. As in Codex, a running turn is interrupted."""
        target = _target(asked)
        async with self.threads.locked(asked.thread_id) as thread:
            # A change that cannot be reviewed interrupts nothing, and is no turn.
            await asyncio.to_thread(
                change_to_review, target, thread.config, self.server.environment
            )
            thread.cancel()
            await thread.ended()
            reviews = thread.session.feature(Reviews)
            assert reviews is not None
            prompt = reviews.begin(target)
            turn = await thread.start(partial(thread.session.run_turn, prompt), None)
        text: Fields = {"type": "text", "text": target.name, "text_elements": []}
        shown: Fields = {
            "type": "userMessage",
            "id": turn["id"],
            "clientId": None,
            "content": [text],
        }
        return {"turn": {**turn, "items": [shown]}, "reviewThreadId": asked.thread_id}


def _target(asked: ReviewStart) -> ReviewTarget:
    """The change to review. Raises an `RpcError` if its name is blank."""
    match asked.target:
        case BaseBranch(branch=branch):
            return ReviewTarget(base=_required("branch", branch))
        case Commit(sha=sha, title=title):
            return ReviewTarget(commit=_required("sha", sha), title=title)
        case CustomReview(instructions=words):
            return ReviewTarget(words=_required("instructions", words))
        case _:
            return ReviewTarget(uncommitted=True)


def _required(name: str, value: str) -> str:
    value = value.strip()
    if not value:
        raise RpcError(INVALID_REQUEST, f"{name} must not be empty")
    return value
