import asyncio
import json
from pathlib import Path

import pytest

from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import TodoEntry, TodoList
from codex_py.protocol.events import Event, ItemCompleted, ItemStarted, ItemUpdated
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.plan_notes import plan_notes
from tests.support.tool_context import tool_context


def plan(tool: UpdatePlan, turn: ToolContext, *steps: tuple[str, str]) -> ToolOutput:
    plan = [{"step": step, "status": status} for step, status in steps]
    params = tool.params.model_validate({"plan": plan, "explanation": "why"})
    return asyncio.run(tool.run(params, turn))


def todo(item_id: str, *entries: TodoEntry) -> TodoList:
    return TodoList(id=item_id, items=entries, explanation="why")


def test_the_plans_of_a_turn_are_one_item():
    events: list[Event] = []
    tool, turn = UpdatePlan(), tool_context(Path("/"), events.append)
    output = plan(tool, turn, ("a", "in_progress"), ("b", "in_progress"))
    plan(tool, turn, ("a", "completed"), ("b", "pending"))
    tool.end_turn(events.append)
    tool.end_turn(events.append)
    plan(tool, turn)

    a, b = TodoEntry(text="a", completed=True), TodoEntry(text="b", completed=False)
    assert output == ToolOutput("Plan updated")
    assert events == [
        ItemStarted(
            todo(
                "item_0",
                TodoEntry(text="a", completed=False, in_progress=True),
                TodoEntry(text="b", completed=False, in_progress=True),
            )
        ),
        ItemUpdated(todo("item_0", a, b)),
        ItemCompleted(todo("item_0", a, b)),
        ItemStarted(todo("item_1")),
    ]


def test_an_unknown_status_is_refused():
    with pytest.raises(
        ValueError, match=r"invalid value \"done\" for `plan\.0\.status`"
    ):
        UpdatePlan.params.model_validate({"plan": [{"step": "a", "status": "done"}]})


def test_the_last_plan_is_kept_through_compactions() -> None:
    def call(plan: object) -> EncodedItem:
        arguments = json.dumps({"plan": plan})
        fields = {"type": "function_call", "call_id": "c", "name": "update_plan"}
        return EncodedItem(encode_json({**fields, "arguments": arguments}))

    first = call(
        [{"step": "look", "status": "completed"}, {"step": "mend", "status": "pending"}]
    )
    assert plan_notes([message("user", [input_text('"update_plan"')])]) == []
    (note,) = plan_notes(
        [call([{"step": "old", "status": "pending"}]), first, call("none")]
    )
    assert note.text.endswith("\n- [completed] look\n- [pending] mend")
    assert plan_notes([note.encoded(), message("user", [input_text("go on")])]) == [
        note
    ]
    assert plan_notes(
        [note.encoded(), call([{"step": "new", "status": "pending"}])]
    ) != [note]
