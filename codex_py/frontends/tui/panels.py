"""What takes the composer's place: lists that the user opens, and questions of the agent's, one by one."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from prompt_toolkit.layout import AnyContainer

from codex_py.frontends.tui.panel import Panel

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

T = TypeVar("T")


class Panels:
    """The last one that was opened is shown, and what is typed is its."""

    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal
        self._open: list[AnyContainer] = []
        self._asking = asyncio.Lock()
        self._none_open = asyncio.Event()
        self._none_open.set()

    @property
    def top(self) -> AnyContainer | None:
        """What is drawn in the composer's place."""
        return self._open[-1] if self._open else None

    async def show(self, panel: Panel[T]) -> T:
        """Put a panel in the composer's place until it has its result. Later ones come on top."""
        self._open.append(panel.container)
        self._none_open.clear()
        self._focus()
        try:
            return await panel.result
        finally:
            self._open.remove(panel.container)
            if not self._open:
                self._none_open.set()
            self._focus()

    async def ask(self, panel: Callable[[], Panel[T]], *, about: str) -> T:
        """Show a question of the agent's: one after the other, and not while a list is open.

        Args:
            panel: makes it, when it is its turn.
            about: what a user who is not here is told; empty for what goes on from another.
        """
        terminal, status = self._terminal, self._terminal.status
        if about:
            terminal.notify("approval-requested", about)
        status.questions += 1
        try:
            async with self._asking:
                await self._none_open.wait()
                status.questions -= 1
                try:
                    status.is_asking = True
                    terminal.show_title()
                    return await self.show(panel())
                finally:
                    status.questions += 1
                    status.is_asking = False
                    terminal.show_title()
        finally:
            status.questions -= 1

    def _focus(self) -> None:
        """Have the one on top typed into, or the composer."""
        screen = self._terminal.screen
        screen.app.layout.focus(self.top or self._terminal.composer.buffer)
        screen.changed()
