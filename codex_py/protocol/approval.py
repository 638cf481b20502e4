"""Who may do what: policies, and the question put to whoever decides."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias


class ApprovalPolicy(StrEnum):
    UNTRUSTED = "untrusted"
    ON_FAILURE = "on-failure"
    ON_REQUEST = "on-request"
    NEVER = "never"


SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".aws")
"""Entries of a writable root that stay read-only."""


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    mode: SandboxMode = "read-only"
    writable_roots: tuple[Path, ...] = ()
    """Absolute; used by `workspace-write` alone, where they include the working directory."""
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    kind: Literal["command", "patch", "mcp"]
    summary: str
    """The whole command, or the diff."""
    cwd: Path
    reason: str | None = None
    prefix: tuple[str, ...] | None = None
    """Words that a rule could allow from now on; None where no rule can be made of the call."""


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


@dataclass(frozen=True, slots=True)
class Review:
    """An answer to an `ApprovalRequest`."""

    decision: ReviewDecision
    feedback: str | None = None
    """What the user would have the model do instead, in their words; told to the model."""


class Approver(Protocol):
    async def review(self, request: ApprovalRequest) -> Review:
        """Decide. A frontend asks its user; one without a user answers by policy and never waits."""
        ...
