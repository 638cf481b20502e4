"""Shows panels in the composer's place: the user's lists, and the agent's questions one by one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from prompt_toolkit.layout import AnyContainer

from codex_py.frontends.tui.composer import Composer
from codex_py.frontends.tui.fitting import fit
from codex_py.frontends.tui.panel import Panel, Postponed
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.status import Notify, Status

T = TypeVar("T")

_QUIET_S = 1.0
"""Seconds without typing after which a user counts as not busy."""
_ANNOUNCED_S = 0.5
"""Seconds for which a question is announced before it takes the keyboard."""
_ANOTHER = "Another question: keys count in a moment"


class Panels:
    """A stack of panels: the one opened last is shown and has the keyboard."""

    named: Callable[[str], str]
    """Replaces the actions in a text by their keys: `Keymap.named`."""

    def __init__(
        self, screen: Screen, composer: Composer, status: Status, notify: Notify
    ) -> None:
        self._screen = screen
        self._composer = composer
        self._status = status
        self._notify = notify
        self._open: list[Panel[Any]] = []
        self._asking = asyncio.Lock()
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._key_pressed = asyncio.Event()
        self._is_called = False
        self._typed_at = 0.0
        """The time of the last key, by `time.monotonic()`."""
        self._answered_at = -_QUIET_S
        self._closed_at = -_QUIET_S
        """The time when the last panel was closed, by `time.monotonic()`."""
        self._closing_key = ""
        """The last key of that panel."""

    @property
    def top(self) -> AnyContainer | None:
        """The container of the shown panel; None if no panel is open."""
        if self._open:
            return self._open[-1].container
        return None

    @property
    def covers(self) -> bool:
        """True while the shown panel takes the whole screen."""
        return bool(self._open) and self._open[-1].covers

    @property
    def contexts(self) -> Sequence[str]:
        """The contexts of `tui.keymap` in which the shown panel reads keys."""
        if self._open:
            return self._open[-1].contexts
        return ()

    @property
    def hint(self) -> str:
        """The keys of the shown panel; empty if no panel is open."""
        if not self._open:
            return ""
        panel = self._open[-1]
        if panel.hold.is_on:
            return _ANOTHER
        return self.named(panel.hint)

    def before_key(self, _processor: object) -> None:
        self._typed_at = time.monotonic()

    def after_key(self, _processor: object) -> None:
        self._key_pressed.set()

    def call(self) -> None:
        """Show the waiting question, even if something is written."""
        self._is_called = True

    def close(self) -> None:
        """Cancel all waits for the result of a panel: nobody can give it any more."""
        for panel in self._open:
            panel.result.cancel()

    async def show(self, panel: Panel[T]) -> T:
        """Show a panel until it has its result. Later panels come on top.

        If it comes while something is written, no letter answers. If it is a question that
        replaces another panel, no key answers until the user can have read it.

        Raises:
            Postponed: the user goes on writing. The command that shows the panel ends.
        """
        if panel.is_question and self._has_just_closed:
            panel.hold.begin(self._closing_key)
        return await self._shown(panel)

    @property
    def _has_just_closed(self) -> bool:
        """True if a panel was closed a moment ago, and no key was pressed since."""
        is_recent = time.monotonic() - self._closed_at < _QUIET_S
        return is_recent and self._typed_at <= self._closed_at

    async def _shown(self, panel: Panel[T]) -> T:
        if not panel.is_asked and self._composer.buffer.text:
            panel.refuse_letters()
        panel.changed = self._screen.changed
        panel.named = self.named
        panel.postpone = self._postpone
        self._open.append(panel)
        self._none_open.clear()
        self._focus()
        is_postponed = False
        try:
            return await panel.result
        except Postponed:
            # The same panel comes again later; it replaces no other one.
            is_postponed = True
            raise
        finally:
            if not is_postponed:
                self._closed_at = time.monotonic()
                self._closing_key = panel.last_key
            self._close(panel)

    def drawn(self) -> None:
        """Let the user read the shown panel for a moment, before it takes keys."""
        if not self._open:
            return
        hold = self._open[-1].hold
        if not hold.is_on:
            return
        if not hold.is_drawn:
            hold.start_reading()
        # Show then that keys count.
        loop = asyncio.get_running_loop()
        loop.call_later(hold.left_s, self._screen.changed)

    async def ask(
        self, panel: Callable[[], Panel[T]], *, about: str, agent: str | None = None
    ) -> T:
        """Show a question of the agent, one at a time, and not while a list is open.

        Text typed before it is shown never answers. So the question waits: while something is
        written, until Tab is pressed; else until it has been announced for half a second, and
        nothing was typed for a second. A user who has just answered another question gets it at
        once, but no key answers it until the user can have read it.

        Args:
            panel: makes the panel, each time it is shown.
            about: the notification for a user who looks elsewhere; empty if it continues a
                question.
            agent: the name of the subagent that asks; None for the session's own agent.
        """
        if about:
            self._notify("approval-requested", about)
        if not self._status.asking:
            self._status.asked = 0
        self._status.questions += 1
        self._status.asking.append(agent)
        try:
            async with self._asking:
                self._status.asked += 1
                while True:
                    await self._until_free(about)
                    with suppress(Postponed):
                        return await self._show_question(panel())
        finally:
            self._status.questions -= 1
            self._status.asking.remove(agent)

    async def _show_question(self, panel: Panel[T]) -> T:
        panel.is_asked = True
        self._status.questions -= 1
        self._status.is_asking = True
        try:
            if self._is_called:
                result = await self._shown(panel)
            else:
                result = await self.show(panel)
            self._answered_at = time.monotonic()
            return result
        finally:
            self._status.questions += 1
            self._status.is_asking = False

    def _postpone(self, text: str) -> None:
        """Close the panel on top; the user goes on writing, with this text, in the composer."""
        self._close(self._open[-1])
        self._composer.paste(text)

    async def _until_free(self, about: str) -> None:
        """Announce a question, and wait until it may have the keyboard."""
        if about:
            announced_at = time.monotonic()
        else:
            announced_at = -_ANNOUNCED_S
        self._is_called = False
        try:
            while True:
                self._status.announced = ""
                await self._none_open.wait()
                free_in_s = self._free_in_s(announced_at, continues=not about)
                if free_in_s is not None and free_in_s <= 0:
                    return
                self._status.announced = fit(about or "A question", self._screen.width)
                self._screen.changed()
                self._key_pressed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(free_in_s):
                        await self._key_pressed.wait()
        finally:
            self._status.announced = ""

    def _free_in_s(self, announced_at: float, *, continues: bool) -> float | None:
        """The seconds until a question may have the keyboard; None while something is written."""
        if self._is_called:
            return 0
        has_draft = bool(self._composer.buffer.text)
        now = time.monotonic()
        answered_at = self._answered_at
        has_just_answered = (
            self._typed_at < answered_at and now - answered_at < _QUIET_S
        )
        if has_just_answered and (continues or not has_draft):
            return 0
        if has_draft:
            return None
        return max(announced_at + _ANNOUNCED_S, self._typed_at + _QUIET_S) - now

    def _close(self, panel: Panel[Any]) -> None:
        if panel in self._open:
            self._open.remove(panel)
        if not self._open:
            self._none_open.set()
        self._focus()

    def _focus(self) -> None:
        self._screen.app.layout.focus(self.top or self._composer.buffer)
        self._screen.changed()
