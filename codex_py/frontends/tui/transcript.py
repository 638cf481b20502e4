"""A conversation as it is shown: finished cells go to the scrollback, the rest is drawn live."""

from collections.abc import Callable

from rich.console import RenderableType

from codex_py.frontends.tui.blocks import Block, Blocks
from codex_py.frontends.tui.cells import (
    block_cell,
    error_cell,
    item_cell,
    live_cell,
    notice_cell,
    user_cell,
)
from codex_py.frontends.tui.render import Fragments, Renderer
from codex_py.protocol.events import (
    AgentMessage,
    CommandOutputDelta,
    Error,
    Event,
    ItemCompleted,
    ItemStarted,
    ItemUpdated,
    MessageDelta,
    ReasoningSummary,
    ReasoningSummaryDelta,
    ThreadItem,
    TurnFailed,
    TurnStarted,
    UserMessage,
)

_OUTPUT_KEPT = 4_000
"""Characters of the output of a running command."""


class Transcript:
    """An `EventSink`.

    Args:
        print_lines: takes lines for good.
        changed: is told that `live` gives something else now.
        width: columns.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        print_lines: Callable[[str], None],
        changed: Callable[[], None],
        width: Callable[[], int],
        show_reasoning: bool = True,
    ) -> None:
        self._renderer = renderer
        self._theme = renderer.theme
        self._print_lines = print_lines
        self._changed = changed
        self._width = width
        self._show_reasoning = show_reasoning
        self._blocks = Blocks()
        self._has_begun = False
        """Something of the answer that is arriving has been printed."""
        self._reasoning = ""
        self._running: dict[str, ThreadItem] = {}
        self._output: dict[str, str] = {}
        self._reconnecting: str | None = None
        self._drawn: tuple[object, list[Fragments]] | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case MessageDelta(delta):
                self._blocks.feed(delta)
                self._print_blocks(self._blocks.take())
            case ReasoningSummaryDelta(delta):
                self._reasoning += delta
            case CommandOutputDelta(item_id, delta):
                self._output[item_id] = (self._output.get(item_id, "") + delta)[-_OUTPUT_KEPT:]
            case ItemStarted(item) | ItemUpdated(item):
                self._running[item.id] = item
            case ItemCompleted(item):
                self._complete(item)
            case TurnStarted():
                self._reconnecting = None
            case Error(message, retryable=True):
                self._reconnecting = message
            case TurnFailed(error):
                self._end_turn()
                self.print(error_cell(error.message, self._theme))
            case _:
                if event.type == "turn.completed":
                    self._end_turn()
        self._changed()

    def user(self, text: str) -> None:
        self.print(user_cell(text, self._theme))

    def notice(self, text: str) -> None:
        self.print(notice_cell(text, self._theme))

    def error(self, text: str) -> None:
        self.print(error_cell(text, self._theme))

    def diff(self, diff: str) -> None:
        self.print(notice_cell(diff, self._theme))

    def print(self, cell: RenderableType, *, space: bool = True) -> None:
        """Show something for good, with an empty line before it if `space`."""
        text = self._renderer.text(cell, self._width())
        self._print_lines(f"\n{text}" if space else text)

    def live(self, width: int, max_rows: int) -> list[Fragments]:
        """The last rows of what may still change."""
        lines: list[Fragments] = []
        for cell in self._live_cells():
            lines.append([])
            lines += self._renderer.fragments(cell, width)
        return lines[-max_rows:]

    def _live_cells(self) -> list[RenderableType]:
        cells: list[RenderableType] = []
        if self._show_reasoning and self._reasoning:
            cells.append(notice_cell(self._reasoning, self._theme))
        if (rest := self._blocks.rest) is not None:
            cells.append(block_cell(rest, self._theme, is_start=not self._has_begun))
        for item in self._running.values():
            cell = live_cell(item, self._output.get(item.id, ""), self._theme)
            if cell is not None:
                cells.append(cell)
        if self._reconnecting is not None:
            cells.append(notice_cell(self._reconnecting, self._theme))
        return cells

    def _complete(self, item: ThreadItem) -> None:
        self._running.pop(item.id, None)
        self._output.pop(item.id, None)
        self._reconnecting = None
        match item:
            case UserMessage(text=text):
                self.user(text)
            case AgentMessage(text=text):
                if not self._has_begun and self._blocks.rest is None:
                    # It came whole, without having been streamed.
                    self._blocks.feed(text)
                self._end_message()
            case ReasoningSummary():
                self._reasoning = ""
                if self._show_reasoning and (cell := item_cell(item, self._theme)) is not None:
                    self.print(cell)
            case _:
                if (cell := item_cell(item, self._theme)) is not None:
                    self.print(cell)

    def _print_blocks(self, blocks: list[Block]) -> None:
        for block in blocks:
            cell = block_cell(block, self._theme, is_start=not self._has_begun)
            self.print(cell, space=block.is_first)
            self._has_begun = True

    def _end_message(self) -> None:
        self._print_blocks(self._blocks.finish())
        self._blocks = Blocks()
        self._has_begun = False

    def _end_turn(self) -> None:
        """Print what was cut off."""
        self._end_message()
        self._reasoning = ""
        self._running.clear()
        self._output.clear()
        self._reconnecting = None
