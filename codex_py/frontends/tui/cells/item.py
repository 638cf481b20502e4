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
from codex_py.protocol.events import (
    AgentMessage,
    CommandExecution,
    ContextCompaction,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoList,
    TurnTime,
    UserMessage,
    WebSearch,
)


def item_cell(item: ThreadItem, theme: Theme) -> RenderableType | None:
    """A finished item; None for an answer, which is shown by its blocks."""
    match item:
        case UserMessage():
            return user_cell(item.text, theme, images=item.images)
        case ReasoningSummary():
            return reasoning_cell(item.text, theme)
        case CommandExecution():
            return command_cell(item, theme)
        case FileChange():
            return change_cell(item, theme)
        case TodoList():
            return plan_cell(item, theme)
        case McpToolCall():
            return call_cell(item, theme)
        case WebSearch():
            return search_cell(item, theme)
        case ErrorItem():
            return note_cell(item.message, theme, "warning")
        case ContextCompaction():
            return compaction_cell(item, theme)
        case TurnTime(duration_ms=duration_ms):
            return worked_cell(duration_ms, theme)
        case AgentMessage():
            return None


def live_cell(
    item: ThreadItem, output: str, elapsed_s: float, theme: Theme, *, tail: int
) -> RenderableType | None:
    """An item that is under way; None for one that is shown in another way.

    `output`: the end of what it has printed or said so far, of which `tail` lines may be shown.
    """
    match item:
        case CommandExecution():
            return running_cell(item, output, elapsed_s, theme, tail=tail)
        case McpToolCall():
            return calling_cell(item, output if tail else "", theme)
        case FileChange():
            return changing_cell(item, theme)
        case ContextCompaction():
            return compaction_cell(item, theme)
        case _:
            return None
