"""Converts the events of a session to updates of ACP, live and when a session is loaded.

Nothing is sent here. An update replaces the content of a call, so live output is sent as a tail.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.app.views.fences import fenced
from codex_py.frontends.acp.calls import (
    Fields,
    asked_call,
    shown_call,
    terminal_content,
    text_content,
)
from codex_py.frontends.acp.plan_tags import TagFilter, without_tag_lines
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import ApprovalRequest
from codex_py.streams.plain_text import command_output

Update: TypeAlias = Fields
_LIVE_CHARACTERS: Final = 8_000


class Updates:
    """Makes the updates of one session, in their order.

    Args:
        prefix: prefix for the ids of calls and messages. It must differ each time the session is
            opened, because the ids of items start again.
        has_notices: the client can show notices.
    """

    def __init__(
        self,
        prefix: str,
        cwd: Path,
        *,
        has_notices: bool,
    ) -> None:
        self._prefix = prefix
        self._cwd = cwd
        self._has_notices = has_notices
        self._count = 0
        """The number of new ids. The ids of items are not among them."""
        self._streamed: dict[str, str] = {}
        """The ids of the message and of the thought that are being streamed, by their roles."""
        self._message = TagFilter()
        self._part = 0
        """The part of the thought that was streamed last."""
        self._open: dict[str, str] = {}
        """The calls that have not ended, with the tails of their output."""
        self._unsent: set[str] = set()
        """The open calls whose output has changed since it was sent."""
        self._terminals: dict[str, str] = {}
        """The ids of the client's terminals in which open calls run, by the ids of the calls."""

    def of(self, event: events.Event) -> Iterator[Update]:
        """The updates for an event. Live output is left to `output`."""
        match event:
            case events.MessageDelta(delta):
                shown = self._message.feed(delta)
                if shown:
                    yield self._delta("agent_message", shown)
            case events.ReasoningSummaryDelta(delta, part):
                begins = part != self._part and "agent_thought" in self._streamed
                self._part = part
                if begins:
                    delta = f"\n\n{delta}"
                yield self._delta("agent_thought", delta)
            case events.ItemStarted(item) | events.ItemUpdated(item):
                yield from self.item(item, is_done=False)
            case events.ItemCompleted(item):
                yield from self.item(item)
            case events.Reconnecting(message):
                # The streamed part of the answer stays; the next answer is another message.
                self._streamed.clear()
                self._message.reset()
                if self._has_notices:
                    yield self._notice(message)
            case events.UsageReported(last, _, window):
                yield {
                    "sessionUpdate": "usage_update",
                    "used": last.total_tokens,
                    "size": window,
                }
            case _:
                yield from self._of_running(event)

    def _of_running(self, event: events.Event) -> Iterator[Update]:
        """The updates for an event of a call that runs."""
        match event:
            case events.CommandOutputDelta(item_id, delta):
                shown = self._open.get(self._id(item_id), "")
                self._live(item_id, shown + delta)
            case events.CommandInTerminal(item_id, terminal_id):
                call_id = self._id(item_id)
                self._terminals[call_id] = terminal_id
                yield _progress(call_id, content=[terminal_content(terminal_id)])
            case events.McpToolCallProgress(item_id, message):
                self._live(item_id, message)
            case _:
                pass

    def item(
        self, item: event_items.ThreadItem, *, is_done: bool = True
    ) -> Iterator[Update]:
        """The updates for an item that starts, changes, or is done."""
        match item:
            case event_items.AgentMessage(text=text):
                rest = self._message.finish()
                if "agent_message" not in self._streamed:
                    whole = without_tag_lines(text)
                    yield _chunk("agent_message", whole, self._fresh_id())
                elif rest:
                    yield self._delta("agent_message", rest)
                self._streamed.pop("agent_message", None)
            case event_items.ReasoningSummary(text=text):
                if self._streamed.pop("agent_thought", None) is None:
                    yield _chunk("agent_thought", text, self._fresh_id())
            case event_items.UserMessage(text=text):
                yield from self.prompt(text)
            case event_items.TodoList():
                yield _plan(item)
            case event_items.ErrorItem(tool=None, message=message):
                yield self._notice(message)
            case event_items.TurnTime():
                pass
            case _:
                call_id = self._id(item.id)
                is_known = call_id in self._open
                fields = shown_call(
                    item,
                    self._cwd,
                    is_done=is_done,
                    is_known=is_known,
                    terminal_id=self._terminals.get(call_id),
                )
                yield self._call(call_id, fields)

    def prompt(self, text: str, images: Iterable[Fields] = ()) -> Iterator[Update]:
        """The updates for a prompt of an earlier session; `images` are blocks of content."""
        message_id = self._fresh_id()
        yield _chunk("user_message", text, message_id)
        for image in images:
            yield _chunk("user_message", "", message_id) | {"content": image}

    def answer(self, text: str) -> Update:
        """The update for a message that no model wrote."""
        return _chunk("agent_message", text, self._fresh_id())

    def output(self) -> Iterator[Update]:
        """The updates for live output that has changed since the last time."""
        while self._unsent:
            call_id = self._unsent.pop()
            tail = command_output(self._open[call_id])
            shown = fenced(tail.rstrip("\n"))
            yield _progress(call_id, content=[text_content(shown)])

    @property
    def has_output(self) -> bool:
        return bool(self._unsent)

    def question(self, request: ApprovalRequest) -> tuple[list[Update], Fields]:
        """The updates that come before a question, and the call that it is about."""
        is_of_subagent = request.agent is not None
        if is_of_subagent or request.item_id is None:
            call_id = self._fresh_id()
        else:
            call_id = self._id(request.item_id)
        fields = asked_call(request, self._cwd)
        before: list[Update] = []
        if call_id not in self._open:
            pending = {**fields, "status": "pending"}
            before.append(self._call(call_id, pending))
        return before, {"toolCallId": call_id, **fields}

    def answered(self, call_id: str, *, is_allowed: bool) -> Update:
        """Close the call of a subagent after the question about it.

        Only the question is shown: the items of subagents are not.
        """
        status = "completed" if is_allowed else "failed"
        return self._call(call_id, {"status": status})

    def end(self) -> Iterator[Update]:
        """Close all open calls, at the end of a turn."""
        for call_id in list(self._open):
            yield self._call(call_id, {"status": "failed"})
        self._streamed.clear()
        self._message.reset()

    def _id(self, item_id: str) -> str:
        return f"{self._prefix}-{item_id}"

    def _fresh_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"

    def _delta(self, role: str, text: str) -> Update:
        if role not in self._streamed:
            self._streamed[role] = self._fresh_id()
        return _chunk(role, text, self._streamed[role])

    def _notice(self, text: str) -> Update:
        if self._has_notices:
            return {
                "sessionUpdate": "notice",
                "severity": "warning",
                "title": text or "?",
            }
        return _chunk("agent_message", f"*{text}*\n\n", self._fresh_id())

    def _live(self, item_id: str, text: str) -> None:
        call_id = self._id(item_id)
        if call_id in self._open:
            self._open[call_id] = text[-_LIVE_CHARACTERS:]
            self._unsent.add(call_id)

    def _call(self, call_id: str, fields: Fields) -> Update:
        """Begin a call, or change one that is open. Its status may end it."""
        is_known = call_id in self._open
        if fields["status"] in {"completed", "failed"}:
            self._open.pop(call_id, None)
            self._terminals.pop(call_id, None)
            self._unsent.discard(call_id)
        else:
            self._open.setdefault(call_id, "")
        if is_known:
            return _progress(call_id, **fields)
        return {"sessionUpdate": "tool_call", "toolCallId": call_id, **fields}


def _chunk(
    role: str,
    text: str,
    message_id: str,
) -> Update:
    content = {"type": "text", "text": text}
    return {
        "sessionUpdate": f"{role}_chunk",
        "messageId": message_id,
        "content": content,
    }


def _progress(call_id: str, **fields: object) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def _plan(item: event_items.TodoList) -> Update:
    entries = [
        {"content": entry.text, "priority": "medium", "status": entry.status}
        for entry in item.items
    ]
    return {"sessionUpdate": "plan", "entries": entries}
