"""Sends the notifications of a turn in Plan mode, as Codex does: a plan is an item of its own."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from codex_py.frontends.app_server.turn_items.items import Notify, TurnFeed
from codex_py.frontends.app_server.turn_items.plan_items import (
    Part,
    PlanSplitter,
    ProposedPlan,
    separated,
)
from codex_py.protocol import events
from codex_py.protocol.event_items import AgentMessage


class PlanningFeed(TurnFeed):
    """A feed that separates the plans of answers from the rest of them."""

    def __init__(
        self,
        thread_id: str,
        turn_id: str,
        cwd: Path,
        notify: Notify,
    ) -> None:
        super().__init__(thread_id, turn_id, cwd, notify)
        self._plans = PlanSplitter()

    def take(self, event: events.Event) -> None:
        match event:
            case events.MessageDelta(delta):
                self._stream(self._plans.feed(delta))
            case events.ItemCompleted(AgentMessage() as message):
                self._end_message(message)
            case events.Reconnecting():
                self._plans = PlanSplitter()
                super().take(event)
            case _:
                super().take(event)

    def _stream(self, parts: Iterable[Part]) -> None:
        for is_plan, text in parts:
            if is_plan:
                item_id = self._begin(ProposedPlan(""))
                self._live("item/plan/delta", item_id, delta=text)
            else:
                super().take(events.MessageDelta(text))

    def _end_message(self, message: AgentMessage) -> None:
        """End a message. As in Codex, its plan ends before it."""
        self._stream(self._plans.end())
        parts = separated(message)
        for part in parts:
            # Those that were not streamed get their ids in the order in which they begin.
            self._begin(replace(part, id=""))
        for part in sorted(parts, key=_is_message):
            self._end_item(part)


def _is_message(part: AgentMessage | ProposedPlan) -> bool:
    return isinstance(part, AgentMessage)
