"""The events that carry the text of an item: which items they belong to, and where in the item the text goes."""

import re
from typing import NamedTuple

from codex_py.protocol.stream import OutputTextDelta, ReasoningDelta, ResponseEvent, ToolInputDelta

_MESSAGE = ("message",)
_REASONING = ("reasoning",)
_CUSTOM_CALL = ("custom_tool_call",)
# LiteLLM streams the input of a custom call as arguments, wrapped in JSON.
_ANY_CALL = ("function_call", "custom_tool_call")


class TextEvent(NamedTuple):
    item_types: tuple[str, ...]
    """The types of item that the event can belong to. An item that was not announced is of the first."""
    target: str
    """A field of the item, or the type of one of its parts; `content` or `summary` for a part as a whole."""
    verb: str
    """`delta`, `done` or `added`."""
    shown: type[ResponseEvent] | None = None
    """The event that tells a listener of it."""


def _table() -> dict[str, TextEvent]:
    streamed: tuple[tuple[str, tuple[str, ...], str, type[ResponseEvent]], ...] = (
        ("output_text", _MESSAGE, "output_text", OutputTextDelta),
        ("refusal", _MESSAGE, "refusal", OutputTextDelta),
        ("reasoning_summary_text", _REASONING, "summary_text", ReasoningDelta),
        ("summary_text", _REASONING, "summary_text", ReasoningDelta),
        ("reasoning_text", _REASONING, "reasoning_text", ReasoningDelta),
        # The name that Open Responses has for it.
        ("reasoning", _REASONING, "reasoning_text", ReasoningDelta),
        ("function_call_arguments", _ANY_CALL, "arguments", ToolInputDelta),
        ("custom_tool_call_input", _CUSTOM_CALL, "input", ToolInputDelta),
    )
    events = {"output_text.annotation.added": TextEvent(_MESSAGE, "annotations", "added")}
    for name, types, target, shown in streamed:
        events[f"{name}.delta"] = TextEvent(types, target, "delta", shown)
        events[f"{name}.done"] = TextEvent(types, target, "done")
    for verb in ("added", "done"):
        events[f"content_part.{verb}"] = TextEvent((*_MESSAGE, *_REASONING), "content", verb)
        events[f"reasoning_summary_part.{verb}"] = TextEvent(_REASONING, "summary", verb)
    return {f"response.{name}": event for name, event in events.items()}


TEXT_EVENTS = _table()
"""By the `type` of the event."""

# Neither can match within a string, where every quotation mark has a backslash before it.
_TYPE_FIRST = re.compile(r'\{\s*"type"\s*:\s*"([a-z_.]+)"')
_OUTPUT_INDEX = re.compile(r'"output_index"\s*:\s*(\d{1,9})\b')


def peek(data: str) -> tuple[TextEvent, int] | None:
    """The text event in `data` and its `output_index`, read without parsing: 0.8 us instead of 2.5.

    None if it is no text event, has no index, or does not begin with its type, as those of OpenAI do.
    """
    kind = _TYPE_FIRST.match(data)
    event = TEXT_EVENTS.get(kind[1]) if kind else None
    index = _OUTPUT_INDEX.search(data) if event else None
    return (event, int(index[1])) if event and index else None
