"""The cell of each kind of item."""

from rich.console import RenderableType

from codex_py.frontends.tui.cells.activity import (
    call_cell,
    calling_cell,
    compaction_cell,
    plan_cell,
    search_cell,
)
from codex_py.frontends.tui.cells.command import command_cell, running_cell
from codex_py.frontends.tui.cells.message import (
    note_cell,
    reasoning_cell,
    user_cell,
    worked_cell,
)
from codex_py.frontends.tui.cells.patch import change_cell, changing_cell
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol import events


def item_cell(item: events.ThreadItem, theme: Theme) -> RenderableType | None:
    """A finished item; None for an answer, which is shown by its blocks."""
    match item:
        case events.UserMessage():
            return user_cell(item.text, theme, images=item.images)
        case events.ReasoningSummary():
            return reasoning_cell(item.text, theme)
        case events.CommandExecution():
            return command_cell(item, theme)
        case events.FileChange():
            return change_cell(item, theme)
        case events.TodoList():
            return plan_cell(item, theme)
        case events.McpToolCall():
            return call_cell(item, theme)
        case events.WebSearch():
            return search_cell(item, theme)
        case events.ErrorItem():
            return note_cell(item.message, theme, "warning")
        case events.ContextCompaction():
            return compaction_cell(item, theme)
        case events.TurnTime(duration_ms=duration_ms):
            return worked_cell(duration_ms, theme)
        case events.AgentMessage():
            return None


def live_cell(
    item: events.ThreadItem, output: str, elapsed_s: float, theme: Theme, *, tail: int
) -> RenderableType | None:
    """An item that is under way; None for one that is shown in another way.

    `output`: the end of what it has printed or said so far, of which `tail` lines may be shown.
    """
    match item:
        case events.CommandExecution():
            return running_cell(item, output, elapsed_s, theme, tail=tail)
        case events.McpToolCall():
            return calling_cell(item, output if tail else "", theme)
        case events.FileChange():
            return changing_cell(item, theme)
        case events.ContextCompaction():
            return compaction_cell(item, theme)
        case _:
            return None
