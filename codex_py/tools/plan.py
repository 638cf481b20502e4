"""`update_plan`: the model's list of steps, for the user to follow."""

from typing import Annotated, Any, Literal

from codex_py.protocol import event_items, events
from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import objects
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ChangesNothing, ToolParams


@frozen(kw_only=True)
class PlanStep(ToolParams):
    step: Annotated[str, "What is to be done, in a few words."]
    status: Literal["pending", "in_progress", "completed"]


@frozen(kw_only=True)
class UpdatePlanParams(ToolParams):
    explanation: Annotated[str | None, "Why the plan changed, where it did."] = None
    plan: Annotated[list[PlanStep], "All steps, in order."]
    """Any number of steps may be in progress."""


class UpdatePlan(ChangesNothing):
    """The tool of one session. All plans of a turn are versions of one thread item."""

    name = "update_plan"
    params = UpdatePlanParams
    parallel = False

    def __init__(self) -> None:
        self._current: event_items.TodoList | None = None

    async def run(self, params: UpdatePlanParams, context: ToolContext) -> ToolOutput:
        """Replace the plan. The first call of a turn starts the item; later calls update it."""
        previous = self._current
        if previous is None:
            item_id = context.next_item_id()
            event_type = events.ItemStarted
        else:
            item_id = previous.id
            event_type = events.ItemUpdated
        steps = [_entry(step.step, step.status) for step in params.plan]
        self._current = event_items.TodoList(
            id=item_id, items=tuple(steps), explanation=params.explanation
        )
        context.emit(event_type(self._current))
        return ToolOutput("Plan updated")

    def replay(self, call: PastCall, past: PastItems) -> event_items.ThreadItem | None:
        if call.error_code is not None:
            return None
        steps = [
            _entry(str(step.get("step", "")), step.get("status"))
            for step in objects(call.arguments.get("plan"))
        ]
        explanation = call.arguments.get("explanation")
        if not isinstance(explanation, str):
            explanation = None
        return event_items.TodoList(
            id=past.next_id(), items=steps, explanation=explanation
        )

    def end_turn(self, emit: events.EventSink) -> None:
        """Complete the item of this turn, if it has one, in its last state.

        Call it on every path, just before the terminal event of the turn.
        """
        if self._current is not None:
            emit(events.ItemCompleted(self._current))
            self._current = None


def _entry(text: str, status: Any) -> event_items.TodoEntry:
    return event_items.TodoEntry(
        text=text, completed=status == "completed", in_progress=status == "in_progress"
    )
