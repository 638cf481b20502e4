"""Approval and sandbox policies, and how the user is asked to approve a call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from codex_py.errors import CodexError, TurnSuspended
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile


class ApprovalPolicy(StrEnum):
    """When the user is asked. A call that needs an approval is refused if the user may not be asked."""

    UNTRUSTED = "untrusted"
    """Ask about every patch, and every command that is not known to be read-only."""
    ON_FAILURE = "on-failure"
    """As `on-request`, and when a command failed in the sandbox and may succeed outside of it."""
    ON_REQUEST = "on-request"
    """Ask when the model wants to leave the sandbox, a rule says so, or a command is dangerous."""
    NEVER = "never"


ApprovalKind: TypeAlias = Literal[
    "sandbox_approval",
    "rules",
    "mcp_elicitations",
    "request_permissions",
    "skill_approval",
]
"""The subject of a question. `sandbox_approval`: leaving the sandbox, and dangerous commands; `rules`: a rule asks."""


@frozen(kw_only=True)
class GranularPolicy:
    """As `on-request`, for the kinds that are True. What needs an approval of another kind is refused."""

    sandbox_approval: bool
    rules: bool
    mcp_elicitations: bool
    request_permissions: bool = False
    skill_approval: bool = False

    def __str__(self) -> str:
        return "granular"


AskForApproval: TypeAlias = ApprovalPolicy | GranularPolicy


def may_ask(policy: AskForApproval, kind: ApprovalKind) -> bool:
    """True if the user may be asked questions of this kind."""
    if isinstance(policy, GranularPolicy):
        return bool(getattr(policy, kind))
    return policy is not ApprovalPolicy.NEVER


def approval_data(policy: AskForApproval) -> str | dict[str, Any]:
    """The policy as it is written in session files and `config.toml`."""
    if isinstance(policy, GranularPolicy):
        return {"granular": asdict(policy)}
    return policy.value


SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


@frozen
class SandboxPolicy:
    """What commands may write to, and whether they may use the network."""

    mode: SandboxMode = "read-only"
    writable_roots: tuple[Path, ...] = ()
    """Absolute; used by `workspace-write` alone, where they include the working directory."""
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False
    is_final: bool = False
    """No approval and no rule lets a call leave it."""
    files: FileRules = NO_RULES
    """Hold in every mode, and outside of the sandbox too."""
    domains: DomainRules | None = None
    """The only hosts that the network leads to; None: all."""
    profile: str = ""
    """The permission profile that it comes from; empty if it comes from none."""

    def locked(self) -> "SandboxPolicy":
        """A policy under which nothing is changed; what is denied stays denied."""
        return SandboxPolicy(is_final=True, files=self.files, profile=self.profile)


@frozen
class SandboxLimits:
    """How much of the machine a sandboxed command may use: `[sandbox_limits]`."""

    max_processes: int = 8192
    """Processes and threads of one command and its children. Enough for 64 workers with 64 threads each, and
    few enough that a fork bomb leaves the machine some gigabytes."""
    max_open_files: int = 65536
    """Of each process. Not a million: some programs close every possible descriptor one by one."""
    max_memory_mb: int | None = None
    """Data segment of each process, in MiB; None sets no limit."""


DEFAULT_LIMITS = SandboxLimits()


@frozen
class ApprovalRequest:
    """A call that an `Approver` decides on."""

    kind: Literal["command", "patch", "mcp", "network"]
    summary: str
    """The whole command, the diff, or the host that a command wants to reach, with a colon and the port behind it."""
    cwd: Path
    reason: str | None = None
    prefix: tuple[str, ...] | None = None
    """First words of commands that a new rule could allow, or the host; None if no rule can be made of the call."""
    can_last: bool = True
    """True if `APPROVED_FOR_SESSION` grants more than `APPROVED`."""
    paths: tuple[Path, ...] = ()
    """The files that a patch names, absolute; the diff in `summary` leaves out the first slash."""
    tool: tuple[str, Mapping[str, Any]] | None = None
    """For `mcp`: `mcp__server__tool` and its arguments; for `network` the host and the port."""
    files: Sequence[PatchedFile] = field(default=(), compare=False)
    """For `patch`: the files whole, before and after it."""
    item_id: str | None = field(default=None, compare=False)
    """Of the call's thread item, which may not have started yet."""
    justification: str | None = field(default=None, compare=False)
    """What the model says, with which `reason` ends."""
    agent: str | None = None
    """The nickname of the subagent that makes the call; None if it is the session's own."""

    @property
    def question(self) -> dict[str, Any]:
        """What is decided, as JSON has it."""
        names = ("kind", "summary", "reason", "cwd", "paths", "tool")
        data = {name: getattr(self, name) for name in names}
        return json.loads(json.dumps(data, default=str))


class ReviewDecision(StrEnum):
    """The decision on a call that needs an approval."""

    APPROVED = "approved"
    APPROVED_FOR_SESSION = "approved_for_session"
    """The user is not asked about identical calls again in this session."""
    APPROVED_WITH_RULE = "approved_with_rule"
    """As `APPROVED`, and a rule that allows `ApprovalRequest.prefix` is saved."""
    DENIED = "denied"
    """The model gets an error, and may try something else."""
    ABORT = "abort"
    """The turn ends."""


@frozen
class Review:
    """An answer to an `ApprovalRequest`."""

    decision: ReviewDecision
    feedback: str | None = None
    """What the model should do instead, in the words of the user; the model reads it."""


def as_review(answer: object) -> Review:
    """The answer of an approver: a `Review`, a `ReviewDecision`, or True or False.

    Raises:
        CodexError: it is none of these, with the code `approver`. The call is not allowed.
    """
    if isinstance(answer, bool):
        if answer:
            answer = ReviewDecision.APPROVED
        else:
            answer = ReviewDecision.DENIED
    if isinstance(answer, ReviewDecision):
        return Review(answer)
    if isinstance(answer, Review):
        return answer
    reason = "is neither a bool, nor a ReviewDecision, nor a Review, so the call was not allowed"
    raise CodexError(
        f"the approver answered {answer!r}, which {reason}", code="approver"
    )


DENIALS = frozenset({"ApprovalDenied", "SandboxDenied"})
"""Error codes of calls that were not allowed to run. An event, `CallDenied`, tells the user of each."""


@frozen
class Denied:
    """A summary of the calls that were refused in a turn."""

    calls: int = 0
    allow: tuple[str, ...] = ()
    """The options and settings that would allow them, each once; empty if none would."""
    causes: tuple[str, ...] = field(default=(), metadata={"json": False})
    """Why they were refused, as clauses for the user, each once."""

    def plus(self, cause: str | None, allow: str | None) -> "Denied":
        """Add one refused call."""
        allows = dict.fromkeys((*self.allow, allow))
        causes = dict.fromkeys((*self.causes, cause))
        return Denied(
            self.calls + 1, tuple(filter(None, allows)), tuple(filter(None, causes))
        )


class Approver(Protocol):
    """Decides on calls that need an approval."""

    async def review(self, request: ApprovalRequest) -> Review:
        """Decide. A frontend asks its user; without a user it decides by policy and never waits."""
        ...


class AbsentApprover:
    """Stands for a person who decides later: each question suspends the turn."""

    async def review(self, request: ApprovalRequest) -> Review:
        if request.agent is not None:
            return Review(
                ReviewDecision.DENIED, "the call of a subagent cannot wait for a person"
            )
        raise TurnSuspended("the run waits for an approval of another call")
