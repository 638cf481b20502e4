"""Programs in an answer, coloured with pygments in the colours of the terminal."""

from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import (
    get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType]  # its options have no types
)
from pygments.token import _TokenType  # pyright: ignore[reportPrivateUsage]  # its only name
from pygments.util import ClassNotFound
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from codex_py.frontends.tui.theme import Theme

_MOST = 20_000
"""Characters. Lexers take their time, and some of them far more than others."""
_LONGEST_LINE = 2_000

_STYLES = {
    "Comment": "syntax comment",
    "Keyword": "syntax keyword",
    "Keyword.Type": "syntax type",
    "Operator.Word": "syntax keyword",
    "Name.Function": "syntax name",
    "Name.Class": "syntax type",
    "Name.Namespace": "syntax name",
    "Name.Decorator": "syntax keyword",
    "Name.Exception": "syntax type",
    "Name.Tag": "syntax keyword",
    "Name.Attribute": "syntax name",
    "Literal.String": "syntax string",
    "Literal.Number": "syntax number",
    "Generic.Deleted": "removed",
    "Generic.Inserted": "added",
    "Generic.Heading": "syntax markup",
    "Generic.Subheading": "syntax markup",
    "Generic.Strong": "syntax markup",
}


class Code:
    """A program, coloured where its language is known. A line that is too long is cut anywhere.

    Args:
        code: `plain` already.
    """

    def __init__(self, code: str, language: str, theme: Theme) -> None:
        self._text = _highlighted(code.removesuffix("\n"), language, theme)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in self._text.split("\n", allow_blank=True):
            if len(line) <= width and line.cell_len <= width:
                yield from line.render(console, end="\n")
                continue
            ends: list[int] = []
            used = 0
            for index, char in enumerate(line.plain):
                size = cell_len(char)
                if used + size > width:
                    ends.append(index)
                    used = 0
                used += size
            for row in line.divide(ends):
                yield from row.render(console, end="\n")


def _highlighted(code: str, language: str, theme: Theme) -> Text:
    text = Text(code)
    if theme.dumb or not language or len(code) > _MOST:
        return text
    if max(map(len, code.split("\n"))) > _LONGEST_LINE:
        return text
    lexer = _lexer(language.lower())
    if lexer is None:
        return text
    start = 0
    for kind, part in lexer.get_tokens(code):
        end = start + len(part)
        if style := _style(kind, theme):
            text.stylize(style, start, end)
        start = end
    return text


@lru_cache(maxsize=20)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=500)
def _style(kind: _TokenType, theme: Theme) -> str:
    names = str(kind).removeprefix("Token.").split(".")
    for count in range(len(names), 0, -1):
        if name := _STYLES.get(".".join(names[:count])):
            return theme.style(name)
    return ""
