"""Approvals that an extension decides: what `Extension.wrap_approver` takes and returns.

A reviewer is an entry point of `codex_py.reviewers`, named as the value of `approvals_reviewer` that
asks for it:

    [project.entry-points."codex_py.reviewers"]
    two_persons = "codex_py_two_persons:reviewer"

The value is called with the `SessionSetup`, and returns a `Feature` whose `wrap_approver` takes the place
of the user. A project cannot choose a reviewer, and an administrator may name those that are allowed.

An approver may answer with a decision alone, which `as_review` makes a `Review`. `approval_data` gives
an approval policy in the form of `config.toml`.

An `AbsentApprover` raises `TurnSuspended`: the session can continue with the call later. `APPROVAL_KEY`
is the variable with the key that signs approvals. `Options.run` gets it, and no program that a run
starts does.
"""

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import APPROVAL_KEY
from codex_py.errors import TurnSuspended
from codex_py.protocol.approval import (
    AbsentApprover,
    ApprovalRequest,
    Approver,
    Review,
    ReviewDecision,
    approval_data,
    as_review,
)
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.frozen import frozen

__all__ = [
    "APPROVAL_KEY",
    "AbsentApprover",
    "ApprovalRequest",
    "Approver",
    "Extension",
    "Review",
    "ReviewDecision",
    "SessionSetup",
    "Thread",
    "TurnStart",
    "TurnSuspended",
    "approval_data",
    "as_review",
    "frozen",
]
