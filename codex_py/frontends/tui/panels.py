"""What takes the composer's place: lists that the user opens, and questions of the agent's, one by one."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit.layout import AnyContainer

from codex_py.frontends.tui.fitting import both_ends
from codex_py.frontends.tui.panel import Panel, Postponed

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

T = TypeVar("T")

_QUIET_S = 1.0
"""Who has not typed for so long is not in the middle of something."""
_ANNOUNCED_S = 0.5
"""How long a question is announced before it takes the keyboard."""


class Panels:
    """The last one that was opened is shown, and what is typed is its."""

    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal
        self._open: list[Panel[Any]] = []
        self._asking = asyncio.Lock()
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._key_pressed = asyncio.Event()
        self._is_called = False
        self._answered_at = -_QUIET_S

    @property
    def top(self) -> AnyContainer | None:
        """What is drawn in the composer's place."""
        return self._open[-1].container if self._open else None

    @property
    def hint(self) -> str:
        """The keys of the question that is shown; empty if none is."""
        is_asking = self._terminal.status.is_asking
        return self._open[-1].hint if self._open and is_asking else ""

    def key_pressed(self, _processor: object) -> None:
        """A key has had its effect."""
        self._key_pressed.set()

    def call(self) -> None:
        """Show the question that waits, whatever is written."""
        self._is_called = True

    def put_off(self, text: str) -> None:
        """Close the question on top: the user writes this, and goes on in the composer."""
        self._close(self._open[-1])
        self._terminal.typed_at = time.monotonic()
        self._terminal.composer.paste(text)

    async def show(self, panel: Panel[T]) -> T:
        """Put a panel in the composer's place until it has its result. Later ones come on top."""
        self._open.append(panel)
        self._none_open.clear()
        self._focus()
        try:
            return await panel.result
        finally:
            self._close(panel)

    async def ask(self, panel: Callable[[], Panel[T]], *, about: str) -> T:
        """Show a question of the agent's: one after the other, and not while a list is open.

        What is typed meanwhile is never an answer. While something is written the question waits until
        Tab is pressed; else until nothing was typed for a second, and half a second after it was
        announced, unless the user has just answered another.

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
                while True:
                    await self._until_free(about)
                    try:
                        return await self._show_question(panel())
                    except Postponed:
                        continue
        finally:
            status.questions -= 1

    async def _show_question(self, panel: Panel[T]) -> T:
        terminal, status = self._terminal, self._terminal.status
        status.questions -= 1
        status.is_asking = True
        terminal.show_title()
        try:
            result = await self.show(panel)
            self._answered_at = time.monotonic()
            return result
        finally:
            status.questions += 1
            status.is_asking = False
            terminal.show_title()

    async def _until_free(self, about: str) -> None:
        """Until the keyboard may be the question's."""
        terminal, status = self._terminal, self._terminal.status
        announced_at = time.monotonic() if about else -_ANNOUNCED_S
        self._is_called = False
        try:
            while True:
                status.announced = ""
                await self._none_open.wait()
                free_in_s = self._free_in_s(announced_at, goes_on=not about)
                if free_in_s is not None and free_in_s <= 0:
                    return
                status.announced = both_ends(about or "A question", terminal.screen.width - 30)
                terminal.show_title()
                terminal.screen.changed()
                self._key_pressed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(free_in_s):
                        await self._key_pressed.wait()
        finally:
            status.announced = ""

    def _free_in_s(self, announced_at: float, *, goes_on: bool) -> float | None:
        """When a question may have the keyboard; None while something is written.

        Args:
            goes_on: it belongs to the answer of another.
        """
        terminal = self._terminal
        if self._is_called:
            return 0
        has_draft = bool(terminal.composer.buffer.text)
        now, typed_at, answered_at = time.monotonic(), terminal.typed_at, self._answered_at
        has_just_answered = typed_at < answered_at and now - answered_at < _QUIET_S
        if has_just_answered and (goes_on or not has_draft):
            return 0
        if has_draft:
            return None
        return max(announced_at + _ANNOUNCED_S, typed_at + _QUIET_S) - now

    def _close(self, panel: Panel[Any]) -> None:
        if panel in self._open:
            self._open.remove(panel)
        if not self._open:
            self._none_open.set()
        self._focus()

    def _focus(self) -> None:
        """Have the one on top typed into, or the composer."""
        screen = self._terminal.screen
        screen.app.layout.focus(self.top or self._terminal.composer.buffer)
        screen.changed()
