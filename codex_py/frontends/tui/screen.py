"""The terminal's main screen: finished lines that are never touched again, and below them what is live."""

import asyncio
import os
import signal
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import AnyContainer, Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle

from codex_py.frontends.tui.finished import Finished
from codex_py.frontends.tui.key_codes import KITTY_OFF, KITTY_ON
from codex_py.frontends.tui.keyboard import read_whole_sequences
from codex_py.frontends.tui.reflow import Frame, frame_of
from codex_py.frontends.tui.theme import Theme, terminal_size
from codex_py.frontends.tui.writer import TerminalWriter

T = TypeVar("T")

_DRAIN_S = 1.0
_FRAME_S = 0.05
"""Between two looks at what the session has done; what is typed is shown at once."""
_MAX_BACKLOG = 32 * 1024
"""Bytes. A terminal that is further behind is given no more until it has caught up."""

_ESCAPE_S = 0.05
"""How long Esc is waited with, for it may be the beginning of a key's sequence."""
_REPORTS_S = 0.03
"""How long a report that the terminal sent before it was told to stop may be under way."""

# The name of the window put by, reports of the focus and of keys, and the other way round: xterm,
# "Control Sequences". A terminal ignores what it does not know.
_ENTER = f"\x1b[22;0t\x1b[?1004h{KITTY_ON}"
_LEAVE = f"{KITTY_OFF}\x1b[?2026l\x1b[?1004l\x1b[23;0t"

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
        reflows: bool,
        vi: bool = False,
    ) -> None:
        self.is_focused = True
        """As the terminal has it; one that does not say counts as focused."""
        self._writer = writer
        self._keyboard = terminal
        read_whole_sequences(terminal, self._focus_changed)
        self._dumb = theme.dumb
        self._reflows = reflows
        self._drawn: Frame | None = None
        self._finished = Finished()
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._output = (_DumbOutput if theme.dumb else _Output)(
            writer,  # pyright: ignore[reportArgumentType]  # all of TextIO that is used
            self._size,
            enable_cpr=False,
            default_color_depth=_depth(theme),
        )
        self.app: Application[None] = _Application(
            self._find_first_row,
            layout=Layout(body),
            key_bindings=keys,
            style=style,
            include_default_pygments_style=False,
            full_screen=False,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            before_render=self._before_frame,
            after_render=self._after_frame,
            # A signal tells of a new size; looking for it would be work while there is none.
            terminal_size_polling_interval=None,
            input=terminal,
            output=self._output,
        )
        self.app.ttimeoutlen = _ESCAPE_S

    @property
    def width(self) -> int:
        return self._size().columns

    @property
    def height(self) -> int:
        return self._size().rows

    async def run(self) -> None:
        """Draw until `exit`, and leave the terminal as it was found.

        Raises:
            EOFError: the terminal is gone.
            Exception: what `fail` was given.
        """
        self._write_finished()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._asked_to_stop)
        # Around all that the terminal is asked to report, or it would print the reports.
        with self._keyboard.raw_mode():
            self._send_modes(_ENTER)
            try:
                await self.app.run_async(handle_sigint=False, set_exception_handler=False)
            finally:
                asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
                if self._timer is not None:
                    self._timer.cancel()
                self._write_finished()
                await self._end_reports()
                self._drop_reports()

    def fail(self, error: BaseException) -> None:
        """Have `run` raise this, when the terminal is as it was."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit(exception=error)

    def exit(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def print(self, text: str) -> None:
        """Add lines for good. They have their newlines, and sequences for colours alone."""
        self._finished.add(text)
        self.changed()

    def changed(self) -> None:
        """Something live looks different now, or soon."""
        if self._timer is None and self.app.is_running:
            self._timer = asyncio.get_running_loop().call_later(_FRAME_S, self._frame)

    def title(self, text: str) -> None:
        """Name the terminal's window, until the end; nothing in the text steers the terminal."""
        self._output.set_title(text)
        self._output.flush()

    def send(self, sequence: str) -> None:
        """Give the terminal a control sequence of ours that moves nothing."""
        self._send_modes(sequence)

    def clear(self) -> None:
        """Empty the screen and what was scrolled off it."""
        self.app.renderer.clear()
        self._output.write_raw("\x1b[3J")
        self.changed()

    def scroll_away(self) -> None:
        """Draw at the top of an empty screen. What was on it is above, where it can be scrolled to."""
        self.app.renderer.erase()
        self._output.write_raw("\r\n" * self.height)
        self._output.cursor_goto(0, 0)
        self.changed()
        self.app.invalidate()

    async def pause(self, work: Callable[[], T]) -> T:
        """Give the terminal to another program for as long as `work` takes, in a thread."""
        async with self._handed_over():
            # Ctrl-C is the other program's, unless that is one that leaves the terminal's modes alone.
            handler = signal.signal(signal.SIGINT, _ignore)
            try:
                return await asyncio.to_thread(work)
            finally:
                signal.signal(signal.SIGINT, handler)

    async def suspend(self) -> None:
        """Stop, as Ctrl-Z does elsewhere, and draw again when the shell goes on with us.

        What the session runs is in process groups of its own, and goes on.
        """
        loop = asyncio.get_running_loop()
        async with self._handed_over():
            loop.remove_signal_handler(signal.SIGTSTP)
            # From this thread: nothing is done in it until the process goes on.
            os.kill(0, signal.SIGTSTP)
            loop.add_signal_handler(signal.SIGTSTP, self._asked_to_stop)

    @asynccontextmanager
    async def _handed_over(self) -> AsyncGenerator[None]:
        """Leave the terminal as it was found, for as long as the context lasts."""
        self._is_paused = True
        self._drawn = None
        try:
            await self._end_reports()
            async with in_terminal():
                await asyncio.to_thread(self._writer.drain, _DRAIN_S)
                yield
        finally:
            self._send_modes(_ENTER)
            self._is_paused = False
            self.changed()

    async def _end_reports(self) -> None:
        """Have the terminal report nothing more, and wait for what it may have sent before.

        Before the terminal leaves its raw mode, for it would print them.
        """
        self._send_modes(_LEAVE)
        await asyncio.to_thread(self._writer.drain, _DRAIN_S)
        await asyncio.sleep(_REPORTS_S)

    def _drop_reports(self) -> None:
        """Read what was sent since the program has ended, so that the shell does not."""
        with suppress(termios.error):
            termios.tcflush(self._keyboard.fileno(), termios.TCIFLUSH)

    def _asked_to_stop(self) -> None:
        if self.app.is_running and not self._is_paused:
            self.app.create_background_task(self.suspend())

    def _send_modes(self, sequence: str) -> None:
        self._write_control(sequence)
        self._output.flush()

    def _write_control(self, sequence: str) -> None:
        """A sequence that moves nothing, if the terminal knows any."""
        if not self._dumb:
            self._output.write_raw(sequence)

    def _frame(self) -> None:
        self._timer = None
        if self._is_behind:
            self.changed()
        else:
            self.app.invalidate()

    @property
    def _is_behind(self) -> bool:
        return self._is_paused or self._writer.backlog > _MAX_BACKLOG

    def _before_frame(self, _app: object) -> None:
        """Make room for lines that have been added: they come before what is drawn next."""
        self._write_control(_BEGIN_FRAME)
        if self._finished and not self._is_behind:
            self.app.renderer.erase()
            self._write_finished()
        else:
            self._shrink()

    def _after_frame(self, _app: object) -> None:
        self._write_control(_END_FRAME)
        self._output.flush()
        screen = self.app.renderer.last_rendered_screen
        if screen is not None:
            cursor = screen.get_cursor_position(self.app.layout.current_window)
            self._drawn = frame_of(screen, (cursor.x, cursor.y))

    def _write_finished(self) -> None:
        if self._finished:
            self._output.write_raw(self._finished.take().replace("\n", "\r\n"))

    def _shrink(self) -> None:
        """Let go of lines that are not needed any more: prompt-toolkit keeps the height it once had."""
        last = self.app.renderer.last_rendered_screen
        if last is None:
            return
        size = self._size()
        needed = self.app.layout.container.preferred_height(size.columns, size.rows).preferred
        if needed < last.height:
            self.app.renderer.erase()

    def _find_first_row(self) -> None:
        """The terminal has a new size: go up the rows that prompt-toolkit does not know of.

        It goes up as many as it has drawn; where long ones were laid out anew, there are more.
        """
        drawn, self._drawn = self._drawn, None
        if drawn is None or not self._reflows:
            return
        more = drawn.rows_above(self.width) - (len(drawn.widths) - 1)
        if more > 0:
            self._output.write_raw("\r")
            self._output.cursor_up(more)

    def _focus_changed(self, is_focused: bool) -> None:
        self.is_focused = is_focused

    def _size(self) -> Size:
        columns, rows = terminal_size(self._writer.fileno())
        return Size(rows=rows, columns=columns)


class _Application(Application[None]):
    """Lets someone see to the cursor before all is drawn anew in another size."""

    def __init__(self, before_resize: Callable[[], None], **options: Any) -> None:
        self._before_resize = before_resize
        super().__init__(**options)

    def _on_resize(self) -> None:
        self._before_resize()
        super()._on_resize()


class _Output(Vt100_Output):
    def erase_down(self) -> None:
        # From the first place of the screen, tmux would put what is erased into the scrollback.
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")


class _DumbOutput(_Output):
    """For a terminal that moves its cursor, and shows whatever else it is sent."""

    def enable_bracketed_paste(self) -> None: ...
    def disable_bracketed_paste(self) -> None: ...
    def set_title(self, title: str) -> None: ...
    def clear_title(self) -> None: ...
    def enable_autowrap(self) -> None: ...
    def disable_autowrap(self) -> None: ...
    def reset_cursor_key_mode(self) -> None: ...
    def hide_cursor(self) -> None: ...
    def show_cursor(self) -> None: ...


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
