"""The interface through which commands are confined."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.protocol.approval import SandboxPolicy


class Sandbox(Protocol):
    @property
    def unavailable(self) -> str | None:
        """Why a command was refused, as a line for the user; None if none was."""
        ...

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:
        """The command line that runs `argv` in `cwd` (absolute), confined to the policy.

        The first call tries which backend works here. May create placeholders for protected names, which
        `release` removes.

        Raises:
            ToolError: nothing on this machine can confine the command, so it must not run.
        """
        ...

    def release(self) -> None:
        """Remove what `command` created. To be called when no command runs; others may follow.

        Waits up to a second until everything that the commands left behind is dead, which it mostly is. Removes
        nothing while something lives on.
        """
        ...


class NoSandbox:
    """Runs commands as they are, whatever the policy says."""

    unavailable: str | None = None

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:  # noqa: ARG002
        return argv

    def release(self) -> None:
        pass


NO_SANDBOX = NoSandbox()
