"""Approval and sandbox policies, and the questions to the user about calls."""

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
    """The rule that says when to ask the user.

    A call that needs an approval is refused if the user may not be asked.
    """

    UNTRUSTED = "untrusted"
    """Ask about every patch, and every command that is not known to be read-only."""
    ON_FAILURE = "on-failure"
    """Ask as in `on-request`, and when a command failed in the sandbox and may succeed outside of
    it."""
    ON_REQUEST = "on-request"
    """Ask when the model wants to leave the sandbox, a rule says so, or a command is dangerous."""
    NEVER = "never"
    """Never ask."""


ApprovalKind: TypeAlias = Literal[
    "sandbox_approval",
    "rules",
    "mcp_elicitations",
    "request_permissions",
    "skill_approval",
]
"""The subject of a question.

`sandbox_approval` is about leaving the sandbox, or a dangerous command. `rules` is about a command
for which a rule says to ask.
"""


@frozen(kw_only=True)
class GranularPolicy:
    """Ask as in `on-request`, but only about the kinds that are True.

    Calls that need another kind of approval are refused.
    """

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
    """The policy as session files and `config.toml` spell it."""
    if isinstance(policy, GranularPolicy):
        return {"granular": asdict(policy)}
    return policy.value


SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


@frozen
class SandboxPolicy:
    """Limits on the files that commands may write and on their use of the network."""

    mode: SandboxMode = "read-only"
    writable_roots: tuple[Path, ...] = ()
    """Absolute paths, including the working directory; only for `workspace-write`."""
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False
    is_final: bool = False
    """True: no approval and no rule lets a call leave the sandbox."""
    files: FileRules = NO_RULES
    """Rules that hold in every mode, and outside of the sandbox too."""
    domains: DomainRules | None = None
    """The only hosts that commands may reach; None: all."""
    profile: str = ""
    """The permission profile that this policy was made from; may be empty."""

    def locked(self) -> "SandboxPolicy":
        """A policy that allows no changes; what is denied stays denied."""
        return SandboxPolicy(is_final=True, files=self.files, profile=self.profile)


@frozen
class SandboxLimits:
    """The resource limits of a sandboxed command: `[sandbox_limits]`."""

    max_processes: int = 8192
    """Limit on the processes and threads of one command and its children.

    It allows 64 workers with 64 threads each, and leaves the machine some gigabytes after a fork
    bomb.
    """
    max_open_files: int = 65536
    """Limit of each process. It is no million, because some programs close every possible
    descriptor one by one."""
    max_memory_mb: int | None = None
    """Limit of each process's data segment, in MiB; None sets no limit."""


DEFAULT_LIMITS = SandboxLimits()


@frozen
class ApprovalRequest:
    """A call that an `Approver` decides on."""

    kind: Literal["command", "patch", "mcp", "network"]
    summary: str
    """The whole command, the diff, or the host and port that a command wants to reach."""
    cwd: Path
    reason: str | None = None
    prefix: tuple[str, ...] | None = None
    """The first words of commands, or the host, that a new rule could allow; None if no rule can be
    made."""
    can_last: bool = True
    """True if `APPROVED_FOR_SESSION` grants more than `APPROVED`."""
    paths: tuple[Path, ...] = ()
    """The files that a patch names, absolute; the diff in `summary` leaves out the first slash."""
    tool: tuple[str, Mapping[str, Any]] | None = None
    """`mcp__server__tool` and its arguments, for `mcp`; a function of the library is
    `mcp__python__function`. The host and the port, for `network`."""
    files: Sequence[PatchedFile] = field(default=(), compare=False)
    """The complete files before and after the change, for `patch`."""
    item_id: str | None = field(default=None, compare=False)
    """The id of the call's thread item, which may not have started yet."""
    justification: str | None = field(default=None, compare=False)
    """The model's own reason, which is also the end of `reason`."""
    agent: str | None = None
    """The nickname of the subagent that makes the call; None if it is the session's own."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the function, or of the tool of an MCP server; empty for any other
        call."""
        if self.kind != "mcp" or self.tool is None:
            return {}
        _, arguments = self.tool
        return arguments

    @property
    def question(self) -> dict[str, Any]:
        """The subject of the decision as a JSON object."""
        names = ("kind", "summary", "reason", "cwd", "paths", "tool")
        data = {name: getattr(self, name) for name in names}
        return json.loads(json.dumps(data, default=str))


class ReviewDecision(StrEnum):
    """The decision on a call that needs an approval."""

    APPROVED = "approved"
    APPROVED_FOR_SESSION = "approved_for_session"
    """The user is not asked about identical calls again in this session."""
    APPROVED_WITH_RULE = "approved_with_rule"
    """Approved, and a rule that allows `ApprovalRequest.prefix` is saved."""
    DENIED = "denied"
    """The model gets an error, and may try something else."""
    ABORT = "abort"
    """The turn ends."""


@frozen
class Review:
    """An answer to an `ApprovalRequest`."""

    decision: ReviewDecision
    feedback: str | None = None
    """The user's words to the model about what to do instead."""


def as_review(answer: object) -> Review:
    """Convert the answer of an approver: a `Review`, a `ReviewDecision`, or True or False.

    Raises:
        CodexError: the answer is something else; the code is `approver`. The call is not allowed.
    """
    if answer is True:
        return Review(ReviewDecision.APPROVED)
    if answer is False:
        return Review(ReviewDecision.DENIED)
    if isinstance(answer, ReviewDecision):
        return Review(answer)
    if isinstance(answer, Review):
        return answer
    raise CodexError(
        f"the approver answered {answer!r}, which is neither a bool, nor a ReviewDecision,"
        " nor a Review, so the call was not allowed",
        code="approver",
    )


DENIALS = frozenset({"ApprovalDenied", "SandboxDenied"})
"""Error codes of calls that were not allowed to run. A `CallDenied` tells the user of each."""


@frozen
class Denied:
    """A summary of the calls that were refused in a turn."""

    calls: int = 0
    allow: tuple[str, ...] = ()
    """The options and settings that would allow them, each once; empty if none would."""
    causes: tuple[str, ...] = field(default=(), metadata={"json": False})
    """The reasons of the refusals, as clauses for the user, each once."""

    def plus(self, cause: str | None, allow: str | None) -> "Denied":
        """Add one refused call."""
        calls = self.calls + 1
        return Denied(calls, _added(self.allow, allow), _added(self.causes, cause))


def _added(texts: tuple[str, ...], text: str | None) -> tuple[str, ...]:
    """The texts and one more, unless it is empty or among them."""
    if not text or text in texts:
        return texts
    return (*texts, text)


class Approver(Protocol):
    """Decides on calls that need an approval."""

    async def review(self, request: ApprovalRequest) -> Review:
        """Decide on a call.

        A frontend asks its user. Without a user it decides by policy and never waits.
        """
        ...


class AbsentApprover:
    """Stands for a person who decides later: each question suspends the turn."""

    async def review(self, request: ApprovalRequest) -> Review:
        if request.agent is not None:
            return Review(
                ReviewDecision.DENIED, "the call of a subagent cannot wait for a person"
            )
        raise TurnSuspended("the run waits for an approval of another call")
