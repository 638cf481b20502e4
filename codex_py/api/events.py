"""Events of a session, which `Extension.sink` takes.

`exec --json` prints most of them, in the same order. Each turn ends with one `TurnCompleted` or
`TurnFailed`. A sink must not raise and must not block.
"""

from codex_py.protocol.events import Event, EventSink, TurnCompleted, TurnFailed

__all__ = ["Event", "EventSink", "TurnCompleted", "TurnFailed"]
