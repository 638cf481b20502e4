"""Renders rich objects as text for the terminal, and as fragments for prompt-toolkit."""

import io
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from prompt_toolkit.formatted_text import ANSI, to_formatted_text
from prompt_toolkit.utils import get_cwidth
from rich.console import COLOR_SYSTEMS, Console, ConsoleDimensions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme as Styles

from codex_py.frontends.tui.cells.layout import FOLD_KEY
from codex_py.frontends.tui.characters import SIGNS, escaped
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.theme import STYLES, Theme
from codex_py.streams.terminal import printable

_Row: TypeAlias = list[Segment]
_BLANKS = dict.fromkeys(map(ord, "\n\t\u2028\u2029"), " ")


class Renderer:
    """Renders cells. No row is ever wider than allowed, or holds a control character."""

    def __init__(self, theme: Theme, fold_key: str = FOLD_KEY) -> None:
        self.theme = theme
        self._fold_key = fold_key

    def whole(self) -> "Renderer":
        """A renderer for cells that fold nothing."""
        return Renderer(replace(self.theme, folds=False), self._fold_key)

    def text(self, renderable: RenderableType, width: int) -> str:
        """The lines of a cell for a terminal of `width` columns, each with its newline."""
        parts: list[str] = []
        is_joined = False
        for row in self._rows(renderable, width):
            parts.append(self._ansi(row, width, is_joined=is_joined))
            is_joined = _joins_next(row) and not self.theme.dumb
            if not is_joined:
                parts.append("\n")
        return "".join(parts)

    def fragments(self, renderable: RenderableType, width: int) -> list[Fragments]:
        """The lines of a cell for prompt-toolkit, without newlines."""
        return [self._fragments(row) for row in self._rows(renderable, width)]

    def _fragments(self, row: _Row) -> Fragments:
        system = self.theme.color_system
        return [(_style(segment.style, system), segment.text) for segment in row]

    def _rows(self, renderable: RenderableType, width: int) -> Iterable[_Row]:
        """The rows of a cell, with only characters that are safe for the terminal."""
        console = _console(self.theme)
        options = console.options.update(width=width, height=None)
        # Rows that the terminal wraps have this width, whatever stands before the first row.
        options.size = ConsoleDimensions(width, options.size.height)
        for row in console.render_lines(renderable, options, pad=False):
            if not self.theme.color:
                # Without colours in the theme, the output of commands may still have some.
                row = list(Segment.remove_color(row))
            if all(part.text.isascii() and part.text.isprintable() for part in row):
                yield row
                continue
            safe = [self._safe(part) for part in row if not part.control]
            *rows, last = _fitting(safe, width)
            yield from rows
            if _joins_next(row):
                last = [*last, row[-1]]
            yield last

    def _safe(self, segment: Segment) -> Segment:
        text = _safe(segment.text)
        if not self.theme.unicode:
            text = escaped(text, keeps=SIGNS)
        return Segment(text.replace(FOLD_KEY, self._fold_key), segment.style)

    def _ansi(
        self,
        row: _Row,
        width: int,
        *,
        is_joined: bool,
    ) -> str:
        """The control sequences and text of a row.

        `is_joined`: the cursor may be after the last column, where the row before has left it.
        """
        if _joins_next(row):
            # Blanks at the end of this row are in the middle of a line.
            *body, _ = row
            return "".join(self._styled(part.text, part.style) for part in body)
        ground = self._ground(row, width)
        fill = ""
        if ground is not None:
            # The terminal fills the row, so that a copy of it has no blanks at its end.
            fill = self._styled("\x1b[K", ground)
        parts: list[str] = []
        for segment in _without_blanks(row, all_blank=ground is None):
            if fill and not is_joined and _has_ground(segment):
                parts.append(fill)
                fill = ""
            parts.append(self._styled(segment.text, segment.style))
        return "".join((*parts, fill))

    def _ground(self, row: _Row, width: int) -> Style | None:
        """The style of the background that fills the row; None if none does."""
        if not row:
            return None
        last = row[-1]
        if not _has_ground(last) or not last.text.endswith(" "):
            return None
        if sum(segment.cell_length for segment in row) != width:
            return None
        return last.style

    def _styled(self, text: str, style: Style | None) -> str:
        if not style or self.theme.dumb:
            return text
        link = style.link
        style = style.update_link(None)
        shown = style.render(text, color_system=COLOR_SYSTEMS[self.theme.color_system])
        # Only links of Markdown come here, which knows which are safe.
        if link and self.theme.links:
            return f"\x1b]8;;{link}\x1b\\{shown}\x1b]8;;\x1b\\"
        return shown


@lru_cache(maxsize=4)
def _console(theme: Theme) -> Console:
    # Every option is given: rich would look at the environment otherwise.
    return Console(
        file=io.TextIOWrapper(io.BytesIO(), "utf-8" if theme.unicode else "ascii"),
        width=80,
        height=1000,
        force_terminal=not theme.dumb,
        force_interactive=False,
        color_system=theme.color_system,
        no_color=not theme.color,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
        safe_box=True,
        theme=Styles({name: theme.style(name) for name in STYLES}),
        _environ={},
    )


def _joins_next(row: _Row) -> bool:
    """True if the row ends in `JOINS`: the next one continues the same line."""
    return len(row) > 0 and bool(row[-1].control)


def _without_blanks(row: _Row, *, all_blank: bool) -> _Row:
    """The row without the blanks at its end, which are a nuisance when it is copied.

    `all_blank`: False: segments without a background stay, even if they are blank.
    """
    kept = list(row)
    while kept and not kept[-1].text.rstrip(" "):
        if not all_blank and not _has_ground(kept[-1]):
            break
        kept.pop()
    if kept:
        last = kept.pop()
        kept.append(Segment(last.text.rstrip(" "), last.style))
    return kept


def _fitting(row: _Row, width: int) -> Iterable[_Row]:
    """Split a row into several if a terminal may show it wider than rich thinks.

    Terminals disagree on the width of sequences of emoji, flags and the like. None of them shows a
    row wider than the sum of its characters, which is measured here.
    """
    fitting: _Row = []
    used = 0
    for segment in row:
        text = segment.text
        start = 0
        for index, char in enumerate(text):
            size = get_cwidth(char)
            if used + size > width:
                if index > start:
                    fitting.append(Segment(text[start:index], segment.style))
                yield fitting
                fitting = []
                used = 0
                start = index
            used += size
        fitting.append(Segment(text[start:], segment.style))
    yield fitting


def _safe(text: str) -> str:
    # For instance, entities of Markdown are decoded late.
    if text.isprintable():
        return text
    return printable(text).translate(_BLANKS)


def _has_ground(segment: Segment) -> bool:
    return segment.style is not None and segment.style.bgcolor is not None


@lru_cache(maxsize=1000)
def _style(style: Style | None, system: str) -> str:
    if not style:
        return ""
    # Converted to the terminal's colours now, so that text printed later looks the same.
    unlinked = style.update_link(None)
    sequences = unlinked.render("x", color_system=COLOR_SYSTEMS[system])
    return to_formatted_text(ANSI(sequences))[0][0]
