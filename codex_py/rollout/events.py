"""Writes lines about what the user saw to a session file; the items of the history are written elsewhere.

`patch_applied` and `turn_completed` are our own: Codex ignores them.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from codex_py.protocol.events import (
    AgentMessage,
    ContextCompaction,
    Event,
    FileChange,
    ItemCompleted,
    ReasoningSummary,
    TurnCompleted,
    TurnStarted,
    UsageReported,
)
from codex_py.rollout.records import token_count

_MAX_DIFF_CHARACTERS = 200_000
"""Longer diffs are not shown either."""


class EventWriter(Protocol):
    def event_msg(self, payload: Mapping[str, Any]) -> None: ...


class RolloutEvents:
    """An event sink that writes the classic `event_msg` lines. Source: session files of Codex 0.80."""

    def __init__(self, writer: EventWriter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._turn_began = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case ItemCompleted(AgentMessage(text=text)):
                self._writer.event_msg({"type": "agent_message", "message": text})
            case ItemCompleted(ReasoningSummary(text=text)):
                self._writer.event_msg({"type": "agent_reasoning", "text": text})
            case ItemCompleted(ContextCompaction(status="completed")):
                self._writer.event_msg({"type": "context_compacted"})
            case ItemCompleted(FileChange(status="completed", diff=diff)) if (
                len(diff) <= _MAX_DIFF_CHARACTERS
            ):
                self._writer.event_msg({"type": "patch_applied", "diff": diff})
            case TurnStarted():
                self._turn_began = self._clock()
            case TurnCompleted():
                duration_ms = int((self._clock() - self._turn_began) * 1000)
                self._writer.event_msg({"type": "turn_completed", "duration_ms": duration_ms})
            case UsageReported(last, total, context_window):
                self._writer.event_msg(token_count(total, last, context_window))
            case _:
                pass
