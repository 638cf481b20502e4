"""A command that the model wants to run, and the possible decisions on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from codex_py.protocol.approval import ApprovalRequest


@dataclass(frozen=True, slots=True)
class CommandCall:
    argv: tuple[str, ...]
    cwd: Path
    """Absolute."""
    escalated: bool = False
    """The model asks to run it outside of the sandbox."""
    justification: str | None = None
    """The model's question to the user."""
    prefix_rule: tuple[str, ...] = ()
    """First words of commands that the model would like a rule to allow."""
    tty: bool = False
    """The model can type into it, without an approval."""

    @property
    def approval(self) -> "Approval":
        return self.argv, self.cwd, self.escalated, self.tty


Approval: TypeAlias = tuple[tuple[str, ...], Path, bool, bool]
"""What an approval for the session covers: argv, cwd, `escalated` and `tty`."""


@dataclass(frozen=True, slots=True)
class Run:
    sandboxed: bool
    environment: Mapping[str, str] | None = None
    """Its variables if a rule lets it leave the sandbox; None: those of the session."""


@dataclass(frozen=True, slots=True)
class Ask:
    request: ApprovalRequest
    sandboxed: bool
    """How it runs after a yes."""


@dataclass(frozen=True, slots=True)
class Refuse:
    text: str
    """For the model."""
    by_rule: bool = False
    """A rule forbids it, and no other rule can allow it."""


Verdict: TypeAlias = Run | Ask | Refuse
