"""Slash commands of the terminal."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from codex_py.config.config import Config
from codex_py.frontends.tui.compose.completion import CommandName
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.overlay import Overlays
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.transcript import Transcript

NEXT_STEP: Final = "from the next step on"


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The parts of the program that a slash command works with."""

    ui: TerminalUI
    conversation: Conversation
    transcript: Transcript
    shell: UserShell
    overlays: Overlays
    undoing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during an undo or redo, which may take seconds; the next one waits for it."""

    @property
    def config(self) -> Config:
        """The configuration of the next session."""
        return self.conversation.config

    def tell_change(self, text: str) -> None:
        """Show a notice about a change; during a turn, add when it takes effect."""
        if self.conversation.is_working:
            text = f"{text}, {NEXT_STEP}"
        self.transcript.notice(text)


Work: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]
"""Runs a command with its argument, which is the stripped text after the name.

A plain function does its work up to its return before the next key is read.
"""


@dataclass(frozen=True, slots=True)
class SlashCommand(CommandName):
    """A slash command: its names and its help, and the function that runs it."""

    run: Work
    while_working: bool = True
    """True if the command may run during a turn."""
    feature: str = ""
    """The feature that must be on for the command to be listed; empty if none."""
