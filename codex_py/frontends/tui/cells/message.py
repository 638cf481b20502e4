"""Cells of what is said: by the user, by the model, and by the program itself."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.styled import Styled
from rich.text import Text

from codex_py.frontends.tui.blocks import Block, Prose
from codex_py.frontends.tui.cells.command import took
from codex_py.frontends.tui.cells.layout import Hanging, below, folded, marked
from codex_py.frontends.tui.markdown import Code, Markdown
from codex_py.frontends.tui.plain import cut, one_line

_PROMPT_HEAD, _PROMPT_TAIL = 30, 10
"""Lines. Of a prompt that holds a whole log, its ends are enough to know it by."""
_MOST_THOUGHT = 8_000
_NOTE_HEAD, _NOTE_TAIL = 40, 10
_SHORT_TURN_MS = 2_000
_NOTE_SIGNS = {"text": "•", "warning": "⚠", "error": "■"}


def user_cell(text: str, images: Sequence[str] = ()) -> RenderableType:
    pictures = "".join(f"\n[image: {path}]" for path in images)
    text = (text + pictures).strip("\n")
    body = folded(text, head=_PROMPT_HEAD, tail=_PROMPT_TAIL, style="user")
    return marked(body, sign="\u203a", style="accent")


def block_cell(block: Block, *, is_start: bool) -> RenderableType:
    """A part of an answer. `is_start`: it gets the answer's mark."""
    if isinstance(block, Prose):
        body = Markdown(block.markdown)
    else:
        body = Code(block.text, block.language)
    return Hanging("• " if is_start else "  ", body, style="quiet")


def reasoning_cell(text: str) -> RenderableType:
    return marked(Styled(Markdown(cut(text.strip(), _MOST_THOUGHT)), "thought"))


def note_cell(text: str, style: str = "text") -> RenderableType:
    """What the program says: a notice (style `text`), a `warning` or an `error`."""
    head = 4 * _NOTE_HEAD if style == "text" else _NOTE_HEAD
    body = folded(text, head=head, tail=_NOTE_TAIL, style=style)
    return marked(body, sign=_NOTE_SIGNS[style], style="quiet" if style == "text" else style)


def denied_cell(tool: str, reason: str) -> RenderableType:
    """A call that was not allowed to run. `reason` is as the model is told."""
    head = Text.assemble((f"{one_line(tool, 100)} ", "action"), "was not allowed")
    return marked(head, below(folded(reason, head=3, tail=1)), sign="✗", style="error")


def reason_cell(reason: str) -> RenderableType:
    """Why a call was not allowed to run, below the cell of the call."""
    return Hanging("  ", below(folded(reason, head=3, tail=1)))


def worked_cell(milliseconds: int) -> RenderableType | None:
    """How long a turn took; None for a short one, which needs no line."""
    if milliseconds < _SHORT_TURN_MS:
        return None
    return Text(f"  Worked for {took(milliseconds)}", "quiet")
