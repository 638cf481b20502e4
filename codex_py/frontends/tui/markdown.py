"""Markdown for a terminal: nothing is left out, and nothing takes more room than its text needs.

Rich has a Markdown of its own. It drops HTML, and with it the `<T>` of many a sentence, pads code, centres
headings, and hides where links lead. Source of the syntax: https://spec.commonmark.org, with tables and
strikethrough.
"""

from collections.abc import Sequence
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
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
        yield _Reader(has_styles=options.is_terminal).blocks(SyntaxTreeNode(tokens).children)


class _Reader:
    def __init__(self, *, has_styles: bool) -> None:
        self._has_styles = has_styles

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> RenderableType:
        # Paragraphs of a list without empty lines are hidden ones.
        return _together([(self._block(node), not node.hidden) for node in nodes])

    def _block(self, node: SyntaxTreeNode) -> RenderableType:
        match node.type:
            case "paragraph":
                return self._text(node)
            case "heading":
                text = self._text(node)
                if not self._has_styles:
                    return Text(f"{'#' * int(node.tag[1:])} ").append_text(text)
                text.stylize("title" if node.tag == "h1" else "heading")
                return text
            case "fence" | "code_block":
                language = node.info.split(maxsplit=1)[0] if node.info.strip() else ""
                return Code(node.content, language)
            case "blockquote":
                return Hanging("│ ", self.blocks(node.children), rest="│ ", style="quiet")
            case "bullet_list":
                return self._list(node, None)
            case "ordered_list":
                return self._list(node, int(node.attrs.get("start", 1)))
            case "table":
                rows = [row for part in node.children for row in part.children]
                header, *body = [[self._cell(cell) for cell in row.children] for row in rows]
                return _Table(header, body)
            case "hr":
                return Text("───", "quiet")
            case _:
                # HTML, above all. It stays as it is.
                return Text(node.content.rstrip("\n"))

    def _list(self, node: SyntaxTreeNode, number: int | None) -> RenderableType:
        """`number` is that of the first item."""
        items: list[tuple[RenderableType, bool]] = []
        for n, item in enumerate(node.children):
            sign = "- " if number is None else f"{number + n}. "
            is_loose = not any(child.hidden for child in item.children[:1])
            items.append((Hanging(sign, self.blocks(item.children), style="quiet"), is_loose))
        return _together(items)

    def _cell(self, node: SyntaxTreeNode) -> Text:
        text = self._text(node)
        is_right = node.attrs.get("style", "") == "text-align:right"
        text.justify = "right" if is_right else "left"
        return text

    def _text(self, node: SyntaxTreeNode) -> Text:
        text = Text()
        for inline in node.children:
            self._inline(inline.children, text)
        return text

    def _inline(self, nodes: Sequence[SyntaxTreeNode], text: Text) -> None:
        for node in nodes:
            start = len(text)
            match node.type:
                case "em" | "strong" | "s":
                    self._inline(node.children, text)
                    text.stylize(_INLINE_STYLES[node.type], start)
                case "code_inline":
                    text.append(node.content, "code")
                case "softbreak" | "hardbreak":
                    # Models break a line where they want it broken.
                    text.append("\n")
                case "link":
                    self._inline(node.children, text)
                    text.stylize("link", start)
                    self._target(str(node.attrs.get("href", "")), start, text)
                case "image":
                    text.append(node.content)
                    self._target(str(node.attrs.get("src", "")), start, text)
                case _:
                    text.append(node.content)

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
