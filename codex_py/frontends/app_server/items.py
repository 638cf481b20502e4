"""Converts events of a turn to notifications of Codex 0.171, live or from a stored thread."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from codex_py.app.views.diffs import ShownFile, read_diff
from codex_py.app.views.item_text import script_of
from codex_py.errors import QUOTA_CODES
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.unified.hunks import written_hunks
from codex_py.protocol import event_items, events
from codex_py.protocol.annotations import camel_case
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.stream import Usage

_ERROR_INFO: Final = {
    "context_length_exceeded": "contextWindowExceeded",
    "server_overloaded": "serverOverloaded",
    **dict.fromkeys(QUOTA_CODES, "usageLimitExceeded"),
}


class Notify(Protocol):
    def __call__(
        self, method: str, params: dict[str, Any], /, *, is_live: bool = False
    ) -> None:
        """Send a notification to the client. `is_live`: a later one repeats its contents."""
        ...


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def turn_data(
    turn_id: str,
    status: str,
    **more: Any,
) -> dict[str, Any]:
    names = ("error", "startedAt", "completedAt", "durationMs")
    turn: dict[str, Any] = {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": [],
        "status": status,
    }
    return {**turn, "itemsView": "notLoaded", **dict.fromkeys(names), **more}


def error_data(error: events.ErrorInfo | events.Reconnecting) -> dict[str, Any]:
    info: Any = _ERROR_INFO.get(error.code, "other")
    if error.http_status in {401, 403}:
        info = "unauthorized"
    elif error.retryable:
        info = {"responseStreamDisconnected": {"httpStatusCode": error.http_status}}
    if isinstance(error, events.Reconnecting):
        details = error.cause
    else:
        details = None
    return {
        "message": error.message,
        "codexErrorInfo": info,
        "additionalDetails": details,
    }


def shown_item(
    item: event_items.ThreadItem, item_id: str, cwd: str
) -> dict[str, Any] | None:
    """Make a `ThreadItem` of Codex; None if Codex shows the item in another way, or not at all."""
    match item:
        case event_items.UserMessage(text=text, images=images):
            said: list[Any] = [{"type": "localImage", "path": path} for path in images]
            said.append({"type": "text", "text": text, "text_elements": []})
            fields = {"type": "userMessage", "clientId": None, "content": said}
        case event_items.AgentMessage(text=text):
            fields = {
                "type": "agentMessage",
                "text": text,
                "phase": None,
                "memoryCitation": None,
            }
        case event_items.ReasoningSummary(text=text):
            summary = [text] if text else []
            fields = {"type": "reasoning", "summary": summary, "content": []}
        case event_items.CommandExecution():
            fields = _command(item, cwd)
        case event_items.FileChange():
            if item.is_declined:
                status = "declined"
            else:
                status = camel_case(item.status)
            fields = {
                "type": "fileChange",
                "changes": list(_changes(item, cwd)),
                "status": status,
            }
        case event_items.McpToolCall():
            fields = _server_call(item)
        case event_items.WebSearch(query=query, action=action):
            shown = dict(action or {})
            kind = str(shown.get("type", "other"))
            shown["type"] = camel_case(kind)
            fields = {
                "type": "webSearch",
                "query": query,
                "action": shown,
            }
        case event_items.ContextCompaction():
            fields = {"type": "contextCompaction"}
        case _:
            return None
    return {"id": item_id, **fields}


class TurnFeed:
    """Sends the notifications of one turn.

    An item gets its id at its start, its first delta or the question about it, and keeps the id to
    its end. A stored thread counts the same items, so they have the same ids there, unless they
    ended in another order.
    """

    def __init__(
        self,
        thread_id: str,
        turn_id: str,
        cwd: Path,
        notify: Notify,
    ) -> None:
        self.turn_id = turn_id
        self._notify = notify
        self._started_at = int(time.time())
        self._answer: dict[str, Any] | None = None
        """The last message of the agent, as an item."""
        self._began = time.monotonic()
        self._place = {"threadId": thread_id, "turnId": turn_id}
        self._cwd = cwd
        self._count = 0
        self._ids: dict[str, str] = {}
        """The client's ids of items, by our ids."""
        self._streamed: dict[type[event_items.ThreadItem], str] = {}
        """The client's ids of items whose text is being streamed."""
        self._part = -1
        """The part of the reasoning that is being streamed."""
        self._changes = NetChanges()

    def new_id(self) -> str:
        self._count += 1
        return f"{self.turn_id}-{self._count}"

    def start(self, prompt: event_items.UserMessage | None) -> None:
        turn = turn_data(self.turn_id, "inProgress", startedAt=self._started_at)
        self._notify(
            "turn/started", {"threadId": self._place["threadId"], "turn": turn}
        )
        if prompt is not None:
            self._item(prompt, is_done=True)

    def take(self, event: events.Event) -> None:
        match event:
            case (
                events.ItemStarted(item)
                | events.ItemUpdated(item)
                | events.ItemCompleted(item)
            ):
                self._item(item, is_done=isinstance(event, events.ItemCompleted))
            case events.MessageDelta(delta):
                item_id = self._begin(event_items.AgentMessage(id="", text=""))
                self._live("item/agentMessage/delta", item_id, delta=delta)
            case events.ReasoningSummaryDelta(delta, part):
                self._reasoning(delta, part)
            case events.CommandOutputDelta(item_id, delta):
                known = self._ids.get(item_id, item_id)
                self._live("item/commandExecution/outputDelta", known, delta=delta)
            case events.McpToolCallProgress(item_id, message):
                known = self._ids.get(item_id, item_id)
                self._live("item/mcpToolCall/progress", known, message=message)
            case events.FilesPatched(files):
                self._changes.add(files)
                self._tell("turn/diff/updated", diff=self._changes.diff(self._cwd))
            case events.UsageReported():
                used: dict[str, Any] = {
                    "total": _tokens(event.total),
                    "last": _tokens(event.last),
                }
                used["modelContextWindow"] = event.context_window
                self._tell("thread/tokenUsage/updated", tokenUsage=used)
            case events.Reconnecting():
                self._streamed.clear()
                self._tell("error", error=error_data(event), willRetry=True)
            case _:
                pass

    def asked(self, request: ApprovalRequest) -> str:
        """Show a command or a patch as started, before the question about it, as Codex does.

        Returns the client's id of the item.
        """
        # Subagents number their items separately.
        if request.agent:
            known = f"{request.agent}:{request.item_id}"
        else:
            known = request.item_id
        if request.kind == "patch":
            changes = [
                event_items.Change(path=str(file.path), kind=file.kind)
                for file in request.files
            ]
            item = event_items.FileChange(
                id=known or "", changes=changes, diff=request.summary
            )
        else:
            command = request.summary
            cwd = str(request.cwd)
            item = event_items.CommandExecution(
                id=known or "", command=command, cwd=cwd
            )
        return self._begin(item)

    def end(self, event: events.TurnCompleted | events.TurnFailed) -> dict[str, Any]:
        """Send the last notifications, and return the turn."""
        status = "completed"
        error = None
        if isinstance(event, events.TurnFailed):
            if event.error.code == "aborted":
                status = "interrupted"
            else:
                status = "failed"
            if status == "failed":
                error = error_data(event.error)
                self._tell("error", error=error, willRetry=False)
        if event.diff and event.diff != self._changes.diff(self._cwd):
            # Commands, not only patches, have changed files.
            self._tell("turn/diff/updated", diff=event.diff)
        times: dict[str, Any] = {
            "startedAt": self._started_at,
            "completedAt": int(time.time()),
            "durationMs": int((time.monotonic() - self._began) * 1000),
        }
        if self._answer and status == "completed":
            times |= {"items": [self._answer], "itemsView": "summary"}
        return turn_data(self.turn_id, status, error=error, **times)

    def _item(self, item: event_items.ThreadItem, *, is_done: bool) -> None:
        if isinstance(item, event_items.TodoList):
            # The plan does not change at the end of the turn.
            if not is_done:
                plan = [
                    {"step": each.text, "status": camel_case(each.status)}
                    for each in item.items
                ]
                self._tell("turn/plan/updated", explanation=item.explanation, plan=plan)
            return
        if shown_item(item, "", "") is None:
            return
        item_id = self._begin(item)
        if is_done:
            shown = shown_item(item, item_id, str(self._cwd))
            if isinstance(item, event_items.AgentMessage):
                self._answer = shown
            self._tell("item/completed", item=shown, completedAtMs=milliseconds())
            self._ids.pop(item.id, None)
            self._streamed.pop(type(item), None)

    def _begin(self, item: event_items.ThreadItem) -> str:
        """Notify that an item starts, unless that was done. Returns the client's id of the item."""
        known = item.id
        kind = type(item)
        item_id = self._ids.get(known) if known else None
        if item_id is None:
            item_id = self._streamed.get(kind)
        if item_id is None:
            item_id = self.new_id()
            shown = shown_item(_begun(item), item_id, str(self._cwd))
            self._tell("item/started", item=shown, startedAtMs=milliseconds())
        if known:
            self._ids[known] = item_id
        else:
            self._streamed[kind] = item_id
        return item_id

    def _reasoning(self, delta: str, part: int) -> None:
        if event_items.ReasoningSummary not in self._streamed:
            self._part = -1
        item_id = self._begin(event_items.ReasoningSummary(id="", text=""))
        if part != self._part:
            self._part = part
            self._live("item/reasoning/summaryPartAdded", item_id, summaryIndex=part)
        self._live(
            "item/reasoning/summaryTextDelta", item_id, summaryIndex=part, delta=delta
        )

    def _live(
        self,
        method: str,
        item_id: str,
        **params: Any,
    ) -> None:
        fields = {**self._place, "itemId": item_id, **params}
        self._notify(method, fields, is_live=True)

    def _tell(self, method: str, **params: Any) -> None:
        self._notify(method, {**self._place, **params})


def _begun(item: event_items.ThreadItem) -> event_items.ThreadItem:
    if isinstance(item, event_items.AgentMessage | event_items.ReasoningSummary):
        return replace(item, text="")
    return item


def _command(item: event_items.CommandExecution, cwd: str) -> dict[str, Any]:
    return {
        "type": "commandExecution",
        "command": item.command,
        "cwd": item.cwd or cwd,
        "processId": None,
        "source": "agent",
        "status": camel_case(item.status),
        "commandActions": [{"type": "unknown", "command": script_of(item.command)}],
        "aggregatedOutput": None
        if item.status == "in_progress"
        else item.aggregated_output,
        "exitCode": item.exit_code,
        "durationMs": item.duration_ms,
    }


def _changes(item: event_items.FileChange, cwd: str) -> Iterator[dict[str, Any]]:
    """Give each file its part of the diff.

    That is the contents of an added or deleted file, and the hunks of any other.
    """
    files = read_diff(item.diff)
    for change in item.changes:
        path = str(Path(cwd, change.path))
        kind = {"type": change.kind}
        file = next(
            (each for each in files if path.endswith(f"/{each.path}")), ShownFile("")
        )
        if change.kind == "update":
            # Names in a diff are relative to a folder, or to the root.
            folder = path.removesuffix(file.path)
            move = {"move_path": folder + file.moved_to if file.moved_to else None}
            diff = written_hunks(file.hunks).decode(errors="replace")
            yield {"path": path, "kind": {**kind, **move}, "diff": diff}
        else:
            lines = [f"{line.text}\n" for line in file.lines if line.sign in "+-"]
            yield {"path": path, "kind": kind, "diff": "".join(lines)}


def _server_call(item: event_items.McpToolCall) -> dict[str, Any]:
    result = item.result
    if result:
        result = {
            "content": result.get("content", []),
            "structuredContent": result.get("structured_content"),
            "_meta": None,
        }
    error = item.error
    if error:
        error = {"message": error.get("message", "")}
    return {
        "type": "mcpToolCall",
        "server": item.server,
        "tool": item.tool,
        "status": camel_case(item.status),
        "arguments": item.arguments,
        "result": result,
        "error": error,
        "durationMs": None,
    }


def _tokens(usage: Usage) -> dict[str, int]:
    kinds = (
        "total",
        "input",
        "cached_input",
        "cache_write_input",
        "output",
        "reasoning_output",
    )
    return {
        camel_case(f"{kind}_tokens"): getattr(usage, f"{kind}_tokens") for kind in kinds
    }
