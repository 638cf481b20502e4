"""What is shown for each thing that happens in a conversation."""

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.blocks import Block, Code
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.events import (
    CommandExecution,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoList,
    WebSearch,
)


def user_cell(text: str, theme: Theme) -> RenderableType:
    return _marked(theme.glyph("prompt"), Text(printable(text), theme.style("user")), theme)


def error_cell(text: str, theme: Theme) -> RenderableType:
    return _marked(theme.glyph("stop"), Text(printable(text), theme.style("error")), theme)


def notice_cell(text: str, theme: Theme) -> RenderableType:
    return _marked(theme.glyph("bullet"), Text(printable(text), theme.style("quiet")), theme)


def block_cell(block: Block, theme: Theme, *, is_start: bool) -> RenderableType:
    """A part of an answer. `is_start`: it gets the answer's mark."""
    sign = theme.glyph("bullet") if is_start else " "
    if isinstance(block, Code):
        body: RenderableType = Syntax(
            printable(block.text.rstrip("\n")),
            block.language or "text",
            theme=theme.syntax,
            word_wrap=True,
            background_color="default",
        )
    else:
        body = Markdown(printable(block.markdown), code_theme=theme.syntax)
    return _marked(sign, body, theme)


def item_cell(item: ThreadItem, theme: Theme) -> RenderableType | None:
    """A finished item; None for one that is shown in another way."""
    match item:
        case ReasoningSummary():
            return _marked(
                theme.glyph("bullet"), Text(printable(item.text), theme.style("quiet")), theme
            )
        case CommandExecution():
            head = Text("Ran ").append(printable(item.command), theme.style("command"))
            return _marked(
                theme.glyph("bullet"),
                Group(head, Text(printable(item.aggregated_output[-500:]))),
                theme,
            )
        case FileChange():
            return _marked(theme.glyph("bullet"), Text(printable(item.diff)), theme)
        case TodoList():
            return _marked(
                theme.glyph("bullet"), Text("\n".join(printable(e.text) for e in item.items)), theme
            )
        case McpToolCall():
            return _marked(
                theme.glyph("bullet"), Text(printable(f"{item.server}.{item.tool}")), theme
            )
        case WebSearch():
            return _marked(theme.glyph("bullet"), Text(printable(f"Searched {item.query}")), theme)
        case ErrorItem():
            return _marked(
                theme.glyph("stop"), Text(printable(item.message), theme.style("warning")), theme
            )
        case _:
            return None


def live_cell(item: ThreadItem, output: str, theme: Theme) -> RenderableType | None:
    """An item that is under way. `output`: the end of what it has printed so far."""
    match item:
        case CommandExecution():
            head = Text("Running ").append(printable(item.command), theme.style("command"))
            tail = "\n".join(printable(output).splitlines()[-5:])
            return _marked(
                theme.glyph("bullet"), Group(head, Text(tail, theme.style("quiet"))), theme
            )
        case _:
            return None


def _marked(sign: str, body: RenderableType, theme: Theme) -> RenderableType:
    grid = Table.grid(padding=0)
    grid.add_column(width=2)
    grid.add_column(ratio=1)
    grid.add_row(Text(sign, theme.style("quiet")), body)
    return grid
