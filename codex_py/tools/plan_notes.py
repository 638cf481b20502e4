"""Keeps the plan of `update_plan` across compactions. LIGHT."""

from collections.abc import Sequence
from typing import Final

from codex_py.protocol.json_fields import json_object, objects, text_field
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import Note, context_texts

_OPENING: Final = "The plan of your last `update_plan`:"


def plan_notes(items: Sequence[EncodedItem]) -> list[Note]:
    """The last plan in a history, as a note for the history after a compaction; empty without a
    plan."""
    for item in reversed(items):
        if b'"update_plan"' in item:
            data = decode_json(item)
            is_plan = (
                data.get("type") == "function_call"
                and data.get("name") == "update_plan"
            )
            if is_plan:
                plan = objects(json_object(text_field(data, "arguments")).get("plan"))
            else:
                plan = []
            lines = [f"- [{step.get('status')}] {step.get('step')}" for step in plan]
            if lines:
                return [Note("\n".join([_OPENING, *lines]))]
        elif text := next(context_texts(_OPENING, [item]), None):
            return [Note(text)]
    return []
