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
    item: event_items.ThreadItem
    began: float
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
        copy = Running(self._clock, self._now)
        copy._calls = {key: replace(each) for key, each in self._calls.items()}
        return copy

    def output_of(self, item_id: str) -> str:
        """The end of a running command's output; empty if it does not run."""
        call = self._calls.get(item_id)
        if call:
            return call.output
        return ""

    def start(self, item: event_items.ThreadItem) -> None:
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
        cut_off = [each.item for each in self._calls.values() if not each.since]
        self._calls = {key: each for key, each in self._calls.items() if each.since}
        return cut_off

    def rows(self, renderer: Renderer, width: int, max_rows: int) -> list[Fragments]:
        cells = self._cells(
            renderer, width, tail=_TAIL_ROWS // max(1, len(self._calls))
        )
        rows: list[Fragments] = [row for cell in cells for row in ([], *cell)]
        if len(rows) <= max_rows:
            return rows
        # One row for each call; if these are too many as well, the number of the others.
        cells = self._cells(renderer, width, tail=0)
        heads = [beginning_of(cell, 1, width)[0] for cell in cells]
        room = max(max_rows - 2, 0)
        hidden = len(heads) - room
        if hidden <= 1:
            rows = [[], *heads]
        else:
            more: Fragments = [("class:quiet", f"  … +{hidden} running")]
            rows = [[], *heads[:room], more]
        return rows[:max_rows]

    def _cells(
        self, renderer: Renderer, width: int, *, tail: int
    ) -> list[list[Fragments]]:
        """The rows of each call, with up to `tail` rows of its output."""
        theme = renderer.theme
        found: list[list[Fragments]] = []
        # Calls that the model waits for come first.
        for each in sorted(self._calls.values(), key=lambda each: bool(each.since)):
            if each.since and isinstance(each.item, event_items.CommandExecution):
                cell = background_cell(each.item, each.output, each.since, theme)
            else:
                age = self._clock() - each.began
                cell = live_cell(each.item, each.output, age, theme, tail=tail)
            if cell is not None:
                found.append(renderer.fragments(cell, width))
        return found
