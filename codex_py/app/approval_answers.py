"""The answers that a user may give to a question about a call.

Every frontend and server takes its answers from here, and only spells them in its own words.
"""

import shlex
from collections.abc import Callable, Iterable
from typing import Final

from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.frozen import frozen
from codex_py.streams.terminal import printable

_SUBJECTS: Final = {
    "command": "this command",
    "patch": "these files",
    "mcp": "this tool",
    "network": "this host",
}
"""The subject of a yes for the session, by kind of request."""


@frozen
class ApprovalAnswer:
    """An answer to an `ApprovalRequest`."""

    decision: ReviewDecision
    """The meaning of the answer."""
    label: Callable[[ApprovalRequest], str]
    """Returns the answer in words, in one line without terminal controls."""
    is_offered: Callable[[ApprovalRequest], bool] = lambda _: True
    """Returns True if the request can be answered so."""
    lasts: bool = False
    """True if the answer applies to later calls too."""
    takes_feedback: bool = False
    """True if the user may say what the model should do instead."""

    @property
    def id(self) -> str:
        return self.decision.value

    @property
    def allows(self) -> bool:
        """True if the call may run."""
        return self.decision not in {ReviewDecision.DENIED, ReviewDecision.ABORT}

    def review(self, feedback: str | None = None) -> Review:
        """Make the review. `feedback`: see `takes_feedback`."""
        return Review(self.decision, feedback)


def rule_words(request: ApprovalRequest) -> str:
    """Return the words, or the host, that the rule of `WITH_RULE` would allow, as they are typed.

    Empty if no rule can be made.
    """
    return printable(shlex.join(request.prefix or ()))


def _session_label(request: ApprovalRequest) -> str:
    subject = _SUBJECTS[request.kind]
    return f"Yes, and do not ask again for {subject} in this session"


def _rule_label(request: ApprovalRequest) -> str:
    words = rule_words(request)
    if request.kind == "network":
        return f"Yes, and allow `{words}` in any session"
    return f"Yes, and do not ask again for commands that start with `{words}`, in any session"


ONCE: Final = ApprovalAnswer(ReviewDecision.APPROVED, lambda _: "Yes, proceed")
FOR_SESSION: Final = ApprovalAnswer(
    ReviewDecision.APPROVED_FOR_SESSION,
    _session_label,
    is_offered=lambda request: request.can_last,
    lasts=True,
)
WITH_RULE: Final = ApprovalAnswer(
    ReviewDecision.APPROVED_WITH_RULE,
    _rule_label,
    is_offered=lambda request: bool(request.prefix),
    lasts=True,
)
NO: Final = ApprovalAnswer(
    ReviewDecision.DENIED,
    lambda _: "No, and say what to do instead",
    takes_feedback=True,
)
STOP: Final = ApprovalAnswer(ReviewDecision.ABORT, lambda _: "No, and stop here")
ANSWERS: Final = (ONCE, FOR_SESSION, WITH_RULE, NO, STOP)
"""All answers, in the order in which they are shown."""


def offered_answers(request: ApprovalRequest) -> list[ApprovalAnswer]:
    """Return the answers to a request, in the order in which they are shown."""
    return [answer for answer in ANSWERS if answer.is_offered(request)]


def answer_by_id(
    answer_id: object, offered: Iterable[ApprovalAnswer]
) -> ApprovalAnswer:
    """Return the offered answer with this id. Anything else means `NO`."""
    for answer in offered:
        if answer.id == answer_id:
            return answer
    return NO
