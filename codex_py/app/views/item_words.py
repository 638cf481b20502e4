"""A thread item in words: what was done to what, how it failed, and the text below.

The terminal, exports, editors and the progress of the MCP server take their words from here; the
layout is theirs. Fields of a protocol, and the lines of Codex that `exec` prints, stay where they
are written. Nothing is cut or made safe to show here: the texts may be long, and may contain control
sequences.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from codex_py.app.views.call_text import questions_of, result_text, was_asked
from codex_py.protocol import event_items
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import text_field
from codex_py.protocol.plans import without_tags
from codex_py.streams.times import took

Kind: TypeAlias = Literal[
    "user",
    "agent",
    "thought",
    "command",
    "change",
    "plan",
    "call",
    "image",
    "question",
    "goal",
    "agents",
    "search",
    "compaction",
    "time",
    "note",
    "error",
]
Form: TypeAlias = Literal[
    "plain", "markdown", "output", "result", "json", "diff", "error"
]
"""`output` is what a command printed, perhaps with control sequences; `result` is that of a call."""

STEP_MARKS: Final[Mapping[str, str]] = {
    "completed": "✔",
    "in_progress": "▸",
    "pending": "□",
}
"""The marks of a plan's steps, by their status."""
_AGENT_VERBS: Final = {
    "spawn_agent": ("Starting an agent", "Started agent"),
    "send_input": ("Sending input to", "Sent input to"),
    "wait": ("Waiting for", "Waited for"),
    "close_agent": ("Closing", "Closed"),
}
"""The words while the call runs, and after its end."""
_GOAL_VERBS: Final = {
    "create_goal": "Set goal:",
    "update_goal": "The goal is now",
    "get_goal": "Read the goal",
}
"""The words that stand for a call of each of these tools."""


@frozen
class Passage:
    """A text below the line of an item."""

    text: str
    form: Form
    label: str = ""
    """Whose text it is, such as `Ada (completed)`; empty where that is clear."""


@frozen
class ItemWords:
    kind: Kind
    verb: str = ""
    """What is being done or was done, such as `Running`, `Ran` or `Failed to patch`."""
    title: str = ""
    """What it is done to: a command with its shell, paths, a tool, names or an address."""
    arguments: Any = None
    """The arguments of a call, as JSON values; None if the title says all of them."""
    failed: str | None = None
    """How it failed: `exit 1`, `declined`, `stopped` or `failed`. None if it did not."""
    body: tuple[Passage, ...] = ()

    @property
    def line(self) -> str:
        """The verb and the title."""
        return " ".join(filter(None, (self.verb, self.title)))


def item_words(item: event_items.ThreadItem, *, is_done: bool = True) -> ItemWords:
    """Return the words for an item.

    Args:
        is_done: False for an item that has started and not ended. Its status is not asked, because
            that of an item which was cut off may be `in_progress` for good.
    """
    match item:
        case (
            event_items.UserMessage()
            | event_items.AgentMessage()
            | event_items.ReasoningSummary()
        ):
            return _message(item)
        case event_items.CommandExecution():
            return _command(item, is_done=is_done)
        case event_items.FileChange():
            return _change(item, is_done=is_done)
        case event_items.McpToolCall():
            return _call(item, is_done=is_done)
        case event_items.CollabToolCall():
            return _agents(item, is_done=is_done)
        case event_items.WebSearch():
            return _search(item)
        case event_items.TodoList():
            return _plan(item)
        case (
            event_items.ErrorItem()
            | event_items.ContextCompaction()
            | event_items.TurnTime()
        ):
            return _remark(item, is_done=is_done)
        case _:
            assert_never(item)


def prompt_text(text: str, images: Sequence[str]) -> str:
    """Return a prompt with the paths of its images below it."""
    pictures = "".join(f"\n[image: {path}]" for path in images)
    return f"{text}{pictures}".strip("\n")


def worked_for(milliseconds: int) -> str:
    """Return the words for the duration of a turn."""
    return f"Worked for {took(milliseconds)}"


def tool_name(item: event_items.McpToolCall) -> str:
    """Return the name of the tool of a call, after its server."""
    return f"{item.server}.{item.tool}"


def _message(
    item: event_items.UserMessage
    | event_items.AgentMessage
    | event_items.ReasoningSummary,
) -> ItemWords:
    match item:
        case event_items.UserMessage(text=text, images=images):
            body = (Passage(prompt_text(text, images), "plain"),)
            return ItemWords("user", body=body)
        case event_items.AgentMessage(text=text):
            body = (Passage(without_tags(text), "markdown"),)
            return ItemWords("agent", body=body)
        case event_items.ReasoningSummary(text=text):
            body = (Passage(text, "markdown"),)
            return ItemWords("thought", title="Reasoning", body=body)


def _command(item: event_items.CommandExecution, *, is_done: bool) -> ItemWords:
    if not is_done:
        return ItemWords("command", "Running", item.command)
    if item.status == "declined":
        verb = "Declined"
    elif item.is_users:
        verb = "You ran"
    else:
        verb = "Ran"
    body = (Passage(item.aggregated_output, "output"),)
    failed = _command_failure(item)
    return ItemWords("command", verb, item.command, failed=failed, body=body)


def _command_failure(item: event_items.CommandExecution) -> str | None:
    has_failed = item.status in {"failed", "declined"}
    if not has_failed and item.exit_code in {0, None}:
        return None
    if item.status == "declined":
        return "declined"
    if item.was_stopped:
        return "stopped"
    if item.exit_code is None:
        return "failed"
    return f"exit {item.exit_code}"


def _change(item: event_items.FileChange, *, is_done: bool) -> ItemWords:
    names = ", ".join(change.path for change in item.changes)
    diff = (Passage(item.diff, "diff"),)
    if not is_done:
        return ItemWords("change", "Patching", names, body=diff)
    if item.status != "failed":
        return ItemWords("change", "Edited", names, body=diff)
    reason: tuple[Passage, ...] = ()
    if item.error is not None:
        reason = (Passage(item.error["message"], "error"),)
    if item.is_declined:
        verb = "Declined the patch of"
        failed = "declined"
    else:
        verb = "Failed to patch"
        failed = "failed"
    return ItemWords("change", verb, names, failed=failed, body=reason)


def _call(item: event_items.McpToolCall, *, is_done: bool) -> ItemWords:
    failed = None
    if is_done and (item.error is not None or item.status == "failed"):
        failed = "failed"
    body = _result(item)
    match item.server, item.tool:
        case "codex", "view_image":
            verb = "Looked at" if is_done else "Looking at"
            path = text_field(item.arguments, "path")
            return ItemWords("image", verb, path, failed=failed, body=body)
        case _, "request_user_input":
            return _question(item, failed, body, is_done=is_done)
        case "python", tool if tool in _GOAL_VERBS and is_done and failed is None:
            given = " ".join(map(str, item.arguments.values()))
            return ItemWords("goal", _GOAL_VERBS[tool], given, body=body)
        case _:
            verb = "Called" if is_done else "Calling"
            name = tool_name(item)
            return ItemWords("call", verb, name, item.arguments, failed, body)


def _result(item: event_items.McpToolCall) -> tuple[Passage, ...]:
    """The result of a call, then its error."""
    body: list[Passage] = []
    result = result_text(item.result)
    if result:
        body.append(Passage(result, "result"))
    if item.error is not None:
        message = str(item.error.get("message") or item.error)
        body.append(Passage(message, "error"))
    return tuple(body)


def _question(
    item: event_items.McpToolCall,
    failed: str | None,
    body: tuple[Passage, ...],
    *,
    is_done: bool,
) -> ItemWords:
    asked = " ".join(text_field(each, "question") for each in questions_of(item))
    arguments = item.arguments
    if not is_done:
        return ItemWords("question", "Asking you:", asked, arguments)
    if not was_asked(item):
        return ItemWords("question", "Not asked:", asked, arguments, "failed", body)
    return ItemWords("question", "Asked you", "", arguments, failed, body)


def _agents(item: event_items.CollabToolCall, *, is_done: bool) -> ItemWords:
    ids = item.receiver_thread_ids
    names = ", ".join(item.names.get(agent_id, agent_id) for agent_id in ids)
    running, done = _AGENT_VERBS[item.tool]
    verb = done if is_done else running
    failed = "failed" if is_done and item.status == "failed" else None
    body: list[Passage] = []
    if item.prompt:
        body.append(Passage(item.prompt, "markdown"))
    for agent_id, state in item.agents_states.items():
        label = f"{item.names.get(agent_id, agent_id)} ({state.status})"
        body.append(Passage(state.message or "", "markdown", label))
    return ItemWords("agents", verb, names, failed=failed, body=tuple(body))


def _search(item: event_items.WebSearch) -> ItemWords:
    action = item.action or {}
    match action.get("type"):
        case "open_page":
            verb = "Opened"
            what = str(action.get("url") or item.query)
        case "find_in_page":
            place = action.get("url")
            verb = "Looked for"
            what = str(action.get("pattern") or item.query)
            if place:
                what += f" in {place}"
        case _:
            verb = "Searched the web for"
            what = item.query
    return ItemWords("search", verb, what)


def _plan(item: event_items.TodoList) -> ItemWords:
    steps = [f"- {STEP_MARKS[step.status]} {step.text}" for step in item.items]
    paragraphs = filter(None, (item.explanation, "\n".join(steps)))
    text = "\n\n".join(paragraphs)
    return ItemWords("plan", "Updated plan", body=(Passage(text, "markdown"),))


def _remark(
    item: event_items.ErrorItem | event_items.ContextCompaction | event_items.TurnTime,
    *,
    is_done: bool,
) -> ItemWords:
    match item:
        case event_items.ErrorItem(message=message, code="aborted"):
            return ItemWords("note", title=message)
        case event_items.ErrorItem(message=message):
            body = (Passage(message, "error"),)
            return ItemWords("error", "Error", failed="failed", body=body)
        case event_items.ContextCompaction() if not is_done:
            return ItemWords("compaction", "Compacting the conversation")
        case event_items.ContextCompaction(status="failed"):
            verb = "The conversation could not be compacted"
            return ItemWords("compaction", verb, failed="failed")
        case event_items.ContextCompaction():
            return ItemWords("compaction", "Compacted the conversation")
        case event_items.TurnTime(duration_ms=duration_ms):
            return ItemWords("time", worked_for(duration_ms))
