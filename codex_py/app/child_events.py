"""Passes the events of a child session on to its parent. LIGHT."""

from dataclasses import replace

from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import (
    AgentEvent,
    CallDenied,
    Event,
    FilesPatched,
    ItemCompleted,
    ThreadStarted,
    UsageReported,
)
from codex_py.protocol.extension import NewChild, Thread
from codex_py.protocol.stream import Usage


class ChildEvents:
    """The event sink of a child.

    It adds the child's tokens to the parent's, and repeats warnings, patches and refusals there.
    """

    def __init__(self, parent: Thread, child: NewChild) -> None:
        self.counted = Usage()
        """The tokens that the parent must not count again: it has counted them, or the child used
        them in an earlier session."""
        self._parent = parent
        self._child = child
        self._id = ""
        """The child's thread id, once it has begun."""

    def __call__(self, event: Event) -> None:
        parent = self._parent
        child = self._child
        match event:
            case ThreadStarted(thread_id):
                self._id = thread_id
            case UsageReported(total=total, plan=plan):
                parent.count(total - self.counted, plan=plan)
                self.counted = total
            case ItemCompleted(ErrorItem(message=message, tool=None, code=None)):
                parent.warn(f"{child.nickname}: {message}")
            case FilesPatched() if not child.has_own_files:
                parent.emit(event)
            case CallDenied(tool=tool):
                parent.emit(replace(event, tool=f"{child.nickname}: {tool}"))
            case _:
                pass
        child.sink(event)
        if not isinstance(event, AgentEvent):
            event = AgentEvent(self._id, event)
        parent.emit(event)
