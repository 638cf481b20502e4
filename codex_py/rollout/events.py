"""The lines of a session file that tell what the user saw; the model's own items are written apart."""

from collections.abc import Mapping
from typing import Any, Protocol

from codex_py.protocol.events import (
    AgentMessage,
    ContextCompaction,
    Event,
    ItemCompleted,
    ReasoningSummary,
    UsageReported,
)
from codex_py.rollout.records import token_count


class EventWriter(Protocol):
    def event_msg(self, payload: Mapping[str, Any]) -> None: ...


class RolloutEvents:
    """An event sink that writes the classic `event_msg` lines. Source: session files of Codex 0.80."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        match event:
            case ItemCompleted(AgentMessage(text=text)):
                self._writer.event_msg({"type": "agent_message", "message": text})
            case ItemCompleted(ReasoningSummary(text=text)):
                self._writer.event_msg({"type": "agent_reasoning", "text": text})
            case ItemCompleted(ContextCompaction(status="completed")):
                self._writer.event_msg({"type": "context_compacted"})
            case UsageReported(last, total, context_window):
                self._writer.event_msg(token_count(total, last, context_window))
            case _:
                pass
