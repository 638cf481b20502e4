"""Shows a conversation: finished cells go to the scrollback, the rest is drawn live."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rich.console import RenderableType
from rich.rule import Rule

from codex_py.frontends.tui.blocks import Block, Blocks
from codex_py.frontends.tui.cells.command import (
    ShownLook,
    explored,
    explored_cell,
)
from codex_py.frontends.tui.cells.item import (
    block_cell,
    denied_cell,
    greeting_cell,
    item_cell,
    note_cell,
    pinned_plan_cell,
    reason_cell,
    reasoning_cell,
    steered_cell,
    thought_cell,
    worked_cell,
)
from codex_py.frontends.tui.cells.markup import heading_of, settled
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.running import Running
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import DENIALS
from codex_py.streams.terminal import aligned

_THOUGHT_KEPT = 2_000
_THOUGHT_ROWS = 4
"""Rows of the model's thought while it thinks."""
_LEAST_RUNNING_ROWS = 2
_LEAST_PLAN_ROWS = 2
_PLAN_SHARE = 3
"""The plan gets a third of the rows that may still change; a longer plan is folded."""
_REPLAYED_ITEMS = 300
_REPLAYED_CHARACTERS = 200_000
"""The part at the end of an earlier conversation that is shown."""

_INTERRUPTED = f"{event_items.INTERRUPTED} - say what to do instead"


@dataclass(slots=True)
class _Answer:
    blocks: Blocks = field(default_factory=Blocks)
    streamed: list[str] = field(default_factory=list[str])
    is_printed: bool = False
    """True if at least the beginning is printed."""


class Transcript:
    """The `EventSink` that shows a conversation.

    Args:
        emit: shows a cell that never changes again; after an empty line if the second argument is
            True.
        changed: called when `live` returns something else.
        clock: seconds.
        now: the time of day, as it is shown.

    Attributes:
        running: the calls that have not ended.
    """

    def __init__(
        self,
        renderer: Renderer,
        emit: Callable[[RenderableType, bool], None],
        *,
        changed: Callable[[], None] = lambda: None,
        show_reasoning: bool = True,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = lambda: time.strftime("%H:%M"),
    ) -> None:
        self.renderer = renderer
        self._emit = emit
        self._changed = changed
        self._show_reasoning = show_reasoning
        self._clock = clock
        self._now = now
        self._is_empty = True
        self._answer = _Answer()
        self._is_declined = False
        """True if the last printed cell is a call that was not allowed."""
        self._looks: list[ShownLook] = []
        """The looks of ended commands that only looked at files; any other cell ends the list."""
        self._reasoning = ""
        self._part = 0
        """The number of the current part of the reasoning."""
        self._thought_since = 0.0
        self.running = Running(clock, now)
        self._plan: event_items.TodoList | None = None
        """The plan of the running turn."""
        self._turn_began: float | None = None
        self._drawn: tuple[tuple[int, int, int, Theme], list[Fragments]] | None = None
        """The rows of the last frame, and their key: width, height, second and theme."""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.MessageDelta(delta):
                self._answer.streamed.append(delta)
                self._answer.blocks.feed(delta)
                self._print_blocks(self._answer.blocks.take())
            case events.ReasoningSummaryDelta(delta, part):
                self._think(delta, part)
            case (
                events.CommandOutputDelta()
                | events.CommandInBackground()
                | events.McpToolCallProgress()
            ):
                self.running.go_on(event)
            case events.ItemStarted(item) | events.ItemUpdated(item):
                self._start(item)
            case events.ItemCompleted(item) if not _has_been_told(item):
                self._complete(item)
            case events.CallDenied(tool, reason):
                self._deny(tool, reason)
            case events.Reconnecting():
                self._restart_answer()
                self._reasoning = ""
            case events.TurnStarted():
                self._turn_began = self._clock()
            case events.TurnCompleted() | events.TurnFailed():
                self._end_turn(event)
            case _:
                return
        if self._turn_began is None:
            self._end_looks()
        self._redraw()

    @property
    def heading(self) -> str:
        """The heading of the model's present thought."""
        return heading_of(self._reasoning)

    @property
    def is_answering(self) -> bool:
        """True if the next cell continues an answer."""
        return self._answer.is_printed

    def follow(self, other: "Transcript") -> None:
        """Take over unfinished work from another transcript; finished items have been replayed."""
        self._clock = other._clock
        self._turn_began = other._turn_began
        self.running = other.running.copy()
        self(events.MessageDelta(other.unfinished))

    @property
    def unfinished(self) -> str:
        """The part of the answer that has arrived."""
        return "".join(self._answer.streamed)

    def greet(self, text: str, hint: str) -> None:
        """Show the model, and how to begin, below the name of the program."""
        self.print(greeting_cell(text, hint), space=not self._is_empty)

    def notice(self, text: str, style: str = "text") -> None:
        """Show a message. `style`: `text`, `warning` or `error`."""
        self.print(note_cell(text, style))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        lines = [line.rstrip() for line in aligned(rows)]
        self.notice("\n".join(lines))

    def separate(self, text: str) -> None:
        """Draw a line with a notice below it."""
        self.print(Rule(style="quiet"))
        self.print(note_cell(text), space=False)

    def replay(self, items: Sequence[event_items.ThreadItem]) -> None:
        """Show an earlier conversation; if the theme folds, only the end of a long one."""
        first = 0
        if self.renderer.theme.folds:
            first = _first_replayed(items)
        if first:
            self.notice(f"{first} earlier items are not shown")
        for n, item in enumerate(items[first:], first):
            is_plan = isinstance(item, event_items.TodoList)
            if is_plan and _is_renewed(items[n + 1 :]):
                continue
            self._complete(item)
            reason = _refusal(item)
            if reason:
                self._deny("", reason)
        self._end_looks()
        self._redraw()

    def print(self, cell: RenderableType, *, space: bool = True) -> None:
        """Show a cell for good, after an empty line if `space`."""
        self._end_looks()
        self._is_declined = False
        self._is_empty = False
        self._emit(cell, space)

    def _end_looks(self) -> None:
        looks = self._looks
        self._looks = []
        if looks:
            self.print(explored_cell(looks, self.renderer.theme))

    def live(self, width: int, max_rows: int) -> list[Fragments]:
        """The rows that may still change; if they are too many, the important ones."""
        # Rows show the age of running calls in seconds, and so are valid for one second.
        second = int(self._clock()) if self.running else 0
        key = (width, max_rows, second, self.renderer.theme)
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = key, self._live_rows(width, max_rows)
        return self._drawn[1]

    def _live_rows(self, width: int, max_rows: int) -> list[Fragments]:
        plan = self._plan_rows(width, max_rows)
        running_room = max(_LEAST_RUNNING_ROWS, max_rows - len(plan))
        running = self.running.rows(self.renderer, width, min(max_rows, running_room))
        plan_room = max_rows - len(running)
        if len(plan) > plan_room:
            plan = self._plan_rows(width, plan_room)
        bottom = [*running, *plan]
        room = max_rows - len(bottom)
        if room <= 0:
            return bottom
        rows = [*self._thinking_rows(width), *self._answer_rows(width)]
        return [*rows[-room:], *bottom]

    def _thinking_rows(self, width: int) -> list[Fragments]:
        """The looks at files that no other cell has ended, and the end of the present thought."""
        rows: list[Fragments] = []
        if self._looks:
            cell = explored_cell(self._looks, self.renderer.theme)
            rows += [[], *self.renderer.fragments(cell, width)]
        if self._show_reasoning and self._reasoning.strip():
            cell = reasoning_cell(settled(self._reasoning))
            thought = self.renderer.fragments(cell, width)
            rows += [[], *thought[-_THOUGHT_ROWS:]]
        return rows

    def _answer_rows(self, width: int) -> list[Fragments]:
        """The block of the answer that is not complete."""
        rest = self._answer.blocks.rest
        if rest is None:
            return []
        if rest.language is None:
            rest = replace(rest, text=settled(rest.text))
        cell = block_cell(rest, is_start=not self._answer.is_printed)
        rows = self.renderer.fragments(cell, width)
        if rest.is_spaced:
            return [[], *rows]
        return rows

    def _plan_rows(self, width: int, max_rows: int) -> list[Fragments]:
        """The plan of this turn until it is done, below an empty row.

        On a low screen, only the steps around the one in progress are shown.
        """
        if self._plan is None or not _steps_left(self._plan):
            return []
        share = max(_LEAST_PLAN_ROWS, max_rows // _PLAN_SHARE)
        most = min(share, max_rows - 1)
        cell = pinned_plan_cell(self._plan, width, most - 1)
        rows = self.renderer.fragments(cell, width)
        if max_rows > 1:
            return [[], *rows][:max_rows]
        return rows[: max(0, max_rows)]

    def _start(self, item: event_items.ThreadItem) -> None:
        if isinstance(item, event_items.TodoList):
            if item != self._plan and not _steps_left(item):
                # Above the answer, which is read last.
                self._show(item)
            self._plan = item
        else:
            self.running.start(item)

    def _complete(self, item: event_items.ThreadItem) -> None:
        self.running.end(item.id)
        match item:
            case event_items.AgentMessage(text=text):
                streamed = self.unfinished
                if text.startswith(streamed):
                    # The whole answer, or its end, may come without being streamed.
                    self._answer.blocks.feed(text[len(streamed) :])
                self._end_answer()
            case event_items.ReasoningSummary():
                self._end_thought(item.text)
            case event_items.UserMessage() if self._turn_began is not None:
                folds = self.renderer.theme.folds
                self.print(steered_cell(item.text, item.images, folds=folds))
            case event_items.TodoList() if self._plan is not None:
                self._start(item)
            case _:
                self._show(item)

    def _show(self, item: event_items.ThreadItem) -> None:
        if isinstance(item, event_items.CommandExecution):
            looks = explored(item, self.renderer.theme.shell)
            if looks:
                self._looks += looks
                return
        cell = item_cell(item, self.renderer.theme)
        if cell is not None:
            self.print(cell)
            has_declined_status = getattr(item, "status", "") == "declined"
            self._is_declined = has_declined_status or _refusal(item) != ""

    def _deny(self, tool: str, reason: str) -> None:
        if self._is_declined:
            self.print(reason_cell(reason), space=False)
        else:
            self.print(denied_cell(tool, reason))

    def _print_blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            cell = block_cell(block, is_start=not self._answer.is_printed)
            self.print(cell, space=block.is_spaced)
            self._answer.is_printed = True

    def _restart_answer(self) -> None:
        if self._answer.is_printed:
            self._end_answer()
            self.notice("The answer broke off here and comes again", "warning")
        self._answer = _Answer()

    def _end_answer(self) -> None:
        self._print_blocks(self._answer.blocks.finish())
        hidden = self._answer.blocks.hidden
        if hidden:
            text = f"The last {hidden:,} characters of the answer are not shown"
            self.notice(text, "warning")
        self._answer = _Answer()

    def _end_turn(self, event: events.TurnCompleted | events.TurnFailed) -> None:
        self._end_answer()
        # The end of the turn may have cut off a thought.
        self._end_thought(self._reasoning)
        for item in self.running.end_turn():
            if isinstance(item, event_items.FileChange | event_items.McpToolCall):
                self._show(replace(item, status="failed"))
        began = self._turn_began
        self._turn_began = None
        plan = self._plan
        self._plan = None
        left = 0 if plan is None else _steps_left(plan)
        if isinstance(event, events.TurnCompleted):
            worked_s = 0 if began is None else int(self._clock() - began)
            steps = _steps_text(left)
            diff = event.diff or ""
            self.print(worked_cell(worked_s * 1000, steps, diff, self._now()))
            return
        if plan is not None and left:
            self._show(plan)
        if event.error.code == "aborted":
            self.notice(_INTERRUPTED, "error")
        else:
            self.notice(event.error.message, "error")

    def _think(self, delta: str, part: int) -> None:
        if not self._reasoning:
            self._thought_since = self._clock()
        elif part != self._part:
            delta = f"\n\n{delta}"
        self._part = part
        self._reasoning = (self._reasoning + delta)[-_THOUGHT_KEPT:]

    def _end_thought(self, text: str) -> None:
        """Print a thought folded to a line; the overlay shows all of it."""
        is_shown = self._show_reasoning and text.strip()
        if is_shown and not self.renderer.theme.folds:
            self.print(reasoning_cell(text))
        elif is_shown:
            seconds = 0.0
            if self._reasoning:
                seconds = self._clock() - self._thought_since
            self.print(thought_cell(text, int(seconds)))
        self._reasoning = ""

    def _redraw(self) -> None:
        self._drawn = None
        self._changed()


def _has_been_told(item: event_items.ThreadItem) -> bool:
    """True for a refusal, which `CallDenied` reports."""
    return isinstance(item, event_items.ErrorItem) and item.code in DENIALS


def _steps_left(plan: event_items.TodoList) -> int:
    return sum(not entry.completed for entry in plan.items)


def _steps_text(count: int) -> str:
    if count == 0:
        return ""
    if count == 1:
        return "1 step left"
    return f"{count} steps left"


def _first_replayed(items: Sequence[event_items.ThreadItem]) -> int:
    """The index of the first item to show: there are limits on the items and on their text."""
    least = max(0, len(items) - _REPLAYED_ITEMS)
    first = len(items)
    size = 0
    while first > least and size < _REPLAYED_CHARACTERS:
        first -= 1
        item = items[first]
        if isinstance(item, event_items.AgentMessage):
            size += len(item.text)
        else:
            size += 1_000
    return first


def _is_renewed(following: Sequence[event_items.ThreadItem]) -> bool:
    """True if a later state of a plan follows in the same turn."""
    kinds = (event_items.TodoList, event_items.UserMessage)
    wanted = (item for item in following if isinstance(item, kinds))
    return isinstance(next(wanted, None), event_items.TodoList)


def _refusal(item: event_items.ThreadItem) -> str:
    """The reason why a call of an earlier conversation was declined.

    For a live call, an event gives the reason.
    """
    match item:
        case event_items.CommandExecution(status="declined", aggregated_output=reason):
            return reason
        case event_items.FileChange(is_declined=True, error={"message": reason}):
            return reason
        case _:
            return ""
