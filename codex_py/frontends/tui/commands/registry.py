"""Commands of the terminal: what begins with a slash, found by name."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from codex_py.config.config import Config
from codex_py.errors import nearest
from codex_py.frontends.tui.compose.completion import CommandName
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.surface import Surface
from codex_py.frontends.tui.transcript import Transcript


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What commands work with."""

    surface: Surface
    commands: "Commands"
    conversation: Conversation
    transcript: Transcript
    shell: UserShell

    @property
    def config(self) -> Config:
        """What the next session is opened with."""
        return self.conversation.config


Work: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]
"""Runs a command with its argument: what stands behind the name, stripped."""


@dataclass(frozen=True, slots=True)
class Command(CommandName):
    run: Work
    while_working: bool = True
    """May run beside a turn."""


class Commands:
    """By their names; `all` is in the order in which they are listed."""

    def __init__(self, all: Sequence[Command]) -> None:
        self.all = all
        self._by_name = {name: each for each in all for name in (each.name, *each.aliases)}

    def find(self, line: str) -> tuple[Command, str] | None:
        """The command of a line that begins with a slash, and its argument; None if it is none.

        A path such as `/etc/hosts is wrong` is no command.
        """
        name, _, argument = line[1:].partition(" ")
        command = self._by_name.get(name)
        return None if command is None else (command, argument.strip())

    def unknown(self, line: str) -> str | None:
        """What is wrong with a line that looks like a command and is none; None if it is a prompt."""
        name = line[1:].split(maxsplit=1)[0] if line[1:].strip() else ""
        if "/" in name or "\n" in line:
            return None
        near = nearest(name, self._by_name)
        return f"no command /{name}." + (f" Did you mean /{near}?" if near else "")
