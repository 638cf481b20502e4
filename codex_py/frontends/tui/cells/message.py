"""Cells of what is said: by the user, by the model, and by the program itself."""

from collections.abc import Sequence

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from codex_py.frontends.tui import blocks
from codex_py.frontends.tui.blocks import Block, Prose, Verbatim
from codex_py.frontends.tui.cells.command import took
from codex_py.frontends.tui.cells.layout import Hanging, below, folded, marked, stacked
from codex_py.frontends.tui.plain import cut, one_line, plain
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.theme import Theme

_PROMPT_HEAD, _PROMPT_TAIL = 30, 10
"""Lines. Of a prompt that holds a whole log, its ends are enough to know it by."""
_MOST_THOUGHT = 8_000
_NOTE_HEAD, _NOTE_TAIL = 40, 10
_SHORT_TURN_MS = 2_000


_REHEARSED = "A `word`:\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n"
"""To render it loads what most answers need: the parser, a lexer, tables."""


def rehearse(theme: Theme) -> None:
    """Render a short answer, and drop it: the first real one need not wait for the imports. It blocks."""
    Renderer(theme).text(_markdown().markdown(_REHEARSED, theme), 80)


def _markdown():
    # 70 ms for the parser and the lexers, which are due when the first answer comes.
    from codex_py.frontends.tui import markdown  # noqa: PLC0415

    return markdown


def user_cell(text: str, theme: Theme, *, images: Sequence[str] = ()) -> RenderableType:
    pictures = "".join(f"\n[image: {path}]" for path in images)
    body = folded(
        (text + pictures).strip("\n"), theme, head=_PROMPT_HEAD, tail=_PROMPT_TAIL, style="user"
    )
    return marked(body, theme, glyph="prompt", style="accent")


def block_cell(block: Block, theme: Theme, *, is_start: bool) -> RenderableType:
    """A part of an answer. `is_start`: it gets the answer's mark."""
    body: RenderableType
    match block:
        case blocks.Code():
            body = _markdown().Code(plain(block.text, tab=4), block.language, theme)
        case Prose():
            body = _markdown().markdown(block.markdown, theme)
        case Verbatim():
            body = _Verbatim(plain(block.text))
    sign = f"{theme.glyph('bullet')} " if is_start else "  "
    return Hanging(sign, body, style=theme.style("quiet"))


def reasoning_cell(text: str, theme: Theme) -> RenderableType:
    source = cut(text.strip(), _MOST_THOUGHT, theme.glyph("more"))
    return marked(_Dressed(_markdown().markdown(source, theme), theme.style("thought")), theme)


def note_cell(text: str, theme: Theme, style: str = "text") -> RenderableType:
    """What the program says: a notice (style `text`), a `warning` or an `error`."""
    sign = {"text": "bullet", "warning": "warn", "error": "stop"}[style]
    head = 4 * _NOTE_HEAD if style == "text" else _NOTE_HEAD
    body = folded(text, theme, head=head, tail=_NOTE_TAIL, style=style)
    return marked(body, theme, glyph=sign, style="quiet" if style == "text" else style)


def denied_cell(tool: str, reason: str, theme: Theme) -> RenderableType:
    """A call that was not allowed to run. `reason` is as the model is told."""
    name = one_line(tool, 100, theme.glyph("more"))
    head = Text.assemble((f"{name} ", theme.style("action")), "was not allowed")
    body = stacked([head, below(folded(reason, theme, head=3, tail=1), theme)])
    return marked(body, theme, glyph="no", style="error")


def reason_cell(reason: str, theme: Theme) -> RenderableType:
    """Why a call was not allowed to run, below the cell of the call."""
    return Hanging("  ", below(folded(reason, theme, head=3, tail=1), theme))


def worked_cell(milliseconds: int, theme: Theme) -> RenderableType | None:
    """How long a turn took; None for a short one, which needs no line."""
    if milliseconds < _SHORT_TURN_MS:
        return None
    return Text(f"  Worked for {took(milliseconds)}", theme.style("quiet"))


class _Dressed:
    """Something with a style below its own."""

    def __init__(self, body: RenderableType, style: str) -> None:
        self._body = body
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style(self._style) if self._style else None
        yield from Segment.apply_style(console.render(self._body, options), style)


class _Verbatim:
    """Plain lines, folded where they are too long. Quick, for there may be very many of them."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for line in self._lines:
            fits = len(line) <= width and line.isascii()
            for row in (line,) if fits else chop_cells(line, width):
                yield Segment(f"{row}\n")
