"""The layout of cells: a sign and a body beside it, long text folded to its ends, and nothing in it that steers a
terminal.

Styles are names of the theme, and signs are Unicode: `Renderer` knows what the terminal makes of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from codex_py.streams.plain_text import cut, plain

_NARROWEST_BODY = 8
_LONGEST_LINE = 240
"""Characters of one line of output; a handful of rows."""
_READ = 20_000
"""Characters from each end of a folded text that are looked at."""


def one_line(text: str, size: int) -> str:
    """A text in one line, without what is behind the first so many characters."""
    return cut(" ".join(plain(cut(text, 2 * size)).split()), size)


@dataclass(frozen=True, slots=True)
class Hanging:
    """A body with a sign before its first row, and `rest`, as wide, or blanks before the others."""

    sign: str
    body: RenderableType
    style: str = field(default="", kw_only=True)
    rest: str = field(default="", kw_only=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - len(self.sign)
        style = console.get_style(self.style)
        if width < _NARROWEST_BODY:
            # Too narrow to read beside the sign.
            yield Segment(self.sign.rstrip() + "\n", style)
            yield from console.render(self.body, options)
            return
        inner = options.update(width=width, height=None)
        first = Segment(self.sign, style)
        rest = Segment(self.rest, style) if self.rest else Segment(" " * len(self.sign))
        for n, line in enumerate(console.render_lines(self.body, inner, pad=False)):
            if line or n == 0 or self.rest:
                yield rest if n else first
                yield from line
            yield Segment.line()


def marked(*parts: RenderableType, sign: str = "•", style: str = "quiet") -> Hanging:
    """A cell with a sign before it, in a style of its own."""
    return Hanging(f"{sign} ", Group(*parts), style=style)


def below(*parts: RenderableType) -> Hanging:
    """The result of a call, below its cell."""
    return Hanging("└ ", Group(*parts), style="quiet")


def folded(
    text: str,
    *,
    head: int,
    tail: int,
    style: str = "quiet",
    clean: Callable[[str], str] = plain,
    longest: int = _LONGEST_LINE,
) -> Text:
    """The first and the last lines of a text, and how many there are between them. `longest`: characters of a line.

    The text is as it came, and made fit here by `clean`: its ends alone, so that the time does not depend
    on how long it is.
    """
    text = text.rstrip("\n")
    hidden = 0
    if len(text) > 2 * _READ:
        hidden = text.count("\n", _READ, len(text) - _READ)
        lines = clean(text[:_READ]).split("\n")
        last = clean(text[-_READ:]).split("\n")
        if not hidden:
            # Two pieces of one line.
            lines[-1] += last.pop(0)
        lines += last
    else:
        lines = clean(text).split("\n")
    hidden += len(lines) - head - tail
    if hidden > 1:
        lines = [*lines[:head], f"… +{hidden} lines", *lines[-tail:]]
    return Text("\n".join(cut(line, longest) for line in lines), style)
