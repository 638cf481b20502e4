"""The terminal's main screen: finished lines that are never touched again, and below them what is live."""

import asyncio
import signal
from collections.abc import Callable
from typing import TypeVar

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import AnyContainer, Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle

from codex_py.frontends.tui.theme import Theme, terminal_size
from codex_py.frontends.tui.writer import TerminalWriter

T = TypeVar("T")

_DRAIN_S = 1.0
_FRAME_S = 0.05
"""Between two looks at what the session has done; what is typed is shown at once."""
_MAX_BACKLOG = 32 * 1024
"""Bytes. A terminal that is further behind is given no more until it has caught up."""

# A frame is shown as a whole by terminals that know these, and ignored by the others.
# https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036
_BEGIN_FRAME = "\x1b[?2026h"
_END_FRAME = "\x1b[?2026l"


class Screen:
    """Draws with prompt-toolkit, outside of its full-screen mode.

    The height is never more than the terminal's, and no question is sent to the terminal: what it
    would answer could be taken for something typed.
    """

    def __init__(
        self,
        body: AnyContainer,
        *,
        keys: KeyBindingsBase,
        style: BaseStyle,
        theme: Theme,
        writer: TerminalWriter,
        terminal: Input,
        vi: bool = False,
    ) -> None:
        self._writer = writer
        self._finished: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._output = Vt100_Output(
            writer,  # pyright: ignore[reportArgumentType]  # all of TextIO that is used
            self._size,
            enable_cpr=False,
            default_color_depth=_depth(theme),
        )
        self.app: Application[None] = Application(
            layout=Layout(body),
            key_bindings=keys,
            style=style,
            include_default_pygments_style=False,
            full_screen=False,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            before_render=lambda _: self._shrink(),
            input=terminal,
            output=self._output,
        )
        # How long Esc is waited with, for it may be the beginning of a key's sequence.
        self.app.ttimeoutlen = 0.05
        # The same for keys that follow each other: Alt with a letter is one, `gg` is typed.
        self.app.timeoutlen = 0.5 if vi else 0.03

    @property
    def width(self) -> int:
        return self._size().columns

    @property
    def height(self) -> int:
        return self._size().rows

    async def run(self) -> None:
        """Draw until `exit`.

        Raises:
            EOFError: the terminal is gone.
        """
        try:
            await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._write_finished()
            self._output.flush()

    def exit(self) -> None:
        if self.app.is_running:
            self.app.exit()

    def print(self, text: str) -> None:
        """Add lines for good. They have their newlines, and sequences for colours alone."""
        self._finished.append(text)
        self.changed()

    def changed(self) -> None:
        """Something live looks different now, or soon."""
        if self._timer is None and self.app.is_running:
            self._timer = asyncio.get_running_loop().call_later(_FRAME_S, self._frame)

    def title(self, text: str) -> None:
        """Name the terminal's window; empty gives the name back."""
        if text:
            self._output.set_title(text)
        else:
            self._output.clear_title()
        self._output.flush()

    def send(self, sequence: str) -> None:
        """Give the terminal a control sequence of ours that moves nothing."""
        self._output.write_raw(sequence)
        self._output.flush()

    def clear(self) -> None:
        """Empty the screen and what was scrolled off it."""
        self.app.renderer.clear()
        self._output.write_raw("\x1b[3J")
        self.changed()

    async def pause(self, work: Callable[[], T]) -> T:
        """Give the terminal to another program for as long as `work` takes, in a thread."""
        self._is_paused = True
        # Ctrl-C is the other program's, unless that is one that leaves the terminal's modes alone.
        handler = signal.signal(signal.SIGINT, _ignore)
        try:
            async with in_terminal():
                self._output.flush()
                await asyncio.to_thread(self._writer.drain, _DRAIN_S)
                return await asyncio.to_thread(work)
        finally:
            signal.signal(signal.SIGINT, handler)
            self._is_paused = False
            self.changed()

    def _frame(self) -> None:
        self._timer = None
        if not self.app.is_running:
            return
        if self._is_paused or self._writer.backlog > _MAX_BACKLOG:
            self.changed()
        elif self._finished:
            renderer = self.app.renderer
            self._output.write_raw(_BEGIN_FRAME)
            renderer.erase()
            self._write_finished()
            # What the controls have cached is for the frame before.
            self.app.render_counter += 1
            renderer.render(self.app, self.app.layout)
            self._output.write_raw(_END_FRAME)
            self._output.flush()
        else:
            self.app.invalidate()

    def _write_finished(self) -> None:
        if self._finished:
            self._output.write_raw("".join(self._finished).replace("\n", "\r\n"))
            self._finished.clear()

    def _shrink(self) -> None:
        """Let go of lines that are not needed any more: prompt-toolkit keeps the height it once had."""
        last = self.app.renderer.last_rendered_screen
        if last is None:
            return
        size = self._size()
        needed = self.app.layout.container.preferred_height(size.columns, size.rows).preferred
        if needed < last.height:
            self.app.renderer.erase()

    def _size(self) -> Size:
        columns, rows = terminal_size(self._writer.fileno())
        return Size(rows=rows, columns=columns)


def _ignore(_number: int, _frame: object) -> None:
    """As a handler, which the other program does not inherit."""


def _depth(theme: Theme) -> ColorDepth:
    if not theme.color:
        return ColorDepth.DEPTH_1_BIT
    return {
        "standard": ColorDepth.DEPTH_4_BIT,
        "256": ColorDepth.DEPTH_8_BIT,
        "truecolor": ColorDepth.DEPTH_24_BIT,
    }[theme.color_system]
