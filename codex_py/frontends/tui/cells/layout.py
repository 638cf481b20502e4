"""Lays out cells: a sign beside a body, long text folded to its ends, no terminal controls.

Styles are names of the theme, and signs are Unicode: `Renderer` adapts both to the terminal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

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
"""Characters read from each end of a folded text."""
WHOLE = 1_000_000
"""A number of lines that means "all": nothing is folded."""
_READ_WHOLE = 500_000
"""As `_READ`, for a text that is shown whole."""
_LONGEST_WHOLE = 10_000
"""As `_LONGEST_LINE`, for a text that is shown whole."""
MOST_ROWS = 20
"""Rows of a call, a patch or an output in the scrollback."""
_ROWS_OF_HEAD = 12
FOLD_KEY = " (Ctrl-T)"
"""The key that shows all that a cell has folded."""
_MOST_COLORS = 100
"""Changes of the colour in one line of output."""
_OMITTED = re.compile(r"\n\.\.\. \d+ bytes \((\d+) lines\) omitted \.\.\.\n")
"""The remark of `HeadTailBuffer.text` about omitted output."""
_COLORS = re.compile("\x1b\\[[0-9;:]*m")

JOINS = Segment("", None, [(ControlType.CARRIAGE_RETURN,)])
"""Ends a full row: the next row continues the same line."""


def one_line(text: str, size: int) -> str:
    """The text on one line, cut to `size` characters."""
    # Blanks and controls will be left out.
    start = cut(text, 2 * size)
    words = plain(start).split()
    return cut(" ".join(words), size)


def within(folder: str, path: str) -> str:
    """The path relative to the folder if it lies below it, else unchanged."""
    if folder:
        return path.removeprefix(f"{folder.rstrip('/')}/")
    return path


@dataclass(frozen=True, slots=True)
class Hanging:
    """A body with `sign` before its first row, and `rest` (as wide) or blanks before the others."""

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
        segments = console.render(self.body, inner)
        for n, line in enumerate(Segment.split_lines(segments)):
            # A row that continues the line before begins where the terminal wraps.
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
    """A body on the background of a style, over the full width if the style has a background."""

    body: RenderableType
    style: str

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        style = console.get_style(self.style)
        has_ground = style.bgcolor is not None
        unbounded = options.update(height=None)
        for line in console.render_lines(
            self.body, unbounded, style=style, pad=has_ground
        ):
            yield from line
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Bounded:
    """A cell of at most `MOST_ROWS` rows; of a longer one, the first and the last are shown."""

    body: RenderableType

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        unbounded = options.update(height=None)
        rows = console.render_lines(self.body, unbounded, pad=False)
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
    """A text followed by a remark that never stands on a row of its own."""

    text: Text
    tail: Text

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        width = options.max_width
        tail = self.tail
        lines = list(self.text.wrap(console, width))
        if lines:
            last = lines.pop()
            if last.cell_len + tail.cell_len > width > 2 * tail.cell_len:
                lines += last.wrap(console, width - tail.cell_len)
                last = lines.pop()
            lines.append(last + tail)
        yield Text("\n").join(lines)


def marked(
    *parts: RenderableType,
    sign: str = "•",
    style: str = "quiet",
) -> Hanging:
    """A cell with a sign before it; `style` is the style of the sign."""
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
    """The first and the last lines of a text, and the number of lines between them.

    Args:
        text: may hold controls. Only its ends are made safe by `clean`, so that the time does not
            depend on its length.
        longest: the limit on the characters of a line, unless the text is shown `WHOLE`.
    """
    if head >= WHOLE:
        longest = _LONGEST_WHOLE
    lines = [cut(line, longest) for line in _ends(text, head, tail, clean)]
    return Text("\n".join(lines), style)


def output(
    text: str,
    *,
    head: int,
    tail: int,
    style: str = "quiet",
) -> Text:
    """The output of a command, folded as in `folded`, in the colours that the command gave it."""
    decoder = AnsiDecoder()
    longest = _LONGEST_WHOLE if head >= WHOLE else _LONGEST_LINE
    ends = _ends(text, head, tail, colors_only)
    lines = [_colored(line, decoder, style, longest) for line in ends]
    return Text("\n").join(lines)


def last_lines(text: str, count: int) -> Text:
    """The last `count` lines that a command has printed so far."""
    lines: list[str] = []
    if count:
        lines = colors_only(text.rstrip("\n")).split("\n")
    decoder = AnsiDecoder()
    shown = [_colored(line, decoder, "quiet") for line in lines[-count:]]
    return Text("\n").join(shown)


def _colored(
    line: str, decoder: AnsiDecoder, style: str, longest: int = _LONGEST_LINE
) -> Text:
    """A line that holds no controls but colours.

    `decoder`: has the colours at the end of the line before, and gets those of this one.
    """
    # A terminal writes the text after a carriage return over the text before it.
    line = line.rstrip("\r").rpartition("\r")[2]
    line = cut(line, 4 * longest)
    shown = command_output(line).replace("\n", " ")
    text = Text(cut(shown, longest), style)
    start = 0
    for match in islice(_COLORS.finditer(line), _MOST_COLORS):
        end = len(command_output(line[: match.start()]))
        text.stylize(_visible(decoder.style), start, end)
        decoder.decode_line(match[0])
        start = end
    text.stylize(_visible(decoder.style), start)
    return text


def _visible(style: Style) -> Style:
    """The style without blinking, hidden text and links."""
    if style == Style.null():
        return style
    is_hidden = style.color is not None and style.color == style.bgcolor
    return Style(
        color=None if is_hidden else style.color,
        bgcolor=None if is_hidden else style.bgcolor,
        bold=style.bold,
        # Output is dim as a whole, but its coloured parts are not.
        dim=bool(style.dim),
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
        strike=style.strike,
    )


def _omitted(text: str) -> int:
    """The number of lines that were not kept, and that no line of this text stands for."""
    match = _OMITTED.search(text)
    if match:
        # The remark is a line itself, and cuts another one in two.
        return int(match[1]) - 2
    return 0


class _Ends(NamedTuple):
    first: list[str]
    """The lines at the beginning of a text; all lines of a short one."""
    last: list[str]
    """The lines at the end of a text; empty for a short one."""
    hidden: int
    """The number of lines between them, including partial ones."""
    omitted: int
    """The number of lines between them that were not kept when the text was made."""


def _read_ends(
    text: str,
    size: int,
    clean: Callable[[str], str],
) -> _Ends:
    """Read at most `size` characters at each end of a text."""
    if len(text) <= 2 * size:
        return _Ends(clean(text).split("\n"), [], 0, 0)
    first = clean(text[:size]).split("\n")
    last = clean(text[-size:]).split("\n")
    hidden = text.count("\n", size, len(text) - size)
    if hidden:
        # The partial lines at both ends of the gap are counted with the others.
        hidden -= 1
    else:
        # Two pieces of one line.
        first[-1] += last.pop(0)
    omitted = _omitted(text[size : len(text) - size])
    return _Ends(first, last, hidden, omitted)


def _ends(
    text: str,
    head: int,
    tail: int,
    clean: Callable[[str], str],
) -> list[str]:
    """The lines at both ends of a text, with a remark between them if lines are left out."""
    text = text.rstrip("\n")
    if head >= WHOLE:
        return _all_lines(_read_ends(text, _READ_WHOLE, clean))
    ends = _read_ends(text, _READ, clean)
    lines = [*ends.first, *ends.last]
    hidden = len(lines) - head - tail + ends.hidden + ends.omitted
    if hidden <= 1:
        return lines
    lost = f", {ends.omitted} of them not kept" if ends.omitted else ""
    remark = f"… +{hidden} lines{lost}{FOLD_KEY}"
    return [*lines[:head], remark, *lines[-tail:]]


def _all_lines(ends: _Ends) -> list[str]:
    if not ends.hidden:
        return [*ends.first, *ends.last]
    lost = f", {ends.omitted:,} were not kept" if ends.omitted else ""
    remark = f"… {ends.hidden:,} lines are in the session file alone{lost}"
    return [*ends.first, remark, *ends.last]
