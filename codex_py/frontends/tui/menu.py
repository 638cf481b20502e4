"""Lists with one selected row: answers to a question, rows of a picker, suggestions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.fitting import Fragments, both_ends, fit
from codex_py.frontends.tui.key_codes import bind

T = TypeVar("T")

MOST_ROWS = 12
_LEAST_NOTE = 8
"""Columns. A note with fewer is left out."""
_GAP = "  "
"""The blanks before a note."""


# No slots: in Python 3.11, `MenuOption[X](…)` fails on a class with both these and a generic parent.
@dataclass(frozen=True)
class MenuOption(Generic[T]):
    """A row of a list. Its texts hold no terminal controls, and its label no newline."""

    label: str
    value: T
    key: str = ""
    """A single key that chooses the row at once, in a question."""
    note: str | Callable[[], str] = ""
    """A dimmed text after the label. A function is called each time it is drawn."""
    short: str = ""
    """The text in place of a label that would be cut."""
    lasts: bool = False
    """True if the answer applies to more than this question."""

    @property
    def told(self) -> str:
        """The note as it is now."""
        if callable(self.note):
            return self.note()
        return self.note


def bind_arrows(
    keys: KeyBindings,
    move: Callable[[int], object],
    filter: FilterOrBool = True,
    *,
    page: Callable[[], int] | None = None,
) -> None:
    """Bind the arrows, and the keys for pages if there are pages.

    `move` gets the number of rows, negative for up. `page` returns the number of rows of a page.
    """
    bind(keys, "up c-p", lambda _: move(-1), filter)
    bind(keys, "down c-n", lambda _: move(1), filter)
    if page is not None:
        bind(keys, "pageup", lambda _: move(-page()), filter)
        bind(keys, "pagedown", lambda _: move(page()), filter)


def moved(
    selected: int,
    rows: int,
    count: int,
) -> int:
    """The selected row after a move; a step of one wraps around, a longer one stops at the end."""
    wanted = selected + rows
    if abs(rows) == 1:
        return wanted % count
    return max(0, min(wanted, count - 1))


def moved_within(
    selected: int,
    rows: int,
    count: int,
) -> int:
    """The selected row after a move that stops at the first or the last row.

    This is for answers to a question: no key leads from a no to a yes at the other end.
    """
    return max(0, min(selected + rows, count - 1))


def window(
    selected: int,
    count: int,
    most: int,
) -> range:
    """The indexes of the rows to show: at most `most`, the selected one among them."""
    first = max(0, min(selected - most // 2, count - most))
    return range(first, min(count, first + most))


def row_of(
    option: MenuOption[Any], is_selected: bool, columns: int | None = None
) -> Fragments:
    """The label, key and note of an option, cut to `columns` if given."""
    label = option.label
    key = f" ({option.key})" if option.key else ""
    note = option.told
    if columns is not None:
        if get_cwidth(label + key) > columns:
            label = both_ends(option.short or label, columns - len(key))
        left = columns - get_cwidth(label + key) - len(_GAP)
        note = fit(note, left) if left > _LEAST_NOTE else ""
    style = "bold" if is_selected else ""
    if note:
        note = f"{_GAP}{note}"
    return [(style, label + key), ("class:quiet", note)]


def sign_of(is_selected: bool) -> str:
    if is_selected:
        return "> "
    return "  "


def with_sign(sign: str, lines: Sequence[Fragments]) -> list[Fragments]:
    """The lines of a row, with the sign before the first and blanks as wide before the others."""
    signed: list[Fragments] = []
    before = sign
    for line in lines:
        signed.append([("", before), *line])
        before = " " * len(sign)
    return signed
