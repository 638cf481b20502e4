"""The layout of cells: a sign and a body beside it, long text folded to its ends, and nothing in it that steers a
terminal.

Styles are names of the theme, and signs are Unicode: `Renderer` knows what the terminal makes of them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from rich.ansi import AnsiDecoder
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import ControlType, Segment
from rich.style import Style
from rich.text import Text

from codex_py.streams.plain_text import colors_only, command_output, cut, plain

_NARROWEST_BODY = 8
_LONGEST_LINE = 240
"""Characters of one line of output; a handful of rows."""
_READ = 20_000
"""Characters from each end of a folded text that are looked at."""
_READ_WHOLE = 500_000
_LONGEST_WHOLE = 10_000
WHOLE = 1_000_000
"""Lines: nothing is folded."""
MOST_ROWS = 20
"""Of a call, a patch or an output in the scrollback."""
_ROWS_OF_HEAD = 12
FOLD_KEY = " (Ctrl-T)"
"""What shows all of what a cell has folded."""
_MOST_COLORS = 100
"""Changes of the colour in one line of output."""
_OMITTED = re.compile(r"\n\.\.\. \d+ bytes \((\d+) lines\) omitted \.\.\.\n")
"""As `HeadTailBuffer.text` says it."""
_COLORS = re.compile("\x1b\\[[0-9;:]*m")

JOINS = Segment("", None, [(ControlType.CARRIAGE_RETURN,)])
"""At the end of a row that is full: the next one goes on with its line."""


def one_line(text: str, size: int) -> str:
    """A text in one line, without what is behind the first so many characters."""
    return cut(" ".join(plain(cut(text, 2 * size)).split()), size)


def within(folder: str, path: str) -> str:
    """The path as it is named in a folder."""
    if folder:
        return path.removeprefix(f"{folder.rstrip('/')}/")
    return path


@dataclass(frozen=True, slots=True)
class Hanging:
    """A body with a sign before its first row, and `rest`, as wide, or blanks before the others."""

    sign: str
    body: RenderableType
    style: str = field(default="", kw_only=True)
    rest: str = field(default="", kw_only=True)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        width = options.max_width - len(self.sign)
        style = console.get_style(self.style)
        if width < _NARROWEST_BODY:
            # Too narrow to read beside the sign.
            yield Segment(self.sign.rstrip() + "\n", style)
            yield from console.render(self.body, options)
            return
        inner = options.update(width=width, height=None)
        first = Segment(self.sign, style)
        if self.rest:
            rest = Segment(self.rest, style)
        else:
            rest = Segment(" " * len(self.sign))
        is_joined = False
        for n, line in enumerate(Segment.split_lines(console.render(self.body, inner))):
            # A row that goes on with the line before begins where the terminal wraps.
            if not is_joined and (line or n == 0 or self.rest):
                if n:
                    yield rest
                else:
                    yield first
            yield from line
            is_joined = bool(line and line[-1].control)
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Band:
    """A body on the ground of a style, over the full width; without one where the style has none."""

    body: RenderableType
    style: str

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        style = console.get_style(self.style)
        has_ground = style.bgcolor is not None
        for line in console.render_lines(
            self.body, options.update(height=None), style=style, pad=has_ground
        ):
            yield from line
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Bounded:
    """A cell of at most `MOST_ROWS`: of a higher one the first and the last."""

    body: RenderableType

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        rows = console.render_lines(self.body, options.update(height=None), pad=False)
        hidden = len(rows) - MOST_ROWS + 1
        for n, row in enumerate(rows):
            if hidden > 1 and _ROWS_OF_HEAD <= n < _ROWS_OF_HEAD + hidden:
                if n == _ROWS_OF_HEAD:
                    yield Text(f"  … +{hidden} rows{FOLD_KEY}", "quiet")
                continue
            yield from row
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Tailed:
    """A text with a remark behind it, which never stands on a row of its own."""

    text: Text
    tail: Text

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        width = options.max_width
        tail = self.tail
        lines = list(self.text.wrap(console, width))
        if lines and lines[-1].cell_len + tail.cell_len > width > 2 * tail.cell_len:
            lines[-1:] = lines[-1].wrap(console, width - tail.cell_len)
        yield Text("\n").join([*lines[:-1], *(line + tail for line in lines[-1:])])


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
    longest = _LONGEST_WHOLE if head >= WHOLE else longest
    return Text(
        "\n".join(cut(line, longest) for line in _ends(text, head, tail, clean)), style
    )


def output(text: str, *, head: int, tail: int, style: str = "quiet") -> Text:
    """As `folded`, for what a command has printed, in the colours that it gave it."""
    decoder = AnsiDecoder()
    longest = _LONGEST_WHOLE if head >= WHOLE else _LONGEST_LINE
    ends = _ends(text, head, tail, colors_only)
    lines = [_colored(line, decoder, style, longest) for line in ends]
    return Text("\n").join(lines)


def last_lines(text: str, count: int) -> Text:
    """The end of what a command has printed so far."""
    if count:
        lines = colors_only(text.rstrip("\n")).split("\n")[-count:]
    else:
        lines = []
    decoder = AnsiDecoder()
    return Text("\n").join([_colored(line, decoder, "quiet") for line in lines])


def _colored(
    line: str, decoder: AnsiDecoder, style: str, longest: int = _LONGEST_LINE
) -> Text:
    """A line with nothing but colours in it. `decoder` has those that go on from the line before."""
    line = cut(line.rstrip("\r").rpartition("\r")[2], 4 * longest)
    text = Text(cut(command_output(line).replace("\n", " "), longest), style)
    start = 0
    for match in islice(_COLORS.finditer(line), _MOST_COLORS):
        end = len(command_output(line[: match.start()]))
        text.stylize(_visible(decoder.style), start, end)
        decoder.decode_line(match[0])
        start = end
    text.stylize(_visible(decoder.style), start)
    return text


def _visible(style: Style) -> Style:
    """Without what blinks, hides the text, or leads somewhere."""
    if style == Style.null():
        return style
    is_hidden = style.color is not None and style.color == style.bgcolor
    return Style(
        color=None if is_hidden else style.color,
        bgcolor=None if is_hidden else style.bgcolor,
        bold=style.bold,
        # The output is dim as a whole, and what it colours is not.
        dim=bool(style.dim),
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
        strike=style.strike,
    )


def _omitted(text: str) -> int:
    """The lines of an output that were not kept, beyond those of this part of it."""
    match = _OMITTED.search(text)
    # The remark has a line of its own, and cuts another one in two.
    if match:
        return int(match[1]) - 2
    return 0


def _ends(text: str, head: int, tail: int, clean: Callable[[str], str]) -> list[str]:
    text = text.rstrip("\n")
    hidden = omitted = 0
    read = _READ_WHOLE if head >= WHOLE else _READ
    if len(text) > 2 * read:
        hidden = text.count("\n", read, len(text) - read)
        omitted = _omitted(text[read : len(text) - read])
        lines = clean(text[:read]).split("\n")
        last = clean(text[-read:]).split("\n")
        if not hidden:
            # Two pieces of one line.
            lines[-1] += last.pop(0)
        else:
            # The lines that were cut at its ends are counted with the others.
            hidden -= 1
        middle = len(lines)
        lines += last
    else:
        lines = clean(text).split("\n")
        middle = len(lines)
    if head >= WHOLE:
        lost = f", {omitted:,} were not kept" if omitted else ""
        if hidden:
            more = [f"… {hidden:,} lines are in the session file alone{lost}"]
        else:
            more = []
        return [*lines[:middle], *more, *lines[middle:]]
    hidden += len(lines) - head - tail + omitted
    lost = f", {omitted} of them not kept" if omitted else ""
    mark = f"… +{hidden} lines{lost}{FOLD_KEY}"
    if hidden > 1:
        return [*lines[:head], mark, *lines[-tail:]]
    return lines
