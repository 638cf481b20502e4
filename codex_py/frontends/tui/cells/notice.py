"""What the program itself says: notices, warnings, errors, how a turn ended."""

from rich.console import RenderableType
from rich.text import Text

from codex_py.frontends.tui.cells.command import took
from codex_py.frontends.tui.cells.layout import Hanging, below, folded, marked, stacked
from codex_py.frontends.tui.plain import one_line
from codex_py.frontends.tui.theme import Theme

_HEAD, _TAIL = 40, 10
_SHORT_TURN_MS = 2_000


def notice_cell(text: str, theme: Theme) -> RenderableType:
    return marked(folded(text, theme, head=4 * _HEAD, tail=_TAIL, style="text"), theme)


def warning_cell(text: str, theme: Theme) -> RenderableType:
    body = folded(text, theme, head=_HEAD, tail=_TAIL, style="warning")
    return marked(body, theme, glyph="warn", style="warning")


def error_cell(text: str, theme: Theme) -> RenderableType:
    body = folded(text, theme, head=_HEAD, tail=_TAIL, style="error")
    return marked(body, theme, glyph="stop", style="error")


def denied_cell(tool: str, reason: str, theme: Theme) -> RenderableType:
    """A call that was not let run. `reason` is as the model is told."""
    name = one_line(tool, 100, theme.glyph("more"))
    head = Text.assemble((f"{name} ", theme.style("action")), "was not allowed")
    body = stacked([head, below(folded(reason, theme, head=3, tail=1), theme)])
    return marked(body, theme, glyph="no", style="error")


def reason_cell(reason: str, theme: Theme) -> RenderableType:
    """Why a call was not let run, below the cell of the call."""
    return Hanging("  ", below(folded(reason, theme, head=3, tail=1), theme))


def interrupted_cell(theme: Theme) -> RenderableType:
    text = "Conversation interrupted - say what to do instead"
    return error_cell(text, theme)


def worked_cell(milliseconds: int, theme: Theme) -> RenderableType | None:
    """How long a turn took; None for a short one, which needs no line that says it."""
    if milliseconds < _SHORT_TURN_MS:
        return None
    return Text(f"  Worked for {took(milliseconds)}", theme.style("quiet"))
