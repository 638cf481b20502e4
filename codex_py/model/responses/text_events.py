"""What each event that carries text does to the slot it belongs to, and what it is to whoever watches."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from codex_py.model.responses.parts import JsonObject, part_kind, well_formed
from codex_py.model.responses.slots import Slot
from codex_py.protocol.stream import (
    OutputTextDelta,
    ReasoningDelta,
    ResponseEvent,
    ToolInputDelta,
)

TakeDelta: TypeAlias = Callable[[Slot, JsonObject, str], ResponseEvent | None]
TakeText: TypeAlias = Callable[[Slot, JsonObject], None]

_MESSAGE = ("message",)
_REASONING = ("reasoning",)
_CUSTOM_CALL = ("custom_tool_call",)
_ANY_CALL = ("function_call", "custom_tool_call")


def _text_delta(slot: Slot, event: JsonObject, delta: str) -> ResponseEvent:
    slot.content_part(integer_field(event, "content_index"), "output_text").text.append(delta)
    return OutputTextDelta(slot.index, well_formed(delta))


def _refusal_delta(slot: Slot, event: JsonObject, delta: str) -> ResponseEvent:
    slot.content_part(integer_field(event, "content_index"), "refusal").text.append(delta)
    return OutputTextDelta(slot.index, well_formed(delta))


def _summary_delta(slot: Slot, event: JsonObject, delta: str) -> ResponseEvent:
    part = slot.summary_part(integer_field(event, "summary_index"))
    part.text.append(delta)
    return ReasoningDelta(slot.index, well_formed(delta), part.index)


def _reasoning_delta(slot: Slot, event: JsonObject, delta: str) -> ResponseEvent:
    part = slot.content_part(integer_field(event, "content_index"), "reasoning_text")
    part.text.append(delta)
    return ReasoningDelta(slot.index, well_formed(delta), part.index, raw=True)


def _arguments_delta(slot: Slot, _event: JsonObject, delta: str) -> ResponseEvent | None:
    slot.arguments.append(delta)
    if slot.kind != "function_call":
        # LiteLLM streams the input of a custom call like this, wrapped in JSON: not for the eye.
        return None
    return ToolInputDelta(slot.index, well_formed(delta))


def _input_delta(slot: Slot, _event: JsonObject, delta: str) -> ResponseEvent:
    slot.input.append(delta)
    return ToolInputDelta(slot.index, well_formed(delta))


DELTAS: Mapping[str, tuple[tuple[str, ...], TakeDelta]] = {
    "response.output_text.delta": (_MESSAGE, _text_delta),
    "response.refusal.delta": (_MESSAGE, _refusal_delta),
    "response.reasoning_summary_text.delta": (_REASONING, _summary_delta),
    "response.summary_text.delta": (_REASONING, _summary_delta),
    "response.reasoning_text.delta": (_REASONING, _reasoning_delta),
    # The name that Open Responses has for it.
    "response.reasoning.delta": (_REASONING, _reasoning_delta),
    "response.function_call_arguments.delta": (_ANY_CALL, _arguments_delta),
    "response.custom_tool_call_input.delta": (_CUSTOM_CALL, _input_delta),
}
"""By event type: the types of item that the delta can belong to, and what takes it."""


def _text_done(slot: Slot, event: JsonObject) -> None:
    part = slot.content_part(integer_field(event, "content_index"), "output_text")
    part.text.finish(text_field(event, "text"))


def _refusal_done(slot: Slot, event: JsonObject) -> None:
    part = slot.content_part(integer_field(event, "content_index"), "refusal")
    part.text.finish(text_field(event, "refusal"))


def _annotation_added(slot: Slot, event: JsonObject) -> None:
    part = slot.content_part(integer_field(event, "content_index"), "output_text")
    known = part.fields.setdefault("annotations", [])
    if isinstance(known, list):
        cast("list[object]", known).append(event.get("annotation"))


def _summary_part_added(slot: Slot, event: JsonObject) -> None:
    slot.summary_part(integer_field(event, "summary_index")).announce(object_field(event, "part"))


def _summary_part_done(slot: Slot, event: JsonObject) -> None:
    slot.summary_part(integer_field(event, "summary_index")).finish(object_field(event, "part"))


def _summary_done(slot: Slot, event: JsonObject) -> None:
    slot.summary_part(integer_field(event, "summary_index")).text.finish(text_field(event, "text"))


def _reasoning_done(slot: Slot, event: JsonObject) -> None:
    part = slot.content_part(integer_field(event, "content_index"), "reasoning_text")
    part.text.finish(text_field(event, "text"))


def _arguments_done(slot: Slot, event: JsonObject) -> None:
    slot.arguments.finish(text_field(event, "arguments"))
    if name := text_field(event, "name"):
        slot.announced.setdefault("name", name)


def _input_done(slot: Slot, event: JsonObject) -> None:
    slot.input.finish(text_field(event, "input"))


def _part_added(slot: Slot, event: JsonObject) -> None:
    slot.announce_part(integer_field(event, "content_index"), object_field(event, "part"))


def _part_done(slot: Slot, event: JsonObject) -> None:
    fields = object_field(event, "part")
    slot.content_part(integer_field(event, "content_index"), part_kind(fields)).finish(fields)


TEXTS: Mapping[str, tuple[tuple[str, ...], TakeText]] = {
    "response.output_text.done": (_MESSAGE, _text_done),
    "response.refusal.done": (_MESSAGE, _refusal_done),
    "response.output_text.annotation.added": (_MESSAGE, _annotation_added),
    "response.content_part.added": ((*_MESSAGE, *_REASONING), _part_added),
    "response.content_part.done": ((*_MESSAGE, *_REASONING), _part_done),
    "response.reasoning_summary_part.added": (_REASONING, _summary_part_added),
    "response.reasoning_summary_part.done": (_REASONING, _summary_part_done),
    "response.reasoning_summary_text.done": (_REASONING, _summary_done),
    "response.reasoning_text.done": (_REASONING, _reasoning_done),
    "response.reasoning.done": (_REASONING, _reasoning_done),
    "response.function_call_arguments.done": (_ANY_CALL, _arguments_done),
    "response.custom_tool_call_input.done": (_CUSTOM_CALL, _input_done),
}
"""The same, for texts that are announced or given whole."""


def text_field(fields: JsonObject, key: str) -> str:
    """A string, or an empty one where there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def integer_field(fields: JsonObject, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


def object_field(fields: JsonObject, key: str) -> JsonObject:
    """An object, or an empty one where there is none."""
    value = fields.get(key)
    return cast("JsonObject", value) if isinstance(value, dict) else {}
