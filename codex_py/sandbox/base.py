"""The seam between a command and what holds it in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.protocol.approval import SandboxPolicy


class Sandbox(Protocol):
    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:
        """What to run so that `argv` runs in `cwd` (absolute) and is held to the policy.

        Pure: nothing is started or written.
        """
        ...


class NoSandbox:
    """Runs commands as they are, whatever the policy says."""

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:  # noqa: ARG002
        return argv


NO_SANDBOX = NoSandbox()
