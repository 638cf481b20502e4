"""The layout of cells: a sign and a body beside it, long text folded to its ends, and nothing in it that steers a terminal.

Styles are names of the theme, and signs are Unicode: `Renderer` knows what the terminal makes of them.
"""

import re
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from codex_py.frontends.terminal import printable

_NARROWEST_BODY = 8
_LONGEST_LINE = 240
"""Characters of one line of output; a handful of rows."""
_READ = 20_000
"""Characters from each end of a folded text that are looked at."""
_SEQUENCES = re.compile(
    # CSI, OSC and other strings, and the short ones. Of ECMA-48 and xterm.
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])"
)
_OVERSTRUCK = re.compile("[^\n]\x08")
_MARKS = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200d"
    "\u2060-\u2064\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U000e0000-\U000e0fff]"
)
_PILE = re.compile(f"({_MARKS}{{6}}){_MARKS}+")
"""More marks on a letter than any script has: they cost rows of their own in no terminal, but time in all."""
_NO_SPACES = str.maketrans({"\u2028": "\n", "\u2029": "\n"})


def plain(text: str, *, tab: int = 8) -> str:
    """`printable`, with tabs as blanks and no piles of combining marks."""
    if text.isascii() and text.isprintable():
        return text
    text = printable(text)
    if "\t" in text:
        text = text.expandtabs(tab)
    if not text.isascii():
        text = _PILE.sub(r"\1", text.translate(_NO_SPACES))
    return text


def command_output(text: str) -> str:
    """The output of a command as the terminal would show it in the end, without colours.

    Sequences are left out, and of a line that was written over with `\\r` only what came last is kept.
    """
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        text = "\n".join(lines)
    return plain(text)


def cut(text: str, size: int, more: str = "…") -> str:
    """At most so many characters of a text; `more` stands for the rest."""
    return text if len(text) <= size else text[:size] + more


def one_line(text: str, size: int, more: str = "…") -> str:
    """A text in one line, without what is behind the first so many characters."""
    return cut(" ".join(plain(cut(text, 2 * size, more)).split()), size, more)


class Hanging:
    """A body with a sign before its first row, and `rest`, as wide, or blanks before the others."""

    def __init__(
        self, sign: str, body: RenderableType, *, style: str = "", rest: str | None = None
    ) -> None:
        self._sign = sign
        self._rest = " " * len(sign) if rest is None else rest
        self._style = style
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - len(self._sign)
        newline = Segment.line()
        style = console.get_style(self._style)
        if width < _NARROWEST_BODY:
            # Too narrow to read beside the sign.
            yield Segment(self._sign.rstrip() + "\n", style)
            yield from console.render(self._body, options)
            return
        lines = console.render_lines(
            self._body, options.update(width=width, height=None), pad=False
        )
        sign = Segment(self._sign, style)
        rest = Segment(self._rest, style if self._rest.strip() else None)
        for n, line in enumerate(lines):
            if line or n == 0 or self._rest.strip():
                yield rest if n else sign
                yield from line
            yield newline


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
) -> Text:
    """The first and the last lines of a text, and how many there are between them.

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
    return Text("\n".join(cut(line, _LONGEST_LINE) for line in lines), style)
