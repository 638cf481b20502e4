"""`--approve-for-me`: a model decides approvals, without a setting in a file."""

from collections.abc import Mapping
from typing import Annotated, Any

from codex_py.api.options import SESSIONS, Arguments, Options, UsageError, flag


class ReviewerOptions(Options):
    commands = SESSIONS
    asks_for_approvals = True

    approve_for_me: Annotated[bool, flag("--approve-for-me")] = False

    def check(self, arguments: Arguments) -> None:
        if arguments.bypass:
            raise UsageError("--approve-for-me excludes --yolo: one decides")

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:
        return {
            "approval_policy": arguments.approval or "on-request",
            "approvals_reviewer": "auto_review",
            "sandbox_mode": arguments.sandbox or "workspace-write",
        }
