"""Lists of which one row is selected: the answers to a question, what a picker finds, what is offered below the composer."""

from collections.abc import Callable, Sequence

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings

from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.key_codes import bind


def bind_arrows(
    keys: KeyBindings, move: Callable[[int], object], filter: FilterOrBool = True
) -> None:
    """`move` is given -1 for up and 1 for down."""
    bind(keys, "up c-p", lambda _: move(-1), filter)
    bind(keys, "down c-n", lambda _: move(1), filter)


def moved(selected: int, rows: int, count: int) -> int:
    """The row that is selected after a move: by one row from an end to the other, by more to an end at most."""
    wanted = selected + rows
    return wanted % count if abs(rows) == 1 else max(0, min(wanted, count - 1))


def window(selected: int, count: int, most: int) -> range:
    """The indexes of the rows to show: at most `most`, the selected one among them."""
    first = max(0, min(selected - most // 2, count - most))
    return range(first, min(count, first + most))


def sign_of(is_selected: bool) -> str:
    return "> " if is_selected else "  "


def with_sign(sign: str, lines: Sequence[Fragments], style: str = "") -> list[Fragments]:
    """The lines of a row: the sign stands before the first, and blanks of its width before the others."""
    return [[(style, " " * len(sign) if n else sign), *line] for n, line in enumerate(lines)]
