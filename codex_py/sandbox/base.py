"""The seam between a command and what holds it in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.protocol.approval import SandboxPolicy


class Sandbox(Protocol):
    @property
    def unavailable(self) -> str | None:
        """One line for the user about why a command was refused; None if none was."""
        ...

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:
        """What to run so that `argv` runs in `cwd` (absolute) and is held to the policy.

        Starts nothing but, once in the life of the process, what finds out how commands can be held. May
        make the empty folders that cover what must not come to be; `release` takes them away.

        Raises:
            ToolError: nothing on this machine can hold it, so it must not run.
        """
        ...

    def release(self) -> None:
        """Take back what `command` made. No command may run any more; others may follow.

        Waits for what the last ones left behind to be dead: mostly not at all, at most a second. Keeps
        everything as it is where something lives on.
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
