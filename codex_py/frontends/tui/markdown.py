"""Markdown for a terminal: nothing is left out, and nothing takes more room than its text needs.

Rich has its own Markdown, but it drops HTML, and with it the `<T>` of many sentences, pads code,
centres headings, and hides the targets of links. Source of the syntax:
https://spec.commonmark.org, with tables and strikethrough.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, zip_longest
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from prompt_toolkit.utils import get_cwidth
from rich.box import Box
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from codex_py.frontends.tui.cells.layout import JOINS, Hanging
from codex_py.frontends.tui.highlighting import highlighted
from codex_py.streams.plain_text import plain

_PARSER = MarkdownIt().enable(["strikethrough", "table"])
_COLUMN = 7
"""The least room for each column of a table; a table with less is shown as lists."""
_NARROWEST_CODE = 10
_BETWEEN = 3
"""Blanks between two columns of a table."""
_BOX = Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")
_SAFE_LINK = re.compile(r"(?:https?://|mailto:)[!-~]{1,2000}")
_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60"
_ADDRESS = re.compile(r"\bhttps?://[!-\[\]-~]*[#-&*+/-9=@-Z^-z|~-]")
"""An address, without a bracket after it or a mark that ends the sentence."""
_WORD = re.compile("[!-~]{8,}")
_TASK = re.compile(r"\[([ xX])\] ")
_UNITS = re.compile(f"[{_WIDE}] *|[^ {_WIDE}]+ *| +")
"""A wide character or a word, with the blanks after it."""
_LONGEST_JOINED = 2_000
_INLINE_STYLES = {"em": "emphasis", "strong": "strong", "s": "struck"}


class Markdown:
    """One or more blocks, with an empty line between each two."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        source = plain(self._source, tab=4)
        try:
            tree = SyntaxTreeNode(_PARSER.parse(source))
            shown = _Reader(has_styles=options.is_terminal).blocks(tree.children)
        except RecursionError:
            # The cause is hundreds of nested marks.
            shown = Text(source)
        yield shown


class _Reader:
    """Makes rich objects of the nodes of a parsed text. `has_styles`: False for plain text."""

    def __init__(self, *, has_styles: bool) -> None:
        self._has_styles = has_styles

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> RenderableType:
        """The blocks one below the other."""
        # In a list without empty lines, the paragraphs are hidden.
        blocks = [(self._block(node), not node.hidden) for node in nodes]
        return _together(blocks)

    def _block(self, node: SyntaxTreeNode) -> RenderableType:
        match node.type:
            case "paragraph":
                return _Paragraph(self._text(node))
            case "heading":
                return self._heading(node)
            case "fence" | "code_block":
                words = node.info.split(maxsplit=1)
                language = words[0] if words else ""
                return Code(node.content, language)
            case "blockquote":
                quoted = self.blocks(node.children)
                return Hanging("│ ", quoted, rest="│ ", style="quiet")
            case "bullet_list":
                return self._list(node, None)
            case "ordered_list":
                return self._list(node, int(node.attrs.get("start", 1)))
            case "table":
                return self._table(node)
            case "hr":
                return Text("───", "quiet")
            case _:
                # HTML, above all, stays unchanged.
                return Text(node.content.rstrip("\n"))

    def _heading(self, node: SyntaxTreeNode) -> Text:
        text = self._text(node)
        if not self._has_styles:
            level = int(node.tag.removeprefix("h"))
            return Text(f"{'#' * level} ").append_text(text)
        text.stylize("title" if node.tag == "h1" else "heading")
        return text

    def _list(self, node: SyntaxTreeNode, number: int | None) -> RenderableType:
        """A list. `number`: the first item's number; None for bullets."""
        items: list[tuple[RenderableType, bool]] = []
        for n, item in enumerate(node.children):
            box = _take_box(item)
            if number is not None:
                sign = f"{number + n}. {box}"
            else:
                sign = box or "- "
            is_tight = len(item.children) > 0 and item.children[0].hidden
            body = self.blocks(item.children)
            items.append((Hanging(sign, body, style="quiet"), not is_tight))
        return _together(items)

    def _table(self, node: SyntaxTreeNode) -> "_Table":
        rows: list[list[Text]] = []
        for part in node.children:
            rows += [
                [self._cell(cell) for cell in row.children] for row in part.children
            ]
        return _Table(rows[0], rows[1:])

    def _cell(self, node: SyntaxTreeNode) -> Text:
        text = self._text(node)
        is_right = node.attrs.get("style", "") == "text-align:right"
        text.justify = "right" if is_right else "left"
        return text

    def _text(self, node: SyntaxTreeNode) -> Text:
        text = _Prose()
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
                    _link_addresses(text, start)

    def _target(
        self,
        target: str,
        start: int,
        text: Text,
    ) -> None:
        """Link a text to its target, and show the target if the text differs from it.

        A terminal must not show one address and lead to another.
        """
        label = text.plain[start:]
        if not label:
            text.append(target, "quiet")
        elif target not in {label, f"mailto:{label}"}:
            text.append(f" ({target})", "quiet")
        if _SAFE_LINK.fullmatch(target):
            text.stylize(Style(link=target), start)


def _take_box(item: SyntaxTreeNode) -> str:
    """Take the box of a task, `[ ]` or `[x]`, off an item.

    Returns the sign for it; empty if there is no box.
    """
    if not item.children or not item.children[0].children:
        return ""
    inline = item.children[0].children[0]
    box = _TASK.match(inline.content)
    if box is None:
        return ""
    token = inline.children[0].token
    if token is not None:
        token.content = token.content.removeprefix(box[0])
    if box[1] == " ":
        return "☐ "
    return "☑ "


def _together(blocks: list[tuple[RenderableType, bool]]) -> RenderableType:
    """Blocks one below the other. Each has a flag: True if an empty line stands after it."""
    parts: list[RenderableType] = []
    wants_line = False
    for block, leaves_line in blocks:
        if wants_line:
            parts.append("")
        parts.append(block)
        wants_line = leaves_line
    if len(parts) == 1:
        return parts[0]
    return Group(*parts)


class _Table:
    """A table where its columns have room, else its rows one by one."""

    def __init__(self, header: list[Text], rows: list[list[Text]]) -> None:
        self._header = header
        self._rows = rows

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        if options.max_width < _COLUMN * len(self._header):
            yield from self._as_lists()
            return
        columns = zip_longest(self._header, *self._rows, fillvalue=Text())
        widths = [max(cell.cell_len for cell in column) for column in columns]
        whole = sum(widths) + _BETWEEN * (len(widths) - 1)
        if whole > options.max_width:
            yield self._wrapped()
            return
        yield _row(self._header, widths, "heading")
        yield Text("─" * whole, "quiet")
        yield from (_row(row, widths) for row in self._rows)

    def _as_lists(self) -> RenderResult:
        """Each row as a list of its cells, with the header before each cell."""
        for n, row in enumerate(self._rows):
            if n > 0:
                yield ""
            for name, cell in zip(self._header, row, strict=False):
                label = Text.assemble((name.plain, "heading"), ": ")
                yield label.append_text(cell)

    def _wrapped(self) -> Table:
        """The table with wrapped cells, and with lines between its rows to tell them apart."""
        table = Table(
            box=_BOX,
            show_edge=False,
            pad_edge=False,
            show_lines=True,
            border_style="quiet",
            header_style="heading",
        )
        for cell in self._header:
            table.add_column(cell, justify=cell.justify or "left", overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        return table


def _row(
    cells: Sequence[Text],
    widths: Sequence[int],
    style: str = "",
) -> Text:
    """A row of a table that fits without wrapping; with `Table` it would take 2.6 ms more."""
    row = Text(style=style)
    for n, (cell, width) in enumerate(zip(cells, widths, strict=False)):
        if n > 0:
            row.pad_right(_BETWEEN)
        blanks = " " * (width - cell.cell_len)
        if cell.justify == "right":
            row.append(blanks).append_text(cell)
        else:
            row.append_text(cell).append(blanks)
    return row


class _Prose(Text):
    """Text that is also wrapped between wide characters, which are written without blanks."""

    def wrap(
        self,
        console: Console,
        width: int,
        **how: Any,
    ) -> Lines:
        if self.plain.isascii() or _room(self.plain) == len(self.plain):
            return super().wrap(console, width, **how)
        lines = Lines()
        for line in self.split("\n", allow_blank=True):
            for part in line.divide(_breaks(line.plain, width)):
                part.rstrip()
                # A word may be longer than a row.
                lines.extend(Text.wrap(part, console, width, **how))
        return lines


def _breaks(line: str, width: int) -> list[int]:
    """The places in a line at which its next rows begin."""
    breaks: list[int] = []
    start = 0
    used = 0
    for unit in _UNITS.finditer(line):
        is_too_wide = used + _room(unit[0].rstrip()) > width
        if is_too_wide and unit.start() > start:
            start = unit.start()
            breaks.append(start)
            used = 0
        used += _room(unit[0])
    return breaks


class _Paragraph:
    """Prose that keeps an address or a path whole if it is longer than a row.

    The terminal wraps such a word, to the margin.
    """

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        text = self._text
        start = 0
        for match in _WORD.finditer(text.plain):
            is_long = options.max_width < len(match[0]) <= _LONGEST_JOINED
            is_address_or_path = "/" in match[0]
            # Output that is printed line by line is not wrapped by itself.
            if not (options.is_terminal and is_long and is_address_or_path):
                continue
            yield from _prose(text[start : match.start()])
            word = text[match.start() : match.end()]
            yield from self._joined(console, options, word)
            start = match.end()
        yield from _prose(text[start:] if start else text)

    def _joined(
        self, console: Console, options: ConsoleOptions, word: Text
    ) -> Iterable[Segment]:
        whole_width = max(options.size.width, options.max_width)
        rows = _broken(word, options.max_width, whole_width)
        for n, row in enumerate(rows, 1):
            yield from row.render(console)
            if n < len(rows):
                yield JOINS
            yield Segment.line()


def _broken(
    line: Text,
    first: int,
    other: int,
) -> Sequence[Text]:
    """A line broken anywhere: `first` columns of it, then rows of `other` columns."""
    if line.cell_len <= first:
        return [line]
    text = line.plain
    head = chop_cells(text, first)[0]
    rows = [head, *chop_cells(text[len(head) :], other)]
    ends = list(accumulate(map(len, rows)))
    return list(line.divide(ends[:-1]))


def _prose(text: Text) -> RenderResult:
    """A part of a paragraph, without the blanks and newlines around it."""
    plain_text = text.plain
    first = len(plain_text) - len(plain_text.lstrip())
    part = text[first : len(plain_text.rstrip())]
    if part:
        yield _Prose().append_text(part)


def _link_addresses(text: Text, start: int) -> None:
    """Make each address in the text, from `start` on, a link to itself."""
    for match in _ADDRESS.finditer(text.plain, start):
        if _SAFE_LINK.fullmatch(match[0]):
            text.stylize(Style(link=match[0]), match.start(), match.end())


def _room(text: str) -> int:
    """The most columns that a text takes: not every terminal joins emoji."""
    return max(cell_len(text), get_cwidth(text))


class Code:
    """Lines of code on a background, highlighted if their language is known.

    Long lines are broken anywhere.

    Args:
        sign: stands before the first row; blanks as wide before the other lines.
        joins: a long line can be copied as one: the terminal wraps it, to the margin.
    """

    def __init__(
        self, code: str, language: str, *, sign: str = "", joins: bool = False
    ) -> None:
        self._code = plain(code.removesuffix("\n"), tab=4)
        self._language = language
        self._sign = sign
        self._joins = joins

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        width = options.max_width
        ground = console.get_style("code block")
        language = self._language if options.is_terminal else ""
        sign = self._sign if width > _NARROWEST_CODE else ""
        margin = Segment(sign, console.get_style("quiet"))
        room = width - len(sign)
        lines = highlighted(self._code, language).split("\n", allow_blank=True)
        for line in lines:
            # An endless line would be too much for the terminal.
            joins = self._joins and len(line) <= _LONGEST_JOINED
            rows = _broken(line, room, width if joins else room)
            for n, row in enumerate(rows):
                # The rest of a joined line begins at the margin.
                is_rest = joins and n > 0
                if sign and not is_rest:
                    yield margin
                    margin = Segment(" " * len(sign))
                yield from Segment.apply_style(row.render(console), ground)
                columns = width if is_rest else room
                fill = columns - row.cell_len
                if fill and ground.bgcolor is not None:
                    yield Segment(" " * fill, ground)
                if joins and n + 1 < len(rows):
                    yield JOINS
                yield Segment.line()
