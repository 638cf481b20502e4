"""From rich objects to what the terminal is sent, and to what prompt-toolkit draws."""

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
    """Whatever it is given, no row that it makes is wider than it may be, or holds a control character."""

    def __init__(self, theme: Theme, fold_key: str = FOLD_KEY) -> None:
        self.theme = theme
        self._fold_key = fold_key

    def whole(self) -> "Renderer":
        """One for cells that fold nothing."""
        return Renderer(replace(self.theme, folds=False), self._fold_key)

    def text(self, renderable: RenderableType, width: int) -> str:
        """Lines for a terminal of so many columns, each with its newline."""
        parts: list[str] = []
        is_joined = False
        for row in self._rows(renderable, width):
            parts.append(self._ansi(row, width, is_joined=is_joined))
            is_joined = bool(row and row[-1].control) and not self.theme.dumb
            parts.append("" if is_joined else "\n")
        return "".join(parts)

    def fragments(self, renderable: RenderableType, width: int) -> list[Fragments]:
        """The same as lines for prompt-toolkit, without newlines."""
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
        # Rows that the terminal wraps have this width, whatever stands before the first one.
        options.size = ConsoleDimensions(width, options.size.height)
        for row in console.render_lines(renderable, options, pad=False):
            if not self.theme.color:
                # Styles have none, but the output of commands may.
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
        """`is_joined`: the cursor may stand behind the last column, where the row before has left it."""
        # The blanks at the end of a row that the next one goes on with are in the midst of a line.
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
        # The terminal fills the row, so that who copies it gets no blanks at its end.
        fill = self._styled("\x1b[K", ground) if ground else ""
        for n, segment in enumerate(row[: last + 1]):
            if fill and not is_joined and _has_ground(segment):
                parts.append(fill)
                fill = ""
            # Blanks at the end of a row are a nuisance to whoever copies it.
            if n == last and not goes_on:
                text = segment.text.rstrip(" ")
            else:
                text = segment.text
            parts.append(self._styled(text, segment.style))
        return "".join((*parts, fill))

    def _ground(self, row: _Row, width: int) -> Style | None:
        """The style of the ground that the row is filled with, if it is."""
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
        # None but those of Markdown, which knows which are safe.
        if link and self.theme.links:
            return f"\x1b]8;;{link}\x1b\\{shown}\x1b]8;;\x1b\\"
        return shown


@lru_cache(maxsize=4)
def _console(theme: Theme) -> Console:
    # Everything is said outright: rich would look at the environment otherwise.
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
    """The row as several, if terminals that join no emoji show it wider than rich thinks.

    How wide sequences of emoji, flags and the like are, terminals do not agree. Taken as the sum of its
    characters a row is never narrower than on the screen.
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
    # Entities of Markdown, for one, are decoded late.
    if text.isprintable():
        return text
    return printable(text).translate(_BLANKS)


def _has_ground(segment: Segment) -> bool:
    return segment.style is not None and segment.style.bgcolor is not None


@lru_cache(maxsize=1000)
def _style(style: Style | None, system: str) -> str:
    if not style:
        return ""
    # In the colours of the terminal already: what is printed later looks the same.
    sequences = ANSI(
        style.update_link(None).render("x", color_system=COLOR_SYSTEMS[system])
    )
    return to_formatted_text(sequences)[0][0]


_BLANKS = dict.fromkeys(map(ord, "\n\t\u2028\u2029"), " ")
