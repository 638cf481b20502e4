"""The first frame, drawn by hand before prompt-toolkit is loaded. LIGHT.

`terminal_run.py` first draws the same frame with prompt-toolkit, which takes longer to load than
everything else that a frame needs.
"""

import os
import signal
import termios
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.frontends.tui.theme import PROMPT, Theme
from codex_py.streams.terminal import shown_folder
from codex_py.version import __version__

INDENT: Final = "  "
"""The margin before all text; signs stand in it."""
PLACEHOLDER: Final = "Ask codex-py to do anything"
BEGINNING: Final = "/ commands, @ files, ? keys"
"""The hint of the status line, until something else is to be said."""
_ROWS_ABOVE: Final = 1
"""Empty rows above the prompt."""
_ENOUGH: Final = os.terminal_size((40, 8))
"""The least terminal in which nothing has to be left out or broken."""
_ROOMY: Final = 16
"""Rows. A lower screen has no empty row above the status line."""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end the program."""
_CODES: Final = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "reverse": 7,
    "strike": 9,
}
_COLORS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def status_gap(rows: int) -> int:
    """The number of empty rows above the status line."""
    return int(rows >= _ROOMY)


def greeting(theme: Theme, cwd: Path) -> str:
    """The first line on the screen, with its newline."""
    name = f"codex-py {__version__}"
    if not theme.dumb:
        name = f"\x1b[1m{name}\x1b[0m"
    return f"{name} in {shown_folder(cwd)}\n"


class FirstFrame:
    """The frame that is on the screen until prompt-toolkit draws."""

    def __init__(self) -> None:
        self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._is_shown = False

    def draw(
        self,
        theme: Theme,
        cwd: Path,
        *,
        vi: bool,
    ) -> None:
        """Greet, and show the frame.

        From then on, signals that end the program wait until `take_over`.
        """
        with suppress(OSError, termios.error):
            size = os.get_terminal_size(1)
            # Echoed input would move the frame.
            local_modes = termios.tcgetattr(0)[3]
            if local_modes & termios.ECHO:
                return
            frame = _frame(theme, size, vi=vi)
            if not frame:
                return
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            self._is_shown = True
            codec = "utf-8" if theme.unicode else "ascii"
            whole = f"{greeting(theme, cwd)}{frame}".replace("\n", "\r\n")
            os.write(1, whole.encode(codec, "replace"))

    def take_over(self) -> int:
        """Leave the frame to the caller, who erases it. Signals no longer wait.

        Returns the number of its rows above the cursor; 0 if nothing was drawn, not even the
        greeting.
        """
        rows = 0
        if self._is_shown:
            rows = _ROWS_ABOVE
        self._is_shown = False
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
        return rows

    def erase(self) -> None:
        """Erase all but the greeting, unless another frame has taken over."""
        rows = self.take_over()
        if rows:
            os.write(1, b"\r\x1b[%dA\x1b[J" % rows)


def _frame(
    theme: Theme,
    size: os.terminal_size,
    *,
    vi: bool,
) -> str:
    """The frame from its first place on, with the cursor after the prompt's sign.

    Empty if only prompt-toolkit can draw the frame.
    """
    columns, rows = size
    is_small = columns < _ENOUGH.columns or rows < _ENOUGH.lines
    if theme.dumb or is_small:
        return ""
    quiet = _escape(theme, "quiet")
    accent = _escape(theme, "accent")
    if not quiet or not accent:
        return ""
    mode = ""
    if vi:
        mode = "INSERT "
    sign = ">"
    if theme.unicode:
        sign = PROMPT
    below = "\n" * (1 + status_gap(rows))
    room = columns - len(mode) - 2 * len(INDENT)
    return (
        "\n" * _ROWS_ABOVE
        + f"\x1b[0;1m{sign} {quiet}{PLACEHOLDER}\x1b[0m{below}"
        + f"{accent}{mode}\x1b[0m{INDENT}{quiet}{BEGINNING.rjust(room)}\x1b[0m"
        + f"\r\x1b[{len(below)}A\x1b[{len(INDENT)}C"
    )


def _escape(theme: Theme, name: str) -> str:
    """The control sequence of a style; empty if prompt-toolkit has to choose fewer colours."""
    codes = ["0"]
    ground = 0
    for word in theme.style(name).split():
        color = word.removeprefix("bright_")
        if word == "on":
            ground = 10
        elif word in _CODES:
            codes.append(str(_CODES[word]))
        elif color in _COLORS:
            first = 90 if word.startswith("bright_") else 30
            codes.append(str(first + ground + _COLORS.index(color)))
        elif theme.color_system == "truecolor":
            red, green, blue = bytes.fromhex(word[1:])
            codes.append(f"{38 + ground};2;{red};{green};{blue}")
        else:
            return ""
    return f"\x1b[{';'.join(codes)}m"
