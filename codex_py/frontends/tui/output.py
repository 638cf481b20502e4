"""Draws on a terminal: what prompt-toolkit sends, where our needs differ from its own."""

from collections.abc import Callable

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.writer import TerminalWriter

_DEPTHS = {
    "standard": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "truecolor": ColorDepth.DEPTH_24_BIT,
}


def terminal_output(
    theme: Theme,
    writer: TerminalWriter,
    size: Callable[[], Size],
    before_erase: Callable[[], None],
) -> Vt100_Output:
    """
    Args:
        before_erase: may move the cursor before what is below it is erased.
    """
    output = (_DumbOutput if theme.dumb else _Output)(
        writer,  # pyright: ignore[reportArgumentType]  # all of TextIO that is used
        size,
        enable_cpr=False,
        default_color_depth=_DEPTHS[theme.color_system] if theme.color else ColorDepth.DEPTH_1_BIT,
    )
    output.before_erase = before_erase
    return output


class _Output(Vt100_Output):
    before_erase: Callable[[], None]

    def erase_down(self) -> None:
        self.before_erase()
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
