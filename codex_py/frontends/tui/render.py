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
            is_joined = bool(row and row[-1].control) and not self.theme.dumb
            parts.append("" if is_joined else "\n")
        return "".join(parts)

    def fragments(self, renderable: RenderableType, width: int) -> list[Fragments]:
        """The lines of a cell for prompt-toolkit, without newlines."""
        return [
            [
                (_style(segment.style, self.theme.color_system), segment.text)
                for segment in row
            ]
            for row in self._rows(renderable, width)
        ]

    def _rows(self, renderable: RenderableType, width: int) -> Iterable[_Row]:
        console = _console(self.theme)
        options = console.options.update(width=width, height=None)
        # Rows that the terminal wraps have this width, whatever stands before the first row.
        options.size = ConsoleDimensions(width, options.size.height)
        for row in console.render_lines(renderable, options, pad=False):
            if not self.theme.color:
                # Without colours in the theme, the output of commands may still have some.
                row = list(Segment.remove_color(row))
            if all(
                segment.text.isascii() and segment.text.isprintable() for segment in row
            ):
                yield row
            else:
                safe = [
                    Segment(
                        self._safe(s.text).replace(FOLD_KEY, self._fold_key), s.style
                    )
                    for s in row
                    if not s.control
                ]
                *rows, last = _fitting(safe, width)
                yield from rows
                if row[-1].control:
                    yield [*last, *row[-1:]]
                else:
                    yield last

    def _safe(self, text: str) -> str:
        safe = _safe(text)
        if self.theme.unicode:
            return safe
        return escaped(safe, keeps=SIGNS)

    def _ansi(self, row: _Row, width: int, *, is_joined: bool) -> str:
        """The control sequences and text of a row.

        `is_joined`: the cursor may be after the last column, where the row before has left it.
        """
        # If the next row continues this one, blanks at its end are in the middle of a line.
        goes_on = any(segment.control for segment in row)
        row = [segment for segment in row if not segment.control]
        ground = None if goes_on else self._ground(row, width)
        last = len(row) - 1
        while not goes_on and (
            last >= 0
            and not row[last].text.rstrip(" ")
            and (not ground or _has_ground(row[last]))
        ):
            last -= 1
        parts: list[str] = []
        # The terminal fills the row, so that a copy of it has no blanks at its end.
        fill = self._styled("\x1b[K", ground) if ground else ""
        for n, segment in enumerate(row[: last + 1]):
            if fill and not is_joined and _has_ground(segment):
                parts.append(fill)
                fill = ""
            # Blanks at the end of a row are a nuisance when it is copied.
            if n == last and not goes_on:
                text = segment.text.rstrip(" ")
            else:
                text = segment.text
            parts.append(self._styled(text, segment.style))
        return "".join((*parts, fill))

    def _ground(self, row: _Row, width: int) -> Style | None:
        """The style of the background that fills the row; None if none does."""
        style = row[-1].style if row else None
        is_full = (
            style is not None and sum(segment.cell_length for segment in row) == width
        )
        has_room = row and row[-1].text.endswith(" ")
        if is_full and has_room and _has_ground(row[-1]):
            return style
        return None

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


def _fitting(row: _Row, width: int) -> Iterable[_Row]:
    """Split a row into several if a terminal may show it wider than rich thinks.

    Terminals disagree on the width of sequences of emoji, flags and the like. Measured as the sum
    of its characters, a row is never narrower than on the screen.
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
    sequences = ANSI(
        style.update_link(None).render("x", color_system=COLOR_SYSTEMS[system])
    )
    return to_formatted_text(sequences)[0][0]


_BLANKS = dict.fromkeys(map(ord, "\n\t\u2028\u2029"), " ")
