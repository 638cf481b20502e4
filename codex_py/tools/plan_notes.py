"""Keeps the plan that the model wrote with `update_plan` across compactions. LIGHT."""

from collections.abc import Sequence
from typing import Final

from codex_py.protocol.json_fields import json_object, objects, text_field
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import Note, context_texts

_OPENING: Final = "The plan of your last `update_plan`:"


def plan_notes(items: Sequence[EncodedItem]) -> list[Note]:
    """Return the last plan of a history, as a note for the history after a compaction.

    Returns no note if the history has no plan.
    """
    for item in reversed(items):
        if b'"update_plan"' in item:
            text = _plan_of_call(item)
        else:
            # An earlier compaction may have left the note.
            text = next(context_texts(_OPENING, [item]), "")
        if text:
            return [Note(text)]
    return []


def _plan_of_call(item: EncodedItem) -> str:
    """Return the text of the note; empty if the item is no call of `update_plan` with a plan."""
    call = decode_json(item)
    if call.get("type") != "function_call" or call.get("name") != "update_plan":
        return ""
    arguments = json_object(text_field(call, "arguments"))
    steps = objects(arguments.get("plan"))
    lines = [f"- [{step.get('status')}] {step.get('step')}" for step in steps]
    if not lines:
        return ""
    return "\n".join([_OPENING, *lines])
