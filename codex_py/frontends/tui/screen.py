"""The terminal's main screen: finished lines that never change, and a live frame below them."""

import asyncio
import os
import signal
import termios
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import AnyContainer, Layout
from prompt_toolkit.styles import Style

from codex_py.frontends.tui.bursts import BURST_S
from codex_py.frontends.tui.key_codes import KITTY_OFF, KITTY_ON
from codex_py.frontends.tui.keyboard import (
    ESCAPE_S,
    parser_of,
    raw_mode,
    read_whole_sequences,
)
from codex_py.frontends.tui.output import (
    Finished,
    Frame,
    TerminalWriter,
    frame_of,
    reflows,
    terminal_output,
)
from codex_py.frontends.tui.theme import Theme, background_of

T = TypeVar("T")

_DRAIN_S = 1.0
"""Seconds in which the terminal takes what was written, before another program has it."""
_RETURN_S = 2.0
"""Seconds in which a killed command gives the terminal back."""
_FRAME_S = 0.066
"""Seconds between two frames for the session's changes; typed text is shown at once."""
_MAX_BACKLOG = 32 * 1024
"""Bytes. A terminal with a longer backlog gets its next frame when it has caught up."""

_REPORTS_S = 0.03
"""Seconds in which the terminal's last reports arrive, after it was told to stop."""

# See xterm, "Control Sequences". A terminal ignores sequences that it does not know.
_ENTER = f"\x1b[22;0t\x1b[?1004h{KITTY_ON}"
"""Saves the window's title, and switches on reports of focus and keys."""
_ASK_BACKGROUND = "\x1b]11;?\x1b\\"
_LEAVE = f"{KITTY_OFF}\x1b[?2026l\x1b[?1004l\x1b[23;0t"
"""Undoes `_ENTER`, and ends a frame that was cut off."""

# A frame is shown as a whole by terminals that know these, and ignored by the others.
# https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036
_BEGIN_FRAME = "\x1b[?2026h"
_END_FRAME = "\x1b[?2026l"


class _Application(Application[None]):
    """An application that can leave resizes to another program."""

    resized: Callable[[], object] | None = None
    """Called in place of drawing when the terminal has another size; None: draw."""

    def _on_resize(self) -> None:
        if self.resized is None:
            super()._on_resize()
        else:
            self.resized()


class Screen:
    """Draws with prompt-toolkit, outside of its full-screen mode.

    The frame is never higher than the terminal. The terminal is only asked for its background, and
    nothing waits for the answer.

    Attributes:
        theme: the look of text from now on; printed text keeps its look.
        theme_changed: called with each theme but the first.
        drawn: called after each frame.
        is_focused: True if the terminal has the focus, or does not report it.
        rows_above: the rows above the cursor in the hand-drawn frame, which the first one replaces.
    """

    def __init__(
        self,
        theme: Theme,
        writer: TerminalWriter,
        keyboard: Input,
        environment: Mapping[str, str],
        *,
        vi: bool = False,
    ) -> None:
        self.theme = theme
        self.is_focused = True
        self.rows_above = 0
        self._writer = writer
        self._keyboard = keyboard
        self.theme_changed: Callable[[Theme], None] = lambda _: None
        self.drawn: Callable[[], None] = lambda: None
        read_whole_sequences(keyboard, self._focus_changed, self._found_background)
        parser_of(keyboard).in_burst = self._in_burst
        self._burst_timer: asyncio.TimerHandle | None = None
        self._reflows = reflows(environment)
        # Blanks that were erased at the end of a row are laid out with it.
        self._keeps_blanks = "TMUX" in environment
        self._title: Callable[[], str] = str
        self._shown_title = ""
        self._drawn: Frame | None = None
        self._left: Sequence[int] = ()
        """The rows that earlier frames left: see `Frame.left`."""
        self._finished = Finished()
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._is_covered: Callable[[], bool] = bool
        self._output = terminal_output(theme, writer, self.size, self._find_first_row)
        self._end_borrower: Callable[[], object] = lambda: None
        self._returned = asyncio.Event()
        """Set while no command has the terminal."""
        self._returned.set()
        self.app = _Application(
            include_default_pygments_style=False,
            full_screen=False,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            before_render=self._before_frame,
            after_render=self._after_frame,
            # A signal reports a new size; polling would keep the idle program busy.
            terminal_size_polling_interval=None,
            # A key does not wait for a frame, not even for the answer that streams in.
            max_render_postpone_time=None,
            input=keyboard,
            output=self._output,
        )
        self.app.ttimeoutlen = ESCAPE_S
        self.use_theme(theme)

    @property
    def width(self) -> int:
        return self.size().columns

    @property
    def height(self) -> int:
        return self.size().rows

    def show(
        self,
        body: AnyContainer,
        keys: KeyBindingsBase,
        title: Callable[[], str],
        is_covered: Callable[[], bool],
    ) -> None:
        """Set the content, from the first frame on.

        Each frame asks `title` for the name of the window, and `is_covered` whether the body takes
        the whole screen. The former content comes back later, and finished lines wait until then.
        """
        self.app.layout = Layout(body)
        self.app.key_bindings = keys
        self._title = title
        self._is_covered = is_covered

    def use_theme(self, theme: Theme) -> None:
        """Change the look of all text that is drawn from now on."""
        self.theme = theme
        self.app.style = Style.from_dict(theme.fragment_styles())
        self.theme_changed(theme)
        if self.app.is_running and theme.asks_for_background:
            self.send(_ASK_BACKGROUND)
        self.changed()

    async def run(self) -> None:
        """Draw until `exit`, and leave the terminal as it was found.

        Raises:
            EOFError: the terminal is gone.
        """
        self._write_finished()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._asked_to_stop)
        # The terminal is asked for reports only in raw mode: otherwise it would print them.
        with raw_mode(self._keyboard):
            if self.theme.asks_for_background:
                self.send(_ENTER + _ASK_BACKGROUND)
            else:
                self.send(_ENTER)
            try:
                await self.app.run_async(
                    handle_sigint=False, set_exception_handler=False
                )
            finally:
                await self._leave()

    async def _leave(self) -> None:
        """Print what waits, and leave the terminal as it was found."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_RETURN_S):
                await self._returned.wait()
        self._output.holds = False
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
        if self._timer is not None:
            self._timer.cancel()
        self._write_finished()
        await self._end_reports()
        # Discard input since the end of the program, so that the shell does not read it.
        with suppress(termios.error):
            termios.tcflush(self._keyboard.fileno(), termios.TCIFLUSH)

    def exit(self) -> None:
        """Make `run` return; a command that has the terminal is told to end."""
        self._end_borrower()
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def print(self, text: str) -> None:
        """Add lines that never change. They end in newlines, and hold no controls but colours."""
        self._finished.add(text)
        self.changed()

    def changed(self) -> None:
        """Draw a frame soon, because something live has changed."""
        if self._timer is None and self.app.is_running:
            self._timer = asyncio.get_running_loop().call_later(_FRAME_S, self._frame)

    def send(self, sequence: str) -> None:
        """Send a control sequence of our own that moves nothing."""
        self._write_control(sequence)
        self._output.flush()

    def clear(self) -> None:
        """Empty the screen and the scrollback."""
        self.app.renderer.clear()
        self._left = ()
        self._output.write_raw("\x1b[3J")
        self.changed()

    def scroll_away(self) -> None:
        """Draw at the top of an empty screen. The former content is above, in the scrollback."""
        self.app.renderer.erase()
        self._left = ()
        self._output.write_raw("\r\n" * self.height)
        self._output.cursor_goto(0, 0)
        self.changed()
        self.app.invalidate()

    async def pause(self, work: Callable[[], T]) -> T:
        """Give the terminal to another program for as long as `work` takes, in a thread.

        Ctrl-Z stops both programs, as is usual, and the shell continues both.
        """
        async with self._handed_over(), self._stopped_by_signal():
            # Ctrl-C is the other program's, unless that program leaves the terminal's modes alone.
            handler = signal.signal(signal.SIGINT, _ignore)
            try:
                return await asyncio.to_thread(work)
            finally:
                signal.signal(signal.SIGINT, handler)

    @asynccontextmanager
    async def lent(
        self, resized: Callable[[], object], end: Callable[[], object]
    ) -> AsyncGenerator[TerminalWriter]:
        """Give the terminal to a command, whose output goes to the returned writer.

        Args:
            resized: called when the terminal has another size.
            end: called when the program has to end meanwhile; the context should be left then.
        """
        self._returned.clear()
        self._end_borrower = end
        try:
            async with self._handed_over():
                self.app.resized = resized
                yield self._writer
        finally:
            self._end_borrower = lambda: None
            self._returned.set()

    async def suspend(self) -> None:
        """Stop the program on Ctrl-Z, as is usual, and draw again when the shell continues it.

        The commands of the session are in process groups of their own, and keep running.
        """
        async with self._handed_over(), self._stopped_by_signal():
            # This blocks the thread until the process is continued.
            os.kill(0, signal.SIGTSTP)

    @asynccontextmanager
    async def _stopped_by_signal(self) -> AsyncGenerator[None]:
        """Let SIGTSTP stop the process while the context lasts: the terminal is as it was found."""
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        try:
            yield
        finally:
            loop.add_signal_handler(signal.SIGTSTP, self._asked_to_stop)

    @asynccontextmanager
    async def _handed_over(self) -> AsyncGenerator[None]:
        """Restore the terminal as it was found while the context lasts."""
        self._is_paused = True
        self._drawn = None
        self.app.resized = lambda: None
        try:
            await self._end_reports()
            async with in_terminal():
                self._left = ()
                await asyncio.to_thread(self._writer.drain, _DRAIN_S)
                yield
        finally:
            self.app.resized = None
            self.send(_ENTER)
            self._is_paused = False
            self.changed()

    async def _end_reports(self) -> None:
        """Stop the terminal's reports before it leaves its raw mode and would print them."""
        self.send(_LEAVE)
        await asyncio.to_thread(self._writer.drain, _DRAIN_S)
        await asyncio.sleep(_REPORTS_S)

    def _asked_to_stop(self) -> None:
        if self.app.is_running and not self._is_paused:
            self.app.create_background_task(self.suspend())

    def _write_control(self, sequence: str) -> None:
        """Write a sequence that moves nothing, if the terminal knows sequences."""
        if not self.theme.dumb:
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
        """Print the lines that were added: they come before the next frame."""
        title = self._title()
        if title != self._shown_title:
            self._shown_title = title
            self._output.set_title(title)
        self._output.holds = True
        self._write_control(_BEGIN_FRAME)
        renderer = self.app.renderer
        is_covered = self._is_covered()
        if is_covered is not renderer.full_screen:
            renderer.erase()
            renderer.full_screen = is_covered
        if is_covered:
            return
        if self._finished and not self._is_behind:
            renderer.erase()
            self._write_finished()
        elif self._is_too_high():
            # prompt-toolkit never makes a frame lower.
            renderer.erase()

    def _is_too_high(self) -> bool:
        """True if the frame on the screen is higher than the next one."""
        drawn = self.app.renderer.last_rendered_screen
        if drawn is None:
            return False
        size = self.size()
        container = self.app.layout.container
        needed = container.preferred_height(size.columns, size.rows)
        return needed.preferred < drawn.height

    def _after_frame(self, _app: object) -> None:
        self._write_control(_END_FRAME)
        self._output.holds = False
        self._output.flush()
        self.drawn()
        screen = self.app.renderer.last_rendered_screen
        if screen is None or self._is_covered():
            return
        cursor = screen.get_cursor_position(self.app.layout.current_window)
        least: Sequence[int] = ()
        if self._drawn and self._keeps_blanks:
            least = self._drawn.widths
        self._drawn = frame_of(screen, (cursor.x, cursor.y), self._left, least)

    def _write_finished(self) -> None:
        if self._finished:
            self._left = ()
            self._output.write_raw(self._finished.take().replace("\n", "\r\n"))

    def _find_first_row(self) -> None:
        """Go up the rows that prompt-toolkit does not know of, before it erases the frame.

        It has gone up as many rows as it drew; if a new width has wrapped long rows again, there
        are more.
        """
        above = self.rows_above
        self.rows_above = 0
        if above:
            self._output.write_raw("\r")
            self._output.cursor_up(above)
        drawn = self._drawn
        self._drawn = None
        if drawn is not None and self._reflows:
            more = drawn.rows_above(self.width) - drawn.cursor[1]
            self._left = drawn.out_of_reach(self.width, self.height)
            if more > 0:
                self._output.write_raw("\r")
                self._output.cursor_up(more)

    def _in_burst(self) -> None:
        """Start waiting for the end of a burst.

        A program that is busy meanwhile first reads the input that came earlier.
        """
        if self._burst_timer is not None:
            self._burst_timer.cancel()
        loop = asyncio.get_running_loop()
        self._burst_timer = loop.call_later(BURST_S, self._end_burst)

    def _end_burst(self) -> None:
        if self.app.is_running and not self.app.is_done:
            parser_of(self._keyboard).end_burst()
            self.app.key_processor.feed_multiple(self._keyboard.read_keys())
            self.app.key_processor.process_keys()

    def _focus_changed(self, is_focused: bool) -> None:
        self.is_focused = is_focused

    def _found_background(self, report: str) -> None:
        background = background_of(report)
        if background is not None and self.theme.asks_for_background:
            self.use_theme(replace(self.theme, background=background))

    def size(self) -> Size:
        """The size of the terminal; a usual one if the terminal does not tell it."""
        try:
            columns, rows = os.get_terminal_size(self._writer.fileno())
        except OSError:
            columns = 0
            rows = 0
        return Size(rows=rows or 24, columns=columns or 80)


def _ignore(_number: int, _frame: object) -> None:
    """Ignore a signal. Unlike `SIG_IGN`, a handler is not inherited by the other program."""
