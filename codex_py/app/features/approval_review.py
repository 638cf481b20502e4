"""Lets a model decide approvals in place of the user: `approvals_reviewer = "auto_review"`. LIGHT.

The model gets one request without tools, in which the text of others is marked as data. Only an
answer of the right form allows a call: a doubt, an error or a delay denies it.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from codex_py.app.features.budget import BudgetFeature
from codex_py.app.model import configured_provider
from codex_py.app.options import SessionSetup
from codex_py.errors import ModelError
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import (
    ApprovalRequest,
    Approver,
    Review,
    ReviewDecision,
)
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import Message
from codex_py.protocol.messages import decode_json, input_text, message
from codex_py.protocol.prompts import user_prompt
from codex_py.protocol.stream import Completed, ModelStream, OutputItemDone, Prompt
from codex_py.tools.truncate import truncate_middle

_OWN_MODEL: Final = "codex-auto-review"
"""The reviewer model of OpenAI. If the key has no access to it, the model of the session
answers."""
_MAX_REVIEWS: Final = 20
"""The largest number of reviews in a turn."""
_TIMEOUT_S: Final = 90.0
_MAX_CALL_TOKENS: Final = 16_000
"""A longer call is refused, because the reviewer could not see all of it."""
_MAX_PROMPTS: Final = 5
_MAX_ITEMS: Final = 12
_MAX_TOKENS: Final = 800
"""The limit of each prompt and of each item."""
_RISKS: Final = ("low", "medium", "high", "critical")
_ADVICE: Final = (
    "do not try to reach the same in another way; go on without it, or tell the user"
)


@frozen
class Verdict:
    is_allowed: bool
    reason: str
    risk: str | None = None


class ApprovalReviewer:
    """Reviews the calls of a session and of its subagents.

    All calls are reviewed for the session at the top. So a model that starts subagents cannot
    choose the user's prompts, the reviewer, or the number of reviews.
    """

    def __init__(
        self, setup: SessionSetup, top: "ApprovalReviewer | None" = None
    ) -> None:
        self._setup = setup
        self._top = top or self
        self._stream: ModelStream | None = None
        self._turn: TurnStart | None = None
        self._reviews = 0
        """The number of reviews in this turn, including those for subagents."""

    def for_child(self, setup: SessionSetup) -> "ApprovalReviewer":
        return ApprovalReviewer(setup, self._top)

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(wrap_approver=self._wrap_approver)

    def _wrap_approver(self, _: Approver) -> Approver:
        """Let a model review each request for an approval, in place of the user."""
        return self

    async def review(self, request: ApprovalRequest) -> Review:
        """See `Approver`. The user is shown the verdict and is not asked."""
        verdict = await self._top._verdict(request, self._context())
        risk = f" (risk: {verdict.risk})" if verdict.risk else ""
        did = "allowed" if verdict.is_allowed else "refused"
        call = truncate_middle(" ".join(request.summary.split()), 200, "bytes")
        self._thread.warn(f"The reviewer {did} `{call}`{risk}: {verdict.reason}")
        if verdict.is_allowed:
            return Review(ReviewDecision.APPROVED)
        said = f"the automatic reviewer refuses it{risk}: {verdict.reason}; {_ADVICE}"
        return Review(ReviewDecision.DENIED, said)

    async def _verdict(
        self, request: ApprovalRequest, context: Mapping[str, Any]
    ) -> Verdict:
        if self._turn is not self._thread.turn:
            self._turn = self._thread.turn
            self._reviews = 0
        self._reviews += 1
        if self._reviews > _MAX_REVIEWS:
            return Verdict(
                False, f"there were {_MAX_REVIEWS} reviews in this turn already"
            )
        call = _visible(request.question)
        if truncate_middle(call, _MAX_CALL_TOKENS) != call:
            return Verdict(False, "the call is too long to be reviewed as a whole")
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                given = _visible({**context, "call": request.question})
                return read_verdict(await self._answer(given))
        except TimeoutError:
            return Verdict(False, f"there was no answer within {_TIMEOUT_S:g} s")
        except ModelError as error:
            return Verdict(False, f"there was no answer: {error}")

    async def _answer(self, given: str) -> str:
        """Return the text of the model's answer. Raises a `ModelError` if it fails."""
        settings = self._thread.settings
        fence = f"data-{secrets.token_hex(16)}"
        text = f"{fence}\n{given}\n{fence}\n\nDecide on `call`, and answer with the JSON object alone."
        policy = self._setup.config.settings.auto_review.policy or "There is none."
        prompt = Prompt(
            model=settings.model,
            input=[message("user", [input_text(text)])],
            cache_key=f"{self._thread.thread_id}-approvals",
            instructions=instruction_text("approval_review.md").replace(
                "{policy}", policy
            ),
            reasoning=settings.reasoning,
            output_schema=json.loads(instruction_text("approval_review.json")),
            service_tier=settings.service_tier,
            max_output_tokens=settings.max_output_tokens,
            abilities=settings.abilities,
        )
        # The last try is for servers that do not know schemas.
        tries = [prompt, replace(prompt, output_schema=None)]
        if settings.provider == "openai":
            tries.insert(0, replace(prompt, model=_OWN_MODEL))
        failure = ModelError("it was not asked")
        for each in tries:
            try:
                return await self._text(each)
            except ModelError as error:
                failure = error
        raise failure

    async def _text(self, prompt: Prompt) -> str:
        if self._stream is None:
            setup = self._setup
            assert setup.connect is not None
            provider = configured_provider(setup.config, setup.environment)
            self._stream = setup.connect(provider).stream
            budget = self._thread.feature(BudgetFeature)
            if budget is not None:
                self._stream = budget(self._thread).wrap_model(self._stream)
        text = ""
        async with self._stream(prompt) as events:
            async for event in events:
                match event:
                    case OutputItemDone(item=Message() as said):
                        text += said.text or ""
                    case Completed(usage):
                        self._thread.count(usage)
                    case _:
                        pass
        return text

    def _context(self) -> Mapping[str, Any]:
        """The facts that the reviewer gets besides the call."""
        items: list[Any] = [
            decode_json(item) for item in self._thread.items[-4 * _MAX_ITEMS :]
        ]
        recent = [
            json.dumps(item, ensure_ascii=False)
            for item in items
            if str(item.get("type")).endswith(("_call", "_output"))
            or item.get("role") == "assistant"
        ]
        context = {"asked_by_user": _prompts(self._top._thread)}
        if self._top is not self:
            context["asked_by_agent"] = _prompts(self._thread)
        context["recently"] = recent[-_MAX_ITEMS:]
        return {
            k: [truncate_middle(text, _MAX_TOKENS) for text in v]
            for k, v in context.items()
        }


def _prompts(thread: Thread) -> list[str]:
    """Return the user's last prompts, including those that a compaction has kept."""
    said = filter(None, map(user_prompt, thread.items))
    return [prompt.text for prompt in said][-_MAX_PROMPTS:]


def _visible(data: Any) -> str:
    """Encode the data as JSON on one line, with invisible characters escaped.

    A model would read those too.
    """
    text = json.dumps(data, ensure_ascii=False)
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def read_verdict(text: str) -> Verdict:
    """Read a verdict. Anything but an answer of the right form denies the call."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    match data:
        case {
            "decision": "allow" | "deny" as decision,
            "risk": str(risk),
            "reason": str(reason),
        } if len(data) == 3 and risk in _RISKS and reason.strip():
            is_allowed = decision == "allow" and risk in _RISKS[:2]
            return Verdict(
                is_allowed, truncate_middle(" ".join(reason.split()), 200), risk
            )
        case _:
            return Verdict(False, "its answer cannot be read")
