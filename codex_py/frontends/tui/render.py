"""From rich objects to what the terminal is sent, and to what prompt-toolkit draws."""

import io
from functools import lru_cache
from typing import TypeAlias

from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.color import ColorType
from rich.console import Console, RenderableType
from rich.style import Style

from codex_py.frontends.tui.theme import Theme

Fragments: TypeAlias = StyleAndTextTuples
"""Formatted text of prompt-toolkit: `(style, text)`."""


class Renderer:
    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._consoles: dict[int, Console] = {}

    def text(self, renderable: RenderableType, width: int) -> str:
        """Lines for a terminal of so many columns, each with its newline."""
        console = self._console(width)
        with console.capture() as capture:
            console.print(renderable)
        return capture.get()

    def fragments(self, renderable: RenderableType, width: int) -> list[Fragments]:
        """The same as lines for prompt-toolkit, without newlines."""
        console = self._console(width)
        lines = console.render_lines(renderable, console.options.update(width=width), pad=False)
        return [
            [(_style(segment.style), segment.text) for segment in line if not segment.control]
            for line in lines
        ]

    def _console(self, width: int) -> Console:
        if (console := self._consoles.get(width)) is None:
            theme = self.theme
            # Everything is said outright: rich would look at the environment otherwise.
            console = Console(
                file=io.StringIO(),
                width=width,
                height=1000,
                force_terminal=not theme.dumb,
                force_interactive=False,
                color_system=theme.color_system if theme.color else None,
                no_color=not theme.color,
                legacy_windows=False,
                markup=False,
                highlight=False,
                emoji=False,
                _environ={},
            )
            self._consoles = {width: console}
        return console


@lru_cache(maxsize=1000)
def _style(style: Style | None) -> str:
    if style is None:
        return ""
    words = [
        name
        for name in ("bold", "dim", "italic", "underline", "strike", "reverse", "blink")
        if getattr(style, name)
    ]
    for prefix, color in (("fg:", style.color), ("bg:", style.bgcolor)):
        if color is None or color.type is ColorType.DEFAULT:
            continue
        if color.type is ColorType.STANDARD and color.number is not None:
            words.append(prefix + _PALETTE[color.number])
        else:
            words.append(prefix + color.get_truecolor().hex)
    return " ".join(words)


_PALETTE = (
    *("ansiblack", "ansired", "ansigreen", "ansiyellow"),
    *("ansiblue", "ansimagenta", "ansicyan", "ansigray"),
    *("ansibrightblack", "ansibrightred", "ansibrightgreen", "ansibrightyellow"),
    *("ansibrightblue", "ansibrightmagenta", "ansibrightcyan", "ansiwhite"),
)
