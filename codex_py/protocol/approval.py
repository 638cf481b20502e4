"""Who may do what: policies, and the question put to whoever decides."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Set
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from codex_py.errors import ToolError
from codex_py.protocol.frozen import frozen


class ApprovalPolicy(StrEnum):
    """When the user is asked. A call that needs a yes and may not ask for it is refused."""

    UNTRUSTED = "untrusted"
    """About every command that is not known to only read, and every patch."""
    ON_FAILURE = "on-failure"
    """As with `on-request`, and when a command failed in the sandbox and may do better outside."""
    ON_REQUEST = "on-request"
    """When the model wants to leave the sandbox, a rule says so, or a command is dangerous."""
    NEVER = "never"


ApprovalKind: TypeAlias = Literal[
    "sandbox_approval", "rules", "mcp_elicitations", "request_permissions", "skill_approval"
]
"""What a question is about: leaving the sandbox and what is dangerous, what a rule says, and so on."""


@frozen(kw_only=True)
class GranularPolicy:
    """As `on-request`, for some kinds of question; those that are False are answered with a no, unasked."""

    sandbox_approval: bool
    rules: bool
    mcp_elicitations: bool
    request_permissions: bool = False
    skill_approval: bool = False

    def __str__(self) -> str:
        return "granular"


AskForApproval: TypeAlias = ApprovalPolicy | GranularPolicy


def may_ask(policy: AskForApproval, kind: ApprovalKind) -> bool:
    """Whether the user may be asked about things of this kind."""
    if isinstance(policy, GranularPolicy):
        return bool(getattr(policy, kind))
    return policy is not ApprovalPolicy.NEVER


def approval_data(policy: AskForApproval) -> str | dict[str, Any]:
    """The policy as session files and `config.toml` have it."""
    return {"granular": asdict(policy)} if isinstance(policy, GranularPolicy) else policy.value


SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


@frozen
class SandboxPolicy:
    """What a command may write and reach."""

    mode: SandboxMode = "read-only"
    writable_roots: tuple[Path, ...] = ()
    """Absolute; used by `workspace-write` alone, where they include the working directory."""
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


@frozen
class ApprovalRequest:
    """What is asked of an `Approver`."""

    kind: Literal["command", "patch", "mcp"]
    summary: str
    """The whole command, or the diff."""
    cwd: Path
    reason: str | None = None
    prefix: tuple[str, ...] | None = None
    """Words that a rule could allow from now on; None where no rule can be made of the call."""
    can_last: bool = True
    """Whether `APPROVED_FOR_SESSION` would be more than `APPROVED`."""
    paths: tuple[Path, ...] = ()
    """The files of a patch as it names them, absolute; its diff leaves out the first slash."""


class ReviewDecision(StrEnum):
    APPROVED = "approved"
    APPROVED_FOR_SESSION = "approved_for_session"
    """Neither this call nor one that is just like it is asked about again in this session."""
    APPROVED_WITH_RULE = "approved_with_rule"
    """As `APPROVED`, and a rule that allows `ApprovalRequest.prefix` is written down."""
    DENIED = "denied"
    """The model is told, and may try something else."""
    ABORT = "abort"
    """The turn ends."""


@frozen
class Review:
    """An answer to an `ApprovalRequest`."""

    decision: ReviewDecision
    feedback: str | None = None
    """What the user would have the model do instead, in their words; told to the model."""


class Approver(Protocol):
    async def review(self, request: ApprovalRequest) -> Review:
        """Decide. A frontend asks its user; one without a user answers by policy and never waits."""
        ...


class Approvals:
    """What the user has agreed to for a session, and the one way to ask for more.

    Whoever asks holds `asking`, so that one question is put at a time, and looks again at what is granted: the answer to
    the question before may answer this one.

    Args:
        abort: ends the turn, if an answer says so.
    """

    def __init__(self, approver: Approver, abort: Callable[[], None] = lambda: None) -> None:
        self._approver = approver
        self._abort = abort
        self._granted: set[Any] = set()
        self.asking = asyncio.Lock()

    @property
    def granted(self) -> Set[Any]:
        """What needs no question: commands, files, tools, each by a key of its own kind."""
        return self._granted

    async def ask(
        self, request: ApprovalRequest, grants: Iterable[Hashable], *, rejected: str
    ) -> ReviewDecision:
        """Ask. Returns the kind of yes.

        Args:
            grants: keys that a yes for the whole session grants.
            rejected: what the model is told of a no, with what the user said to it.

        Raises:
            ToolError: the answer is no.
        """
        review = await self._approver.review(request)
        if review.decision is ReviewDecision.ABORT:
            self._abort()
        if review.decision in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
            said = f": {review.feedback}" if review.feedback else ""
            raise ToolError(f"{rejected}{said}", code="ApprovalDenied")
        if review.decision is ReviewDecision.APPROVED_FOR_SESSION:
            self._granted.update(grants)
        return review.decision
