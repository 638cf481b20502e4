"""Converts events of a turn to notifications of Codex 0.171, live or from a stored thread."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from codex_py.app.views.command_script import script_of
from codex_py.app.views.diffs import ShownFile, read_diff
from codex_py.errors import QUOTA_CODES
from codex_py.frontends.app_server.turn_items.command_actions import command_actions
from codex_py.frontends.app_server.turn_items.plan_items import ProposedPlan
from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.unified.hunks import written_hunks
from codex_py.protocol import event_items, events
from codex_py.protocol.annotations import camel_case
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.stream import Usage

NO_REVIEW: Final = "Reviewer failed to output a response."
"""Codex's text at the end of a review without an answer."""
_ERROR_INFO: Final = {
    "context_length_exceeded": "contextWindowExceeded",
    "login_over": "unauthorized",
    "server_overloaded": "serverOverloaded",
    **dict.fromkeys(QUOTA_CODES, "usageLimitExceeded"),
}


_STREAMED: Final = (
    event_items.AgentMessage,
    event_items.ReasoningSummary,
    ProposedPlan,
)
"""The items that get their texts by and by."""

Fields: TypeAlias = dict[str, Any]
"""A JSON object for the client."""
ShownItem: TypeAlias = event_items.ThreadItem | ProposedPlan
"""An item that the client sees."""


class Notify(Protocol):
    def __call__(
        self,
        method: str,
        params: Fields,
        /,
        *,
        is_live: bool = False,
    ) -> None:
        """Send a notification to the client. `is_live`: a later one repeats its contents."""
        ...


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def turn_data(
    turn_id: str,
    status: str,
    **more: Any,
) -> Fields:
    """A turn in the format of Codex. `more`: fields that differ from their defaults."""
    turn: Fields = {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": [],
        "status": status,
        "itemsView": "notLoaded",
        "error": None,
        "startedAt": None,
        "completedAt": None,
        "durationMs": None,
    }
    return {**turn, **more}


def error_data(error: events.ErrorInfo | events.Reconnecting) -> Fields:
    """An error in the format of Codex."""
    info: Any = _ERROR_INFO.get(error.code, "other")
    if error.http_status in {401, 403}:
        info = "unauthorized"
    elif error.retryable:
        info = {"responseStreamDisconnected": {"httpStatusCode": error.http_status}}
    details = None
    if isinstance(error, events.Reconnecting):
        details = error.cause
    return {
        "message": error.message,
        "codexErrorInfo": info,
        "additionalDetails": details,
    }


def shown_item(item: ShownItem, item_id: str, cwd: str) -> Fields | None:
    """Make a `ThreadItem` of Codex; None if Codex shows the item in another way, or not at all.

    `cwd`: the folder of the thread, absolute.
    """
    fields = _fields(item, cwd)
    if fields is None:
        return None
    return {"id": item_id, **fields}


def entered_review(name: str) -> Fields:
    """The item that begins a review, without its id. `name`: the change, in words."""
    return {"type": "enteredReviewMode", "review": name}


def exited_review(text: str) -> Fields:
    """The item that ends a review, without its id. `text`: the findings."""
    return {"type": "exitedReviewMode", "review": text}


def as_review(items: Sequence[Fields], name: str, *, is_over: bool) -> list[Fields]:
    """The items of a turn that is a review, as Codex shows them.

    Args:
        items: the items of a turn whose prompt asks for the review.
        name: the change, in words.
        is_over: True if the turn has ended.
    """
    shown = [entered_review(name)]
    has_answer = False
    for item in items[1:]:
        if item["type"] == "agentMessage" and not has_answer:
            has_answer = True
            shown.append(exited_review(item["text"]))
        shown.append(item)
    if is_over and not has_answer:
        shown.append(exited_review(NO_REVIEW))
    return shown


def _fields(item: ShownItem, cwd: str) -> Fields | None:
    match item:
        case ProposedPlan(text=text):
            return {"type": "plan", "text": text}
        case event_items.UserMessage():
            return _prompt(item)
        case event_items.AgentMessage(text=text):
            return {
                "type": "agentMessage",
                "text": text,
                "phase": None,
                "memoryCitation": None,
            }
        case event_items.ReasoningSummary(text=text):
            summary = [text] if text else []
            return {"type": "reasoning", "summary": summary, "content": []}
        case event_items.CommandExecution():
            return _command(item, cwd)
        case event_items.FileChange():
            return _file_change(item, cwd)
        case event_items.McpToolCall():
            return _server_call(item)
        case event_items.WebSearch(query=query, action=action):
            shown = dict(action or {})
            kind = str(shown.get("type", "other"))
            shown["type"] = camel_case(kind)
            return {"type": "webSearch", "query": query, "action": shown}
        case event_items.ContextCompaction():
            return {"type": "contextCompaction"}
        case _:
            return None


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
        self._thread_id = thread_id
        self._notify = notify
        self._cwd = cwd
        self._started_at = int(time.time())
        self._began = time.monotonic()
        self._answer: Fields | None = None
        """The last message of the agent, as an item."""
        self._count = 0
        """The number of ids that were made."""
        self._ids: dict[str, str] = {}
        """The client's ids of items, by our ids."""
        self._streamed: dict[type[ShownItem], str] = {}
        """The client's ids of items whose text is being streamed."""
        self._part = -1
        """The part of the reasoning that is being streamed."""
        self._changes = NetChanges()
        self._is_review = False
        """True from the start of a review to its answer."""

    def new_id(self) -> str:
        """Make an id for an item of the client."""
        self._count += 1
        return f"{self.turn_id}-{self._count}"

    def start(self, prompt: event_items.UserMessage | None) -> None:
        """Notify that the turn starts. `prompt`: shown as its first item; None for no prompt."""
        turn = turn_data(self.turn_id, "inProgress", startedAt=self._started_at)
        self._notify("turn/started", {"threadId": self._thread_id, "turn": turn})
        if prompt is not None:
            self._end_item(prompt)

    def take(self, event: events.Event) -> None:
        """Send the notifications for an event of the turn, except for its start and end."""
        match event:
            case events.ReviewStarted(name):
                self._is_review = True
                self._show_whole(entered_review(name))
            case events.ItemStarted(item) | events.ItemUpdated(item):
                self._start_item(item)
            case events.ItemCompleted(item):
                self._end_item(item)
            case events.MessageDelta(delta):
                message = event_items.AgentMessage(id="", text="")
                item_id = self._begin(message)
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
                diff = self._changes.diff(self._cwd)
                self._tell("turn/diff/updated", diff=diff)
            case events.UsageReported():
                self._tell("thread/tokenUsage/updated", tokenUsage=usage_data(event))
            case events.Reconnecting():
                self._streamed.clear()
                self._tell("error", error=error_data(event), willRetry=True)
            case _:
                pass

    def asked(self, request: ApprovalRequest) -> str:
        """Show a command or a patch as started, before the question about it, as Codex does.

        Returns the client's id of the item.
        """
        known = request.item_id or ""
        if request.agent:
            # Subagents number their items separately.
            known = f"{request.agent}:{request.item_id}"
        if request.kind == "patch":
            changes = [
                event_items.Change(path=str(file.path), kind=file.kind)
                for file in request.files
            ]
            item = event_items.FileChange(
                id=known, changes=changes, diff=request.summary
            )
        else:
            cwd = str(request.cwd)
            item = event_items.CommandExecution(
                id=known, command=request.summary, cwd=cwd
            )
        return self._begin(item)

    def end(self, event: events.TurnCompleted | events.TurnFailed) -> Fields:
        """Send the last notifications, and return the turn."""
        if self._is_review:
            self._end_review(NO_REVIEW)
        status = "completed"
        error = None
        if isinstance(event, events.TurnFailed):
            if event.error.code == "aborted":
                status = "interrupted"
            else:
                status = "failed"
                error = error_data(event.error)
                self._tell("error", error=error, willRetry=False)
        if event.diff and event.diff != self._changes.diff(self._cwd):
            # Commands, not only patches, have changed files.
            self._tell("turn/diff/updated", diff=event.diff)
        duration_s = time.monotonic() - self._began
        turn = turn_data(
            self.turn_id,
            status,
            error=error,
            startedAt=self._started_at,
            completedAt=int(time.time()),
            durationMs=int(duration_s * 1000),
        )
        if self._answer and status == "completed":
            turn["items"] = [self._answer]
            turn["itemsView"] = "summary"
        return turn

    def _start_item(self, item: event_items.ThreadItem) -> None:
        if isinstance(item, event_items.TodoList):
            plan = [
                {"step": each.text, "status": camel_case(each.status)}
                for each in item.items
            ]
            self._tell("turn/plan/updated", explanation=item.explanation, plan=plan)
        elif _fields(item, "") is not None:
            self._begin(item)

    def _begin(self, item: ShownItem) -> str:
        """Notify that an item starts, unless that was done. Returns the client's id of the item.

        Without an id, the item is the one of its kind whose text is being streamed.
        """
        known = item.id
        kind = type(item)
        item_id = self._ids.get(known) or self._streamed.get(kind)
        if item_id is None:
            item_id = self.new_id()
            shown = shown_item(_without_text(item), item_id, str(self._cwd))
            self._tell("item/started", item=shown, startedAtMs=milliseconds())
        if known:
            self._ids[known] = item_id
        else:
            self._streamed[kind] = item_id
        return item_id

    def _end_item(self, item: ShownItem) -> None:
        """Notify that an item has ended, and that it has started if that was not done."""
        if _fields(item, "") is None:
            return
        if self._is_review and isinstance(item, event_items.AgentMessage):
            self._end_review(item.text)
        item_id = self._begin(item)
        shown = shown_item(item, item_id, str(self._cwd))
        if isinstance(item, event_items.AgentMessage):
            self._answer = shown
        self._tell("item/completed", item=shown, completedAtMs=milliseconds())
        self._ids.pop(item.id, None)
        self._streamed.pop(type(item), None)

    def _end_review(self, text: str) -> None:
        self._is_review = False
        self._show_whole(exited_review(text))

    def _show_whole(self, fields: Fields) -> None:
        """Notify of an item that is whole as it starts. `fields`: all but its id."""
        item = {"id": self.new_id(), **fields}
        self._tell("item/started", item=item, startedAtMs=milliseconds())
        self._tell("item/completed", item=item, completedAtMs=milliseconds())

    def _reasoning(self, delta: str, part: int) -> None:
        if event_items.ReasoningSummary not in self._streamed:
            self._part = -1
        summary = event_items.ReasoningSummary(id="", text="")
        item_id = self._begin(summary)
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
        """Send a notification whose contents a later one repeats."""
        fields = self._in_turn(itemId=item_id, **params)
        self._notify(method, fields, is_live=True)

    def _tell(self, method: str, **params: Any) -> None:
        self._notify(method, self._in_turn(**params))

    def _in_turn(self, **params: Any) -> Fields:
        return {"threadId": self._thread_id, "turnId": self.turn_id, **params}


def _without_text(item: ShownItem) -> ShownItem:
    """The item as it is at its start: some get their texts by and by."""
    if isinstance(item, _STREAMED):
        return replace(item, text="")
    return item


def _prompt(item: event_items.UserMessage) -> Fields:
    images = [{"type": "localImage", "path": path} for path in item.images]
    text: Fields = {"type": "text", "text": item.text, "text_elements": []}
    return {"type": "userMessage", "clientId": None, "content": [*images, text]}


def _command(item: event_items.CommandExecution, cwd: str) -> Fields:
    script = script_of(item.command)
    output = None
    if item.status != "in_progress":
        output = item.aggregated_output
    return {
        "type": "commandExecution",
        "command": item.command,
        "cwd": item.cwd or cwd,
        "processId": None,
        "source": "userShell" if item.is_users else "agent",
        "status": camel_case(item.status),
        "commandActions": command_actions(script, item.cwd or cwd),
        "aggregatedOutput": output,
        "exitCode": item.exit_code,
        "durationMs": item.duration_ms,
    }


def _file_change(item: event_items.FileChange, cwd: str) -> Fields:
    files = read_diff(item.diff)
    changes: list[Fields] = []
    for change in item.changes:
        if not item.diff and change.kind != "update":
            # The patch did not fit. Clients would take an empty text for the contents of the file.
            continue
        path = str(Path(cwd, change.path))
        # Names in a diff are relative to a folder, or to the root.
        file = ShownFile("")
        for each in files:
            if path.endswith(f"/{each.path}"):
                file = each
                break
        changes.append(_change(path, change.kind, file))
    status = camel_case(item.status)
    if item.is_declined:
        status = "declined"
    return {"type": "fileChange", "changes": changes, "status": status}


def _change(path: str, kind: str, file: ShownFile) -> Fields:
    """One file of a patch, with the hunks of a changed file, or the contents of any other.

    `file`: the file's part of the diff.
    """
    change: Fields = {"type": kind}
    if kind == "update":
        diff = written_hunks(file.hunks).decode(errors="replace")
        change["move_path"] = None
        if file.moved_to:
            folder = path.removesuffix(file.path)
            change["move_path"] = folder + file.moved_to
    else:
        lines = [f"{line.text}\n" for line in file.lines if line.sign in "+-"]
        diff = "".join(lines)
    return {"path": path, "kind": change, "diff": diff}


def _server_call(item: event_items.McpToolCall) -> Fields:
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


def usage_data(event: events.UsageReported) -> Fields:
    """The tokens that a thread has used, in the format of Codex."""
    return {
        "total": _tokens(event.total),
        "last": _tokens(event.last),
        "modelContextWindow": event.context_window,
    }


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
        "outputTokens": usage.output_tokens,
        "reasoningOutputTokens": usage.reasoning_output_tokens,
    }
