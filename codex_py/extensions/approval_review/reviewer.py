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

from codex_py.api.approvals import (
    ApprovalRequest,
    Approver,
    Extension,
    Review,
    ReviewDecision,
    SessionSetup,
    Thread,
    TurnStart,
    frozen,
)
from codex_py.api.models import (
    Completed,
    Message,
    ModelError,
    ModelStream,
    OutputItemDone,
    Prompt,
    counted_stream,
    decode_json,
    input_text,
    instruction_text,
    message,
    truncate_middle,
    user_prompt,
)
from codex_py.extensions.approval_review.table import AutoReview

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
    """The decision on a call. `risk` is one of `_RISKS`; None if the model did not decide."""

    is_allowed: bool
    reason: str
    risk: str | None = None


class ApprovalReviewer:
    """Reviews the calls of a session and of its subagents.

    The session at the top decides on all calls. So a model that starts subagents cannot pass off
    its own words as the user's, choose the reviewer, or get more reviews.

    Args:
        top: the reviewer of the session at the top; None for that session.
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
        verdict = await self._top._decide(request, self._context())
        risk = f" (risk: {verdict.risk})" if verdict.risk else ""
        decision = "allowed" if verdict.is_allowed else "refused"
        summary = " ".join(request.summary.split())
        call = truncate_middle(summary, 200, "bytes")
        self._thread.warn(f"The reviewer {decision} `{call}`{risk}: {verdict.reason}")
        if verdict.is_allowed:
            return Review(ReviewDecision.APPROVED)
        why = f"the automatic reviewer refuses it{risk}: {verdict.reason}; {_ADVICE}"
        return Review(ReviewDecision.DENIED, why)

    async def _decide(
        self, request: ApprovalRequest, context: Mapping[str, Any]
    ) -> Verdict:
        """Let the model decide on a call, unless it is too long or there were too many reviews.

        Args:
            context: the facts that the model gets besides the call.
        """
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
                facts = _visible({**context, "call": request.question})
                answer = await self._ask(facts)
                return read_verdict(answer)
        except TimeoutError:
            return Verdict(False, f"there was no answer within {_TIMEOUT_S:g} s")
        except ModelError as error:
            return Verdict(False, f"there was no answer: {error}")

    async def _ask(self, facts: str) -> str:
        """Return the text of the model's answer.

        Raises:
            ModelError: every way to ask has failed.
        """
        prompt = self._prompt(facts)
        # The last try is for servers that do not know schemas.
        tries = [prompt, replace(prompt, output_schema=None)]
        if self._thread.settings.provider == "openai":
            tries.insert(0, replace(prompt, model=_OWN_MODEL))
        failure = ModelError("it was not asked")
        for each in tries:
            try:
                return await self._send(each)
            except ModelError as error:
                failure = error
        raise failure

    def _prompt(self, facts: str) -> Prompt:
        settings = self._thread.settings
        # The facts cannot contain the fence, so nothing in them reads as an instruction.
        fence = f"data-{secrets.token_hex(16)}"
        text = f"{fence}\n{facts}\n{fence}\n\nDecide on `call`, and answer with the JSON object alone."
        table = self._setup.config.settings.claimed.get("auto_review")
        policy = None
        if isinstance(table, AutoReview):
            policy = table.policy
        instructions = instruction_text("approval_review.md")
        return Prompt(
            model=settings.model,
            input=[message("user", [input_text(text)])],
            cache_key=f"{self._thread.thread_id}-approvals",
            instructions=instructions.replace("{policy}", policy or "There is none."),
            reasoning=settings.reasoning,
            output_schema=json.loads(instruction_text("approval_review.json")),
            service_tier=settings.service_tier,
            max_output_tokens=settings.max_output_tokens,
            abilities=settings.abilities,
        )

    def _connected(self) -> ModelStream:
        """Return the connection to the model, which the first call makes.

        Its requests count towards the budget of the session.
        """
        if self._stream is None:
            self._stream = counted_stream(self._setup, self._thread)
        return self._stream

    async def _send(self, prompt: Prompt) -> str:
        """Send one request. Returns the text of its answer; raises a `ModelError` if it fails."""
        stream = self._connected()
        text = ""
        async with stream(prompt) as events:
            async for event in events:
                match event:
                    case OutputItemDone(item=Message() as said):
                        text += said.text or ""
                    case Completed(usage, plan=plan):
                        self._thread.count(usage, plan=plan)
                    case _:
                        pass
        return text

    def _context(self) -> Mapping[str, Any]:
        """Collect the facts that the reviewer gets besides the call."""
        context = {"asked_by_user": _last_prompts(self._top._thread)}
        if self._top is not self:
            context["asked_by_agent"] = _last_prompts(self._thread)
        context["recently"] = _last_items(self._thread)
        return {
            name: [truncate_middle(text, _MAX_TOKENS) for text in texts]
            for name, texts in context.items()
        }


def _last_prompts(thread: Thread) -> list[str]:
    """Return the user's last prompts, including those that a compaction has kept."""
    prompts = filter(None, map(user_prompt, thread.items))
    texts = [prompt.text for prompt in prompts]
    return texts[-_MAX_PROMPTS:]


def _last_items(thread: Thread) -> list[str]:
    """Return the model's last messages, its calls and their outputs, as JSON."""
    texts: list[str] = []
    for encoded in thread.items[-4 * _MAX_ITEMS :]:
        item: Any = decode_json(encoded)
        kind = str(item.get("type"))
        is_call = kind.endswith(("_call", "_output"))
        if is_call or item.get("role") == "assistant":
            texts.append(json.dumps(item, ensure_ascii=False))
    return texts[-_MAX_ITEMS:]


def _visible(data: Any) -> str:
    """Encode the data as JSON on one line.

    Characters that a user does not see are escaped, because the model would read them.
    """
    text = json.dumps(data, ensure_ascii=False)
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def read_verdict(text: str) -> Verdict:
    """Read a verdict. Anything but an answer of the right form denies the call.

    A high risk denies it too.
    """
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
            is_allowed = decision == "allow" and risk in {"low", "medium"}
            on_one_line = " ".join(reason.split())
            return Verdict(is_allowed, truncate_middle(on_one_line, 200), risk)
        case _:
            return Verdict(False, "its answer cannot be read")
