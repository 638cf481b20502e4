"""Approvals that an extension decides: what `Extension.wrap_approver` takes and returns.

A reviewer is an entry point of `codex_py.reviewers`, named as the value of `approvals_reviewer` that
asks for it. It is called with the `SessionSetup`, and returns a `Feature` whose `wrap_approver` takes
the place of the user.
"""

from codex_py.app.options import SessionSetup
from codex_py.protocol.approval import (
    AbsentApprover,
    ApprovalRequest,
    Approver,
    Review,
    ReviewDecision,
)
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.frozen import frozen

__all__ = [
    "AbsentApprover",
    "ApprovalRequest",
    "Approver",
    "Extension",
    "Review",
    "ReviewDecision",
    "SessionSetup",
    "Thread",
    "TurnStart",
    "frozen",
]
