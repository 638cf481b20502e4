"""The events of a session: the same ones for the terminal, for files and for `exec --json`.

They are dataclasses, not pydantic models: nothing parses them, and the first two are emitted before
pydantic is loaded. `protocol.event_data` makes the object that `exec --json` prints as a line.
Source of the shapes: the JSONL events of Codex (`thread.started` … `turn.failed`); fields beyond
those are additions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from codex_py.protocol.approval import Denied
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.stream import PlanUse, Usage

HookStatus: TypeAlias = Literal["running", "completed", "blocked", "failed"]

_BASELINE_TOKENS = 12_000
"""Codex's estimate for the base prompt and the tools."""


@frozen
class ThreadStarted:
    """The first event of a session."""

    type: ClassVar = "thread.started"
    thread_id: str
    worktree: str | None = field(default=None, metadata={"json": "unless none"})
    """The top of the session's git worktree, if this program made it."""


@frozen
class TurnStarted:
    """The first event of a turn."""

    type: ClassVar = "turn.started"
    turn_id: str = field(default="", metadata={"json": False})
    """The `id` of the `TurnStart`."""


@frozen
class ItemStarted:
    """The agent started a command, a change or a call."""

    type: ClassVar = "item.started"
    item: ThreadItem


@frozen
class ItemUpdated:
    """An item that has started has new contents."""

    type: ClassVar = "item.updated"
    item: ThreadItem


@frozen
class ItemCompleted:
    """A message or an action of the agent is complete."""

    type: ClassVar = "item.completed"
    item: ThreadItem


@frozen
class StopOverridden:
    """An extension, such as the `Stop` hooks, wanted the turn to continue after its last round."""

    rounds: int
    reason: str


@frozen
class TurnCompleted:
    """The last event of a turn that completed."""

    type: ClassVar = "turn.completed"
    usage: Usage
    """The usage of the whole thread, earlier turns included."""
    diff: str | None = field(default=None, metadata={"json": "unless none"})
    """The changes by all patches of the turn, as a git diff; None if they changed nothing."""
    denied: Denied | None = field(default=None, metadata={"json": "unless none"})
    stop: StopOverridden | None = field(default=None, metadata={"json": "unless none"})
    facts: Mapping[str, Any] = field(
        default_factory=dict[str, Any], metadata={"json": "inline"}
    )
    """Additional fields of extensions; see `Extension.turn_facts`."""


@frozen
class ErrorInfo:
    """The facts about a `CodexError`."""

    message: str
    code: str
    retryable: bool = False
    http_status: int | None = None


@frozen
class TurnFailed:
    """The last event of a turn that failed or was interrupted."""

    type: ClassVar = "turn.failed"
    error: ErrorInfo
    diff: str | None = field(default=None, metadata={"json": "unless none"})
    """The diff as in `TurnCompleted`: a failure does not undo patches."""
    facts: Mapping[str, Any] = field(
        default_factory=dict[str, Any], metadata={"json": "inline"}
    )


@frozen
class Error(ErrorInfo):
    """The reason why the turn fails; `TurnFailed` follows."""

    type: ClassVar = "error"


@frozen
class Reconnecting:
    """A request failed, and is sent again after a wait.

    Displays discard the deltas of the failed response.
    """

    type: ClassVar = "error"
    message: str
    """`Reconnecting... 3/5 (cause)`, in Codex's words."""
    code: str
    http_status: int | None
    retryable: bool = field(default=True, init=False)
    cause: str = field(kw_only=True, metadata={"json": False})
    attempt: int = field(kw_only=True)
    """The number of attempts after the first one so far, this one included."""
    max_attempts: int = field(kw_only=True)
    """The limit on `attempt` if the request keeps failing in the same way."""
    wait_s: float = field(kw_only=True)


class _LiveOnly:
    """An event for live displays of the session; never written to `--json`."""

    __slots__ = ()
    type: ClassVar = None


@frozen
class MessageDelta(_LiveOnly):
    """Text of an answer as it arrives."""

    delta: str


@frozen
class ReasoningSummaryDelta(_LiveOnly):
    """Text of the summary of the model's reasoning as it arrives."""

    delta: str
    part: int
    """The number of the section that the text belongs to."""


@frozen
class CommandOutputDelta(_LiveOnly):
    """Output of a running command; if there is much, only the latest."""

    item_id: str
    delta: str


@frozen
class CommandInBackground(_LiveOnly):
    """The call that started the command has its output, and the command is still running."""

    item_id: str


@frozen
class CommandInTerminal(_LiveOnly):
    """The command runs in a terminal of the user's own program, such as an editor."""

    item_id: str
    terminal_id: str


@frozen
class McpToolCallProgress(_LiveOnly):
    """A progress report of the server about a call."""

    item_id: str
    message: str
    """One line with `3/10`, the message of the server, or both."""


@frozen
class CallDenied(_LiveOnly):
    """A policy, the sandbox or the user refused a call."""

    tool: str
    reason: str
    """The output that the model gets."""
    cause: str | None = None
    """The `cause` of the `CallRefused`; None if the user refused."""
    allow: str | None = None
    """The `allow` of the `CallRefused`; None if the user refused."""
    code: str | None = None
    """The code of the error that the model gets, such as `SandboxDenied`."""


@frozen
class HookProgress(_LiveOnly):
    """A hook started or ended. Hooks that nothing waits for are not shown."""

    event: str
    """The event of the hook, such as `PreToolUse`."""
    status: HookStatus
    message: str | None = None
    """The user's text to show while the hook runs."""


@frozen
class SteeringRefused(_LiveOnly):
    """An extension refused the oldest steered prompt that was not sent yet."""

    text: str


@frozen
class FilesPatched(_LiveOnly):
    """A patch has been written."""

    files: Sequence[PatchedFile]
    entry: int | None = None
    """The number of the patch's entry in the journal; None if it has no entry."""
    saved: Sequence[Path] = ()
    """The real paths of files to which unsaved text of the user's editor was saved just before."""


@frozen
class ReviewStarted(_LiveOnly):
    """The turn is a review: a reviewer answers its prompt."""

    name: str
    """The change that is reviewed, in words."""


@frozen
class GoalChanged(_LiveOnly):
    """The thread got a goal, lost it, or the goal's facts changed."""

    goal: Mapping[str, Any] | None
    """Codex's fields: `objective`, `status`, `tokenBudget` and others. None: the goal was
    removed."""


@frozen
class BugFound(_LiveOnly):
    """An unexpected exception, which failed a call or ends the turn."""

    error: str
    """The exception in one line."""
    trace: str
    """The traceback."""


@frozen
class AgentEvent(_LiveOnly):
    """An event of a subagent at any depth."""

    thread_id: str
    """The id of the subagent."""
    event: "Event"


@frozen
class UsageReported(_LiveOnly):
    """The tokens used so far, after each response."""

    last: Usage
    """The usage of the last response, which shows how full the window is. After a compaction it is
    an estimate."""
    total: Usage
    """The usage of the whole thread."""
    context_window: int
    """The size of the window in tokens."""
    plan: PlanUse | None = None
    """The use of the ChatGPT plan that paid for the tokens since the last report; None if no plan
    did."""

    @property
    def context_left_percent(self) -> int:
        """The free part of the window, 0 to 100.

        As in Codex, the base prompt and the tools do not count.
        """
        window = self.context_window
        used = self.last.total_tokens
        if window > _BASELINE_TOKENS:
            window -= _BASELINE_TOKENS
            used = max(0, used - _BASELINE_TOKENS)
        if window > 0:
            return max(0, round(100 * (window - used) / window))
        return 0


Event: TypeAlias = (
    ThreadStarted
    | TurnStarted
    | ItemStarted
    | ItemUpdated
    | ItemCompleted
    | TurnCompleted
    | TurnFailed
    | Error
    | Reconnecting
    | MessageDelta
    | ReasoningSummaryDelta
    | CommandOutputDelta
    | CommandInBackground
    | CommandInTerminal
    | McpToolCallProgress
    | CallDenied
    | HookProgress
    | SteeringRefused
    | FilesPatched
    | ReviewStarted
    | GoalChanged
    | BugFound
    | AgentEvent
    | UsageReported
)

EventSink: TypeAlias = Callable[[Event], None]
"""Takes each event as it happens. It never blocks for long and never raises."""
