"""Markdown for a terminal: nothing is left out, and nothing takes more room than its text needs.

Rich has a Markdown of its own. It drops HTML, and with it the `<T>` of many a sentence, pads code, centres
headings, and hides where links lead. Source of the syntax: https://spec.commonmark.org, with tables and
strikethrough.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from codex_py.frontends.tui.cells.layout import Hanging
from codex_py.frontends.tui.plain import plain
from codex_py.frontends.tui.theme import Theme

_PARSER = MarkdownIt().enable(["strikethrough", "table"])
_COLUMN = 7
"""A table with less room for each of its columns is shown as lists."""
_INLINE_STYLES = {"em_open": "emphasis", "strong_open": "strong", "s_open": "struck"}
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


def markdown(source: str, theme: Theme) -> RenderableType:
    """One or several blocks, with an empty line between two of them."""
    return _Reader(_PARSER.parse(plain(source, tab=4)), theme).blocks()


class _Reader:
    """Goes through the tokens once. A method that is given the opening token reads up to the closing one."""

    def __init__(self, tokens: list[Token], theme: Theme) -> None:
        self._tokens = iter(tokens)
        self._theme = theme

    def blocks(self, closing: str = "") -> RenderableType:
        return _together(list(self._until(closing)))

    def _until(self, closing: str) -> Iterator[tuple[RenderableType, bool]]:
        """Blocks, and whether each wants an empty line between it and the next."""
        for token in self._tokens:
            if token.type == closing:
                return
            # Paragraphs of a list without empty lines are hidden ones.
            yield self._block(token), not token.hidden

    def _block(self, token: Token) -> RenderableType:
        match token.type:
            case "paragraph_open":
                return self._text("paragraph_close")
            case "heading_open":
                return self._heading(token)
            case "fence" | "code_block":
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                return Code(token.content, language, self._theme)
            case "blockquote_open":
                bar = f"{self._theme.glyph('bar')} "
                body = self.blocks("blockquote_close")
                return Hanging(bar, body, rest=bar, style=self._theme.style("quiet"))
            case "bullet_list_open":
                return self._list("bullet_list_close", None)
            case "ordered_list_open":
                return self._list("ordered_list_close", int(token.attrs.get("start", 1)))
            case "table_open":
                return self._table()
            case "hr":
                return Text(self._theme.glyph("line") * 3, self._theme.style("quiet"))
            case _:
                # HTML, above all. It stays as it is.
                return Text(token.content.rstrip("\n"))

    def _heading(self, token: Token) -> Text:
        text = self._text("heading_close")
        if self._theme.dumb:
            return Text(f"{'#' * int(token.tag[1:])} ").append_text(text)
        text.stylize(self._theme.style("title" if token.tag == "h1" else "heading"))
        return text

    def _list(self, closing: str, number: int | None) -> RenderableType:
        """`number` is that of the first item."""
        items: list[tuple[RenderableType, bool]] = []
        style = self._theme.style("quiet")
        for token in self._tokens:
            if token.type == closing:
                break
            sign = "- " if number is None else f"{number + len(items)}. "
            blocks = list(self._until("list_item_close"))
            is_loose = all(wants_line for _, wants_line in blocks[:1])
            items.append((Hanging(sign, _together(blocks), style=style), is_loose))
        return _together(items)

    def _table(self) -> RenderableType:
        rows: list[list[Text]] = []
        for token in self._tokens:
            match token.type:
                case "table_close":
                    break
                case "tr_open":
                    rows.append([])
                case "th_open" | "td_open":
                    text = self._text("th_close" if token.type == "th_open" else "td_close")
                    align = str(token.attrs.get("style", "")).removeprefix("text-align:")
                    text.justify = "right" if align == "right" else "left"
                    rows[-1].append(text)
                case _:
                    pass
        return _Table(rows[0], rows[1:], self._theme)

    def _text(self, closing: str) -> Text:
        """The text of a paragraph, a heading or a table cell."""
        text = Text()
        for token in self._tokens:
            if token.type == closing:
                break
            self._inline(token.children or [], text)
        return text

    def _inline(self, tokens: list[Token], text: Text) -> None:
        styles: list[str] = []
        links: list[tuple[str, int]] = []
        """The target of each open one, and where its text begins."""
        for token in tokens:
            style = " ".join(styles)
            match token.type:
                case "em_open" | "strong_open" | "s_open":
                    styles.append(self._theme.style(_INLINE_STYLES[token.type]))
                case "em_close" | "strong_close" | "s_close":
                    styles.pop()
                case "code_inline":
                    text.append(token.content, f"{style} {self._theme.style('code')}".strip())
                case "softbreak" | "hardbreak":
                    # Models break a line where they want it broken.
                    text.append("\n")
                case "link_open":
                    links.append((str(token.attrs.get("href", "")), len(text)))
                    styles.append(self._theme.style("link"))
                case "link_close":
                    styles.pop()
                    self._target(*links.pop(), text)
                case "image":
                    start = len(text)
                    text.append(token.content)
                    self._target(str(token.attrs.get("src", "")), start, text)
                case _:
                    text.append(token.content, style)

    def _target(self, target: str, start: int, text: Text) -> None:
        """A terminal must not show one address and lead to another."""
        label = text.plain[start:]
        if target not in {label, f"mailto:{label}"}:
            text.append(f" ({target})" if label else target, self._theme.style("quiet"))


def _together(blocks: list[tuple[RenderableType, bool]]) -> RenderableType:
    parts: list[RenderableType] = []
    wants_line = False
    for block, leaves_line in blocks:
        if wants_line:
            parts.append("")
        parts.append(block)
        wants_line = leaves_line
    return parts[0] if len(parts) == 1 else Group(*parts)


class _Table:
    """As a table where there is room for its columns, and row by row where there is not."""

    def __init__(self, header: list[Text], rows: list[list[Text]], theme: Theme) -> None:
        self._header = header
        self._rows = rows
        self._theme = theme

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < _COLUMN * len(self._header):
            yield from self._as_lists()
            return
        heading = self._theme.style("heading")
        table = Table(
            box=box.SIMPLE_HEAD if self._theme.unicode else box.ASCII2,
            show_edge=False,
            pad_edge=False,
            border_style=self._theme.style("quiet"),
            header_style=heading,
        )
        for cell in self._header:
            table.add_column(cell, justify=cell.justify or "left", overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        yield table

    def _as_lists(self) -> Iterator[RenderableType]:
        for n, row in enumerate(self._rows):
            if n:
                yield ""
            for name, cell in zip(self._header, row, strict=False):
                label = Text.assemble((name.plain, self._theme.style("heading")), ": ")
                yield label.append_text(cell)


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
