"""Colours the programs in an answer with the palette of the terminal."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

from codex_py.frontends.tui.theme import Theme

_MOST = 20_000
"""Characters. Lexers take their time, and some of them far more than others."""
_LONGEST_LINE = 2_000

_STYLES: Mapping[tuple[str, ...], str] = {
    ("Comment",): "syntax comment",
    ("Keyword",): "syntax keyword",
    ("Keyword", "Type"): "syntax type",
    ("Operator", "Word"): "syntax keyword",
    ("Name", "Function"): "syntax name",
    ("Name", "Class"): "syntax type",
    ("Name", "Namespace"): "syntax name",
    ("Name", "Decorator"): "syntax keyword",
    ("Name", "Exception"): "syntax type",
    ("Name", "Tag"): "syntax keyword",
    ("Name", "Attribute"): "syntax name",
    ("Literal", "String"): "syntax string",
    ("Literal", "Number"): "syntax number",
    ("Generic", "Deleted"): "removed",
    ("Generic", "Inserted"): "added",
    ("Generic", "Heading"): "syntax markup",
    ("Generic", "Subheading"): "syntax markup",
    ("Generic", "Strong"): "syntax markup",
}
"""By the kinds of pygments, and what they are part of."""


class Code:
    """A program, coloured if its language is known. Long lines are cut anywhere.

    Args:
        code: `plain` already.
    """

    def __init__(self, code: str, language: str, theme: Theme) -> None:
        self._text = _highlighted(code.removesuffix("\n"), language, theme)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in self._text.split("\n", allow_blank=True):
            rows = chop_cells(line.plain, width) if line.cell_len > width else []
            for row in line.divide(list(accumulate(map(len, rows[:-1])))):
                yield from row.render(console, end="\n")


def _highlighted(code: str, language: str, theme: Theme) -> Text:
    text = Text(code)
    if theme.dumb or not language or len(code) > _MOST:
        return text
    if max(map(len, code.split("\n"))) > _LONGEST_LINE:
        return text
    text = Syntax("", language.lower(), theme=_syntax_theme(theme)).highlight(code)
    # Without the newline that a lexer may have been given at the end.
    return text[: len(code)]


@lru_cache(maxsize=4)
def _syntax_theme(theme: Theme) -> ANSISyntaxTheme:
    styles = {kind: theme.style(name) for kind, name in _STYLES.items()}
    return ANSISyntaxTheme({kind: Style.parse(style) for kind, style in styles.items() if style})
