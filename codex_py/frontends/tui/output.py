"""Output to the terminal: finished lines that wait, frames and their place, and the writing."""

import io
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from typing import Final

from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.characters import alone, ascii_only
from codex_py.frontends.tui.theme import Theme

_MOST_EACH: Final = 2 * 1024 * 1024
"""Characters of the waiting lines that are kept at their start, and as many at their end."""
_DEPTHS = {
    "standard": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "truecolor": ColorDepth.DEPTH_24_BIT,
}
_REFLOWING = (
    # Variables that terminals set which wrap long lines again when they are resized.
    "TMUX",
    "VTE_VERSION",
    "TERM_PROGRAM",
    "LC_TERMINAL",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "ALACRITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "GHOSTTY_RESOURCES_DIR",
    "WEZTERM_PANE",
)
_REFLOWING_TERMS = (
    # The beginnings of such terminals' `TERM`.
    "tmux",
    "alacritty",
    "foot",
    "xterm-kitty",
    "xterm-ghostty",
    "wezterm",
)
_GROUND = re.compile("class:selected|bg:")
"""In a style: the cell has a background, so that a blank is visible."""
_CUTTING = ("XTERM_VERSION", "STY")
"""Variables of terminals that cut off long lines: xterm and GNU screen."""


class Finished:
    """Lines of finished cells that wait for the terminal, in order.

    If they are too many, about `most_each` characters are kept of their beginning, and as many of
    their end.
    """

    def __init__(self, most_each: int = _MOST_EACH) -> None:
        self._most_each = most_each
        self._first: list[str] = []
        self._room = most_each
        self._last: deque[str] = deque()
        self._last_size = 0
        self._left_out = 0
        """The number of lines that were left out."""

    def __bool__(self) -> bool:
        return bool(self._first or self._last)

    def add(self, text: str) -> None:
        """Add lines, with their newlines. They are kept or left out together."""
        if not self._last and len(text) <= self._room:
            self._first.append(text)
            self._room -= len(text)
            return
        self._last.append(text)
        self._last_size += len(text)
        while self._last_size > self._most_each and len(self._last) > 1:
            oldest = self._last.popleft()
            self._last_size -= len(oldest)
            self._left_out += oldest.count("\n")

    def take(self) -> str:
        """Take all waiting lines, with a line that counts those left out. None are left then."""
        more = ""
        if self._left_out:
            more = (
                f"\n[{self._left_out:,} lines are not shown: the terminal took none for too long;"
                " the session has them]\n"
            )
        text = "".join((*self._first, more, *self._last))
        self._first.clear()
        self._last.clear()
        self._room = self._most_each
        self._last_size = 0
        self._left_out = 0
        return text


class TerminalWriter(io.TextIOBase):
    """Writes in its own thread, so that a terminal that stops reading does not block the program.

    Text goes out in order, after the next `flush`. Neither `write` nor `flush` blocks or raises:
    see `backlog` before adding text that can wait. If the terminal is gone, the keyboard reader
    reports it.

    Args:
        unicode: False: the terminal knows only ASCII, and gets similar characters for the rest.
    """

    def __init__(self, fd: int, *, unicode: bool = True) -> None:
        self._fd = fd
        self._encoding = "utf-8" if unicode else "ascii"
        self._shown: Callable[[str], str] = str if unicode else ascii_only
        self._parts: list[str] = []
        self._queue: deque[bytes] = deque()
        self._backlog = 0
        self._has_failed = False
        self._state = threading.Condition()
        threading.Thread(
            target=self._run,
            name="terminal writer",
            daemon=True,
        ).start()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._encoding

    @property
    def backlog(self) -> int:
        """Bytes that the terminal has not taken yet."""
        return self._backlog

    def fileno(self) -> int:
        return self._fd

    def write(self, text: str, /) -> int:
        self._parts.append(text)
        return len(text)

    def flush(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        self._queue_up(self._shown(text).encode(errors="replace"))

    def send(self, data: bytes) -> None:
        """Write bytes unchanged and at once, from a command that has the terminal."""
        self.flush()
        self._queue_up(data)

    def _queue_up(self, data: bytes) -> None:
        if not data:
            return
        with self._state:
            if not self._has_failed:
                self._queue.append(data)
                self._backlog += len(data)
                self._state.notify_all()

    def drain(self, timeout_s: float) -> None:
        """Wait until all is written, at most `timeout_s`."""
        with self._state:
            self._state.wait_for(lambda: not self._backlog, timeout_s)

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._queue)
                data = memoryview(self._queue.popleft())
            while data:
                try:
                    count = os.write(self._fd, data[:4096])
                except BlockingIOError:
                    # Another program made the terminal non-blocking. Rare, and soon over.
                    time.sleep(0.01)
                    continue
                except OSError:
                    with self._state:
                        self._has_failed = True
                        self._queue.clear()
                        self._backlog = 0
                        self._state.notify_all()
                    return
                data = data[count:]
                with self._state:
                    self._backlog -= count
                    self._state.notify_all()


def terminal_output(
    theme: Theme,
    writer: TerminalWriter,
    size: Callable[[], Size],
    before_erase: Callable[[], None],
) -> "FrameOutput":
    """The output for frames. `before_erase` may move the cursor before all below it is erased."""
    if theme.color:
        depth = _DEPTHS[theme.color_system]
    else:
        depth = ColorDepth.DEPTH_1_BIT
    kind = _DumbOutput if theme.dumb else FrameOutput
    output = kind(
        writer,  # pyright: ignore[reportArgumentType]  # all of TextIO that is used
        size,
        enable_cpr=False,
        default_color_depth=depth,
    )
    output.before_erase = before_erase
    return output


class FrameOutput(Vt100_Output):
    """The output to which frames are drawn.

    Attributes:
        holds: True: `flush` does nothing, so that a frame goes out as a whole.
    """

    before_erase: Callable[[], None]
    holds = False

    def flush(self) -> None:
        if not self.holds:
            super().flush()

    def write(self, data: str) -> None:
        super().write(alone(data))

    def erase_down(self) -> None:
        self.before_erase()
        # If this began at the first place of the screen, tmux would put the rows into scrollback.
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")


class _DumbOutput(FrameOutput):
    """The output for a terminal that moves its cursor, but shows other controls as text.

    It gets no modes and no title.
    """

    def write_raw(self, data: str) -> None:
        if not data.startswith(("\x1b[?", "\x1b]")):
            super().write_raw(data)


def reflows(environment: Mapping[str, str]) -> bool:
    """True if the terminal wraps long lines again when resized; xterm and GNU screen cut them off.

    The terminal cannot be asked. If nothing is known of it, the answer is False: that may leave
    rows over, while the other mistake erases rows that were there before.
    """
    if "TMUX" not in environment and any(environment.get(name) for name in _CUTTING):
        return False
    if any(environment.get(name) for name in _REFLOWING):
        return True
    # xterm does not set this variable.
    is_modern = environment.get("COLORTERM", "") in {"truecolor", "24bit"}
    return is_modern or environment.get("TERM", "").startswith(_REFLOWING_TERMS)


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame that was drawn last, as far as needed to find its first row."""

    widths: Sequence[int]
    """Columns of each row."""
    cursor: tuple[int, int]
    """Column and row of the cursor."""
    left: Sequence[int] = ()
    """Columns of each row directly above that an earlier frame left: the screen was too low."""

    def rows_above(self, columns: int) -> int:
        """The number of rows above the cursor's, once the terminal has wrapped them."""
        column, _ = self.cursor
        rows = [_rows(width, columns) for width in self._widths_above]
        return sum(rows) + column // columns

    @property
    def _widths_above(self) -> Sequence[int]:
        """Columns of each row above the cursor's, before the terminal has wrapped them."""
        _, row = self.cursor
        return [*self.left, *self.widths[:row]]

    def out_of_reach(self, columns: int, rows: int) -> Sequence[int]:
        """Columns of each row that has gone off the top of a screen of this size.

        Such a row cannot be erased until the terminal brings it back, as most do when the screen is
        higher again.
        """
        count = self.rows_above(columns) - (rows - 1)
        found = list[int]()
        for width in self._widths_above:
            if count <= 0:
                break
            found.append(min(width, count * columns))
            count -= _rows(width, columns)
        return found


def _rows(width: int, columns: int) -> int:
    """The rows that a line of this width takes on a screen of `columns`."""
    return max(1, ceil(width / columns))


def frame_of(
    screen: Screen, cursor: tuple[int, int], left: Sequence[int], least: Sequence[int]
) -> Frame:
    """The `Frame` of a screen. No row counts as narrower than `least` says."""
    drawn = [_width(screen, y) for y in range(screen.height)]
    pairs = zip_longest(drawn, least, fillvalue=0)
    return Frame([max(pair) for pair in pairs], cursor, left)


def _width(screen: Screen, y: int) -> int:
    """The columns up to the last one that is drawn. A blank with a style counts as drawn."""
    cells = screen.data_buffer[y]
    last = -1
    for x, cell in cells.items():
        is_drawn = cell.char != " " or _GROUND.search(cell.style)
        if is_drawn and x > last:
            last = x
    if last < 0:
        return 0
    return last + max(1, get_cwidth(cells[last].char))
