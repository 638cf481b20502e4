"""Fits styled text into the rows and columns of the screen."""

from collections.abc import Sequence
from typing import TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import (
    StyleAndTextTuples,
    fragment_list_to_text,
    split_lines,
)
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.characters import SIGNS, escaped
from codex_py.frontends.tui.first_frame import INDENT, status_gap

Fragments: TypeAlias = StyleAndTextTuples
"""Text as prompt-toolkit draws it: a sequence of `(style, text)`."""

LOW = 12
"""Rows. A lower screen shows no empty lines."""
_STATUS_ROWS = 1
_WORKING_ROWS = 2


def panel_size() -> Size:
    """The rows and columns of the screen that a panel may take."""
    rows, columns = get_app().output.get_size()
    other_rows = _STATUS_ROWS + status_gap(rows)
    if rows >= LOW:
        other_rows += _WORKING_ROWS
    return Size(max(1, rows - other_rows), columns)


def fit(text: str, columns: int) -> str:
    """The text on one line of `columns` at most, ending in an ellipsis if it is longer."""
    line = " ".join(text.split())
    if get_cwidth(line) <= columns:
        return line
    return f"{_head(line, columns - 1)}…"


def both_ends(text: str, columns: int) -> str:
    """The text on one line of `columns` at most, with an ellipsis in its middle if it is longer."""
    line = " ".join(text.split())
    if get_cwidth(line) <= columns:
        return line
    reversed_tail = _head(line[::-1], (columns - 1) // 2)
    tail = reversed_tail[::-1]
    head = _head(line, columns - 1 - get_cwidth(tail))
    return f"{head}…{tail}"


def ends_of(
    rows: Sequence[Fragments], room: int, remark: str = ""
) -> Sequence[Fragments]:
    """The first and the last rows that fit in `room`, around a row that counts the others.

    `remark` follows the count.
    """
    if len(rows) <= room:
        return rows
    if room < 1:
        return []
    tail = (room - 1) // 2
    head = room - 1 - tail
    hidden = len(rows) - head - tail
    mark: Fragments = [("class:quiet", f"… +{hidden} lines{remark}")]
    return [*rows[:head], mark, *rows[len(rows) - tail :]]


def beginning_of(
    rows: Sequence[Fragments], room: int, columns: int
) -> Sequence[Fragments]:
    """The first rows that fit in `room`; the last ends in an ellipsis if there are more."""
    if room < 1:
        return []
    if len(rows) <= room:
        return rows
    last = shortened([*rows[room - 1], ("", "…")], columns)
    return [*rows[: room - 1], last]


def wrapped(text: Fragments, columns: int) -> list[Fragments]:
    """The text in rows of `columns` at most, broken at blanks if possible."""
    rows: list[Fragments] = []
    for line in split_lines(_shown(text)):
        left = explode_text_fragments(line)
        while left:
            end = max(1, len(_head(fragment_list_to_text(left), columns)))
            if end < len(left):
                blanks = [n for n in range(1, end) if left[n][1] == " "]
                if blanks:
                    end = blanks[-1] + 1
            rows.append(left[:end])
            left = left[end:]
        if not fragment_list_to_text(line):
            rows.append([])
    return rows


def _shown(text: Fragments) -> Fragments:
    """The text with escapes for characters that the terminal cannot show."""
    if get_app().output.encoding() == "utf-8":
        return text
    return [(style, escaped(part, keeps=SIGNS)) for style, part, *_ in text]


def shortened(row: Fragments, columns: int) -> Fragments:
    """The row in `columns` at most; a wider one is cut and ends in an ellipsis."""
    text = fragment_list_to_text(row)
    if get_cwidth(text) <= columns:
        return row
    shown = explode_text_fragments(row)
    end = len(_head(text, columns - 1))
    return [*shown[:end], (shown[end - 1][0], "…")]


def indented(rows: Sequence[Fragments]) -> list[Fragments]:
    return [_indented(row) for row in rows]


def _indented(row: Fragments) -> Fragments:
    if not row:
        return row
    return [("", INDENT), *row]


def bar(rows: Sequence[Fragments], columns: int) -> list[Fragments]:
    """The rows in the style of a selection, over the whole width."""
    texts = [fragment_list_to_text(row) for row in rows]
    return [
        [("class:selected", text + " " * (columns - get_cwidth(text)))]
        for text in texts
    ]


def joined(rows: Sequence[Fragments]) -> Fragments:
    """The rows as one text, one below the other."""
    text: Fragments = []
    for n, row in enumerate(rows):
        if n:
            text += [("", "\n"), *row]
        else:
            text += row
    return text


def _head(text: str, columns: int) -> str:
    """The beginning of a text that fits in so many columns."""
    taken = 0
    for n, character in enumerate(text):
        taken += get_cwidth(character)
        if taken > columns:
            return text[:n]
    return text
