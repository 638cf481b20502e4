"""Finds the first row of the frame after a terminal was made narrower and wrapped its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.utils import get_cwidth

_REFLOWING = (
    *("TMUX", "VTE_VERSION", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "WT_SESSION"),
    *("ALACRITTY_WINDOW_ID", "KONSOLE_VERSION", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE"),
)
_REFLOWING_TERMS = ("tmux", "alacritty", "foot", "xterm-kitty", "xterm-ghostty", "wezterm")
_CUTTING = ("XTERM_VERSION", "STY")


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether the terminal lays long lines out anew, as almost all do; xterm and GNU screen cut them off.

    It cannot be asked. Where nothing is known of it, the answer is no: that costs rows that are left
    over, while the other mistake costs rows of what was there before.
    """
    if "TMUX" not in environment and any(environment.get(name) for name in _CUTTING):
        return False
    if any(environment.get(name) for name in _REFLOWING):
        return True
    # xterm does not set it.
    is_modern = environment.get("COLORTERM", "") in {"truecolor", "24bit"}
    return is_modern or environment.get("TERM", "").startswith(_REFLOWING_TERMS)


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame that was drawn last, as far as needed to find its first row."""

    widths: Sequence[int]
    """Columns of each row down to the cursor's."""
    cursor: int
    """Column."""

    def rows_above(self, columns: int) -> int:
        """Rows between the first one and the cursor's, once the terminal has wrapped them to this width."""
        above = sum(max(1, -(-width // columns)) for width in self.widths[:-1])
        return above + self.cursor // columns


def frame_of(screen: Screen, cursor: tuple[int, int]) -> Frame:
    """
    Args:
        cursor: column and row.
    """
    column, row = cursor
    return Frame([_width(screen, y) for y in range(row + 1)], column)


def _width(screen: Screen, y: int) -> int:
    """Columns up to the last one that is not blank. A blank with a style counts, because it is drawn."""
    cells = screen.data_buffer[y]
    last = max((x for x, cell in cells.items() if cell.char != " "), default=-1)
    return 0 if last < 0 else last + max(1, get_cwidth(cells[last].char))
