"""Markdown for a terminal: nothing is left out, and nothing takes more room than its text needs.

Rich has a Markdown of its own. It drops HTML, and with it the `<T>` of many a sentence, pads code, centres
headings, and hides where links lead. Source of the syntax: https://spec.commonmark.org, with tables and
strikethrough.
"""

from collections.abc import Iterator
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from codex_py.frontends.tui.cells.layout import Hanging
from codex_py.streams.plain_text import plain

_PARSER = MarkdownIt().enable(["strikethrough", "table"])
_COLUMN = 7
"""A table with less room for each of its columns is shown as lists."""
_INLINE_STYLES = {"em": "emphasis", "strong": "strong", "s": "struck"}
_MOST = 20_000
"""Characters of code that are coloured. Lexers take their time, and some of them far more than others."""
_LONGEST_LINE = 2_000

_KINDS = {
    "syntax comment": "Comment",
    "syntax keyword": "Keyword Operator.Word Name.Decorator Name.Tag",
    "syntax type": "Keyword.Type Name.Class Name.Exception",
    "syntax name": "Name.Function Name.Namespace Name.Attribute",
    "syntax string": "Literal.String",
    "syntax number": "Literal.Number",
    "syntax markup": "Generic.Heading Generic.Subheading Generic.Strong",
    "removed": "Generic.Deleted",
    "added": "Generic.Inserted",
}
"""The kinds of pygments that have each style."""


class Markdown:
    """One or several blocks, with an empty line between two of them."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tokens = _PARSER.parse(plain(self._source, tab=4))
        yield _Reader(tokens, has_styles=options.is_terminal).blocks()


class _Reader:
    """Goes through the tokens once. A method that is given the opening token reads up to the closing one."""

    def __init__(self, tokens: list[Token], *, has_styles: bool) -> None:
        self._tokens = iter(tokens)
        self._has_styles = has_styles

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
                text = self._text("heading_close")
                if not self._has_styles:
                    return Text(f"{'#' * int(token.tag[1:])} ").append_text(text)
                text.stylize("title" if token.tag == "h1" else "heading")
                return text
            case "fence" | "code_block":
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                return Code(token.content, language)
            case "blockquote_open":
                return Hanging("│ ", self.blocks("blockquote_close"), rest="│ ", style="quiet")
            case "bullet_list_open":
                return self._list("bullet_list_close", None)
            case "ordered_list_open":
                return self._list("ordered_list_close", int(token.attrs.get("start", 1)))
            case "table_open":
                return self._table()
            case "hr":
                return Text("───", "quiet")
            case _:
                # HTML, above all. It stays as it is.
                return Text(token.content.rstrip("\n"))

    def _list(self, closing: str, number: int | None) -> RenderableType:
        """`number` is that of the first item."""
        items: list[tuple[RenderableType, bool]] = []
        for token in self._tokens:
            if token.type == closing:
                break
            sign = "- " if number is None else f"{number + len(items)}. "
            blocks = list(self._until("list_item_close"))
            is_loose = all(wants_line for _, wants_line in blocks[:1])
            items.append((Hanging(sign, _together(blocks), style="quiet"), is_loose))
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
        return _Table(rows[0], rows[1:])

    def _text(self, closing: str) -> Text:
        text = Text()
        for token in self._tokens:
            if token.type == closing:
                break
            self._inline(token.children or [], text)
        return text

    def _inline(self, tokens: list[Token], text: Text) -> None:
        opened: list[int] = []
        """Where the text of each open style and link begins."""
        targets: list[str] = []
        for token in tokens:
            match token.type:
                case "em_open" | "strong_open" | "s_open":
                    opened.append(len(text))
                case "em_close" | "strong_close" | "s_close":
                    text.stylize(_INLINE_STYLES[token.tag], opened.pop())
                case "code_inline":
                    text.append(token.content, "code")
                case "softbreak" | "hardbreak":
                    # Models break a line where they want it broken.
                    text.append("\n")
                case "link_open":
                    opened.append(len(text))
                    targets.append(str(token.attrs.get("href", "")))
                case "link_close":
                    start = opened.pop()
                    text.stylize("link", start)
                    self._target(targets.pop(), start, text)
                case "image":
                    start = len(text)
                    text.append(token.content)
                    self._target(str(token.attrs.get("src", "")), start, text)
                case _:
                    text.append(token.content)

    def _target(self, target: str, start: int, text: Text) -> None:
        """A terminal must not show one address and lead to another."""
        label = text.plain[start:]
        if target not in {label, f"mailto:{label}"}:
            text.append(f" ({target})" if label else target, "quiet")


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

    def __init__(self, header: list[Text], rows: list[list[Text]]) -> None:
        self._header = header
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < _COLUMN * len(self._header):
            for n, row in enumerate(self._rows):
                if n:
                    yield ""
                for name, cell in zip(self._header, row, strict=False):
                    label = Text.assemble((name.plain, "heading"), ": ")
                    yield label.append_text(cell)
            return
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            border_style="quiet",
            header_style="heading",
        )
        for cell in self._header:
            table.add_column(cell, justify=cell.justify or "left", overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        yield table


class Code:
    """A program, coloured if its language is known; or just lines. Long ones are cut anywhere."""

    def __init__(self, code: str, language: str) -> None:
        self._code = plain(code.removesuffix("\n"), tab=4)
        self._language = language.lower()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        lines = self._code.split("\n")
        is_plain = not self._language or not options.is_terminal or len(self._code) > _MOST
        if is_plain or max(map(len, lines)) > _LONGEST_LINE:
            # Quick, for there may be very many of them.
            for line in lines:
                fits = len(line) <= width and line.isascii()
                for row in (line,) if fits else chop_cells(line, width):
                    yield Segment(f"{row}\n")
            return
        styles = {name: console.get_style(name) for name in _KINDS}
        theme = ANSISyntaxTheme(
            {
                tuple(kind.split(".")): style
                for name, style in styles.items()
                for kind in _KINDS[name].split()
                if style
            }
        )
        text = Syntax("", self._language, theme=theme).highlight(self._code)
        # Without the newline that a lexer may have been given at the end.
        for line in text[: len(self._code)].split("\n", allow_blank=True):
            rows = chop_cells(line.plain, width) if line.cell_len > width else []
            for row in line.divide(list(accumulate(map(len, rows[:-1])))):
                yield from row.render(console, end="\n")
