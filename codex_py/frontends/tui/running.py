"""The running calls: those that the model waits for, and commands in the background."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from codex_py.frontends.tui.cells.command import background_cell
from codex_py.frontends.tui.cells.item import live_cell
from codex_py.frontends.tui.fitting import Fragments, beginning_of
from codex_py.frontends.tui.render import Renderer
from codex_py.protocol import event_items, events

_OUTPUT_KEPT = 64_000
"""Characters of the output of a running command."""
_TAIL_ROWS = 5
"""Rows of the output of one running command; several commands share them."""


@dataclass(slots=True)
class _Call:
    """A running call."""

    item: event_items.ThreadItem
    began: float
    """The time when it began, by the clock of `Running`."""
    output: str = ""
    """The end of the call's output, or the last message on its progress."""
    since: str = ""
    """The time of day when it went into the background; empty if it is not there."""


class Running:
    """The running calls of a conversation.

    `clock` returns seconds, and `now` the time of day as it is shown.
    """

    def __init__(self, clock: Callable[[], float], now: Callable[[], str]) -> None:
        self._clock = clock
        self._now = now
        self._calls: dict[str, _Call] = {}
        """The calls by the ids of their items."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def is_calling(self) -> bool:
        """True if the model waits for a call."""
        return not all(each.since for each in self._calls.values())

    def copy(self) -> "Running":
        """The same calls, which from now on change apart from these."""
        copy = Running(self._clock, self._now)
        copy._calls = {item_id: replace(call) for item_id, call in self._calls.items()}
        return copy

    def output_of(self, item_id: str) -> str:
        """The end of a running command's output; empty if it does not run."""
        call = self._calls.get(item_id)
        if call:
            return call.output
        return ""

    def start(self, item: event_items.ThreadItem) -> None:
        """Add a call, or put another state of its item in place of the former one."""
        call = self._calls.get(item.id)
        if call:
            call.item = item
        else:
            self._calls[item.id] = _Call(item, self._clock())

    def go_on(
        self,
        event: events.CommandOutputDelta
        | events.CommandInBackground
        | events.McpToolCallProgress,
    ) -> None:
        """Follow a call while it runs. Events of other calls are ignored."""
        call = self._calls.get(event.item_id)
        if call is None:
            return
        if isinstance(event, events.CommandInBackground):
            call.since = self._now()
        elif isinstance(event, events.CommandOutputDelta):
            call.output = (call.output + event.delta)[-_OUTPUT_KEPT:]
        else:
            call.output = event.message[:_OUTPUT_KEPT]

    def end(self, item_id: str) -> None:
        self._calls.pop(item_id, None)

    def end_turn(self) -> Sequence[event_items.ThreadItem]:
        """Drop all calls but those in the background. Returns the items of the dropped ones."""
        cut_off: list[event_items.ThreadItem] = []
        for item_id, call in list(self._calls.items()):
            if not call.since:
                cut_off.append(call.item)
                del self._calls[item_id]
        return cut_off

    def rows(
        self,
        renderer: Renderer,
        width: int,
        max_rows: int,
    ) -> list[Fragments]:
        """The cells of all calls; if they need too many rows, one row for each call.

        If even these are too many, the last row counts the calls that are left out.
        """
        tail = _TAIL_ROWS // max(1, len(self._calls))
        rows: list[Fragments] = []
        for cell in self._cells(renderer, width, tail=tail):
            rows += [[], *cell]
        if len(rows) <= max_rows:
            return rows
        cells = self._cells(renderer, width, tail=0)
        heads = [beginning_of(cell, 1, width)[0] for cell in cells]
        room = max(max_rows - 2, 0)
        hidden = len(heads) - room
        if hidden > 1:
            more: Fragments = [("class:quiet", f"  … +{hidden} running")]
            heads = [*heads[:room], more]
        rows = [[], *heads]
        return rows[:max_rows]

    def _cells(
        self, renderer: Renderer, width: int, *, tail: int
    ) -> list[list[Fragments]]:
        """The rows of each call, with up to `tail` rows of its output."""
        theme = renderer.theme
        found: list[list[Fragments]] = []
        # Calls that the model waits for come first.
        for call in sorted(self._calls.values(), key=lambda call: call.since != ""):
            item = call.item
            if call.since and isinstance(item, event_items.CommandExecution):
                cell = background_cell(item, call.output, call.since, theme)
            else:
                age_s = self._clock() - call.began
                cell = live_cell(item, call.output, age_s, theme, tail=tail)
            if cell is not None:
                found.append(renderer.fragments(cell, width))
        return found
