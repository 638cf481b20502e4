"""Defines the terminals of the user's own program, such as an editor, in which commands can run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class TerminalState(NamedTuple):
    """The output of a command in a terminal, and its end."""

    output: str
    """All output that the terminal has kept."""
    is_truncated: bool
    """True if the beginning of the output is missing."""
    exit_code: int | None
    """128 + n after signal n; None while the command runs."""


class CommandTerminal(Protocol):
    """A terminal in which a command was started."""

    @property
    def id(self) -> str:
        """The id by which the user's program knows the terminal."""
        ...

    async def wait(self) -> int:
        """Wait for the end of the command, without a deadline. Returns its exit code.

        Raises:
            ToolError: the user's program failed.
        """
        ...

    async def state(self) -> TerminalState:
        """Return the output so far. The wait has a deadline.

        Raises:
            ToolError: the user's program failed, or did not answer in time.
        """
        ...

    def kill(self) -> None:
        """Ask for the end of the command, without waiting."""
        ...

    def release(self) -> None:
        """Give the terminal back, without waiting. A command in it ends."""
        ...


class CommandTerminals(Protocol):
    """Opens terminals. They belong to somebody who may fail, leave, or never answer."""

    async def open(
        self,
        argv: Sequence[str],
        *,
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
        marks: Mapping[str, str],
        max_output_bytes: int,
    ) -> CommandTerminal:
        """Run a command in a new terminal, with exactly this environment. The wait has a deadline.

        If this raises or is cancelled, the command does not run, not even later.

        Args:
            title: the command as people know it.
            marks: variables among `environment` by which the agent finds the command. A process
                that prepares the command has them too.
            max_output_bytes: the size of the output that the terminal keeps: its end.

        Raises:
            ToolError: there is no terminal, or the command cannot be run.
        """
        ...
