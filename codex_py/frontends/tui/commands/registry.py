"""Commands of the terminal: what begins with a slash."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from codex_py.config.config import Config
from codex_py.frontends.tui.compose.completion import CommandName
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.overlay import Overlays
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.surface import Surface
from codex_py.frontends.tui.transcript import Transcript

NEXT_STEP: Final = "from the next step on"


@dataclass(frozen=True, slots=True)
class CommandContext:
    surface: Surface
    conversation: Conversation
    transcript: Transcript
    shell: UserShell
    overlays: Overlays
    undoing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """An undo or redo is under way, which may take seconds; the next one waits for it."""

    @property
    def config(self) -> Config:
        """What the next session is opened with."""
        return self.conversation.config

    def tell_change(self, text: str) -> None:
        """Say what holds from now on; during a turn, from when on."""
        if self.conversation.is_working:
            when = f", {NEXT_STEP}"
        else:
            when = ""
        self.transcript.notice(text + when)


Work: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]
"""Runs a command with its argument: what stands behind the name, stripped. What a plain function does before it returns
is done before the next key is read."""


@dataclass(frozen=True, slots=True)
class Command(CommandName):
    run: Work
    while_working: bool = True
    """May run beside a turn."""
    feature: str = ""
    """Listed only if the configuration turns this on."""
