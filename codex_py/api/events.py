"""Events of a session and the items in them, which `Extension.sink` takes.

`exec --json` prints most of them, in the same order. Each turn ends with one `TurnCompleted` or
`TurnFailed`. A sink must not raise and must not block.

`DENIALS` are the codes of an `ErrorItem` for a call that was refused.
"""

from codex_py.protocol.approval import DENIALS
from codex_py.protocol.event_items import (
    AgentMessage,
    CommandExecution,
    ErrorItem,
    FileChange,
    McpToolCall,
)
from codex_py.protocol.events import (
    AgentEvent,
    CallDenied,
    Event,
    EventSink,
    FilesPatched,
    HookProgress,
    ItemCompleted,
    ItemStarted,
    TurnCompleted,
    TurnFailed,
)

__all__ = [
    "DENIALS",
    "AgentEvent",
    "AgentMessage",
    "CallDenied",
    "CommandExecution",
    "ErrorItem",
    "Event",
    "EventSink",
    "FileChange",
    "FilesPatched",
    "HookProgress",
    "ItemCompleted",
    "ItemStarted",
    "McpToolCall",
    "TurnCompleted",
    "TurnFailed",
]
