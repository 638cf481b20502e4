"""A command that the model wants to run, and what can be decided about it: plain data."""

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
    """The model asks for it to run outside of the sandbox."""
    justification: str | None = None
    """The model's question to the user."""
    prefix_rule: tuple[str, ...] = ()
    """First words that the model would like to see allowed from now on."""
    tty: bool = False
    """The model can type into it, which nobody is asked about."""

    @property
    def approval(self) -> "Approval":
        return self.argv, self.cwd, self.escalated, self.tty


Approval: TypeAlias = tuple[tuple[str, ...], Path, bool, bool]
"""What a yes for the whole session covers: this argv, here, outside of the sandbox or not, with a terminal or not."""


@dataclass(frozen=True, slots=True)
class Run:
    sandboxed: bool
    environment: Mapping[str, str] | None = None
    """Its variables, where a rule lets it out; None for those of the session."""


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
    """A rule forbids it, so that no other rule can allow it."""


Verdict: TypeAlias = Run | Ask | Refuse
