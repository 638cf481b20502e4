"""Lists of which one row is selected: the answers to a question, what a picker finds, what is offered below the
composer."""

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


# No slots: in Python 3.11, `Option[X](…)` fails on a class with both these and a parent that is generic.
@dataclass(frozen=True)
class Option(Generic[T]):
    """A row. Its texts are for a terminal: nothing in them steers it, and the label has no newline."""

    label: str
    value: T
    key: str = ""
    """A single key that takes it at once, in a question."""
    note: str | Callable[[], str] = ""
    """Stands behind the label, dimmed. A function is asked each time it is drawn."""
    short: str = ""
    """Stands for a label that would be cut."""
    lasts: bool = False
    """It answers more than this question."""

    @property
    def told(self) -> str:
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
    """`move` is given the number of rows, negative for up. `page` says how many a page has, where there are pages."""
    bind(keys, "up c-p", lambda _: move(-1), filter)
    bind(keys, "down c-n", lambda _: move(1), filter)
    if page is not None:
        bind(keys, "pageup", lambda _: move(-page()), filter)
        bind(keys, "pagedown", lambda _: move(page()), filter)


def moved(selected: int, rows: int, count: int) -> int:
    """The row that is selected after a move: by one row from an end to the other, by more to an end at most."""
    wanted = selected + rows
    if abs(rows) == 1:
        return wanted % count
    return max(0, min(wanted, count - 1))


def moved_within(selected: int, rows: int, count: int) -> int:
    """The row that is selected after a move, which ends at the first or the last one.

    Of answers to a question: no key leads from a no to a yes at the other end.
    """
    return max(0, min(selected + rows, count - 1))


def window(selected: int, count: int, most: int) -> range:
    """The indexes of the rows to show: at most `most`, the selected one among them."""
    first = max(0, min(selected - most // 2, count - most))
    return range(first, min(count, first + most))


def row_of(
    option: Option[Any], is_selected: bool, columns: int | None = None
) -> Fragments:
    """Label, key and note; cut to so many columns, if a number is given."""
    label = option.label
    key = f" ({option.key})" if option.key else ""
    note = f"  {told}" if (told := option.told) else ""
    if columns is not None:
        if get_cwidth(label + key) > columns:
            label = both_ends(option.short or label, columns - len(key))
        left = columns - get_cwidth(label + key) - 2
        if told and left > _LEAST_NOTE:
            note = f"  {fit(told, left)}"
        else:
            note = ""
    return [("bold" if is_selected else "", label + key), ("class:quiet", note)]


def sign_of(is_selected: bool) -> str:
    if is_selected:
        return "> "
    return "  "


def with_sign(sign: str, lines: Sequence[Fragments]) -> list[Fragments]:
    """The lines of a row: the sign stands before the first, and blanks of its width before the others."""
    blank = " " * len(sign)
    signed: list[Fragments] = []
    for line in lines:
        if signed:
            signed.append([("", blank), *line])
        else:
            signed.append([("", sign), *line])
    return signed
