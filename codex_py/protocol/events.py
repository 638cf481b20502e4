"""The events of a session: the same ones for the terminal, for files and for `exec --json`.

They are dataclasses, not pydantic models: nothing parses them, and the first two are emitted before pydantic
is loaded. `protocol.event_data` makes the object that `exec --json` prints as a line. Source of the shapes: the
JSONL events of Codex (`thread.started` … `turn.failed`); fields beyond those are additions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal, TypeAlias

from codex_py.protocol.approval import DENIALS, Denied
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import ChangeKind, PatchedFile
from codex_py.protocol.stream import Usage

Status: TypeAlias = Literal["in_progress", "completed", "failed"]
HookStatus: TypeAlias = Literal["running", "completed", "blocked", "failed"]

_BASELINE_TOKENS = 12_000
"""What Codex estimates for the base prompt and the tools."""


@frozen(kw_only=True)
class _Item:
    id: str


@frozen(kw_only=True)
class AgentMessage(_Item):
    type: ClassVar = "agent_message"
    text: str


@frozen(kw_only=True)
class ReasoningSummary(_Item):
    type: ClassVar = "reasoning"
    text: str


@frozen(kw_only=True)
class CommandExecution(_Item):
    type: ClassVar = "command_execution"
    command: str
    """The argv, joined with shell quoting."""
    aggregated_output: str = ""
    exit_code: int | None = None
    status: Status | Literal["declined"] = "in_progress"
    cwd: str = field(default="", metadata={"json": False})
    duration_ms: int | None = field(default=None, metadata={"json": False})


@frozen(kw_only=True)
class Change:
    path: str
    """Absolute; the old path of a move."""
    kind: ChangeKind


@frozen(kw_only=True)
class FileChange(_Item):
    type: ClassVar = "file_change"
    changes: Sequence[Change]
    """Sorted by path."""
    status: Status = "in_progress"
    diff: str = field(default="", metadata={"json": False})
    """Git style; empty if the patch cannot be applied."""
    error: dict[str, str] | None = field(default=None, metadata={"json": "unless none"})
    """`code` and `message`: why it failed or was declined."""

    @property
    def is_declined(self) -> bool:
        """True if it was not allowed. Its status is `failed`: the types of Codex's SDKs know no other."""
        return self.error is not None and self.error["code"] in DENIALS


@frozen(kw_only=True)
class McpToolCall(_Item):
    type: ClassVar = "mcp_tool_call"
    server: str
    tool: str
    arguments: Any
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    status: Status = "in_progress"


AgentWord: TypeAlias = Literal[
    "pending_init", "running", "interrupted", "completed", "errored", "not_found"
]


@frozen
class AgentState:
    """How a subagent is. `message`: its answer if it is `completed`, the error if it is `errored`."""

    status: AgentWord
    message: str | None = None


@frozen(kw_only=True)
class CollabToolCall(_Item):
    """A call about subagents."""

    type: ClassVar = "collab_tool_call"
    tool: Literal["spawn_agent", "send_input", "wait", "close_agent"]
    """As in Codex, `wait` stands for `resume_agent` too."""
    sender_thread_id: str
    receiver_thread_ids: Sequence[str] = ()
    prompt: str | None = None
    agents_states: Mapping[str, AgentState] = field(default_factory=dict[str, AgentState])
    """By thread id."""
    status: Status = "in_progress"
    names: Mapping[str, str] = field(default_factory=dict[str, str], metadata={"json": False})
    """Nicknames by thread id, as far as they are known."""


@frozen(kw_only=True)
class WebSearch(_Item):
    type: ClassVar = "web_search"
    query: str
    action: dict[str, Any] | None = None


@frozen(kw_only=True)
class TodoEntry:
    text: str
    completed: bool
    in_progress: bool = field(default=False, metadata={"json": False})


@frozen(kw_only=True)
class TodoList(_Item):
    type: ClassVar = "todo_list"
    items: Sequence[TodoEntry]
    explanation: str | None = field(default=None, metadata={"json": False})


@frozen(kw_only=True)
class ErrorItem(_Item):
    """Something the user should know that does not end the turn."""

    type: ClassVar = "error"
    message: str
    tool: str | None = field(default=None, metadata={"json": "unless none"})
    """The tool of a call that could not run, as the model wrote it; see `failed_call`."""
    call_id: str | None = field(default=None, metadata={"json": "unless none"})
    code: str | None = field(default=None, metadata={"json": "unless none"})


@frozen(kw_only=True)
class UserMessage(_Item):
    """A prompt steered into a running turn, once the model gets it; in a replay, any prompt. Live only."""

    type: ClassVar = "user_message"
    live_only: ClassVar = True
    text: str
    images: Sequence[str] = ()
    """Paths, absolute."""


@frozen(kw_only=True)
class ContextCompaction(_Item):
    """A compaction; it starts when the summary is requested. Live only, as in Codex."""

    type: ClassVar = "context_compaction"
    live_only: ClassVar = True
    status: Status = "in_progress"


@frozen(kw_only=True)
class TurnTime(_Item):
    """How long a turn took that completed. Only in a replay."""

    type: ClassVar = "turn_time"
    live_only: ClassVar = True
    duration_ms: int


ThreadItem: TypeAlias = (
    AgentMessage
    | ReasoningSummary
    | CommandExecution
    | FileChange
    | McpToolCall
    | CollabToolCall
    | WebSearch
    | TodoList
    | ErrorItem
    | UserMessage
    | ContextCompaction
    | TurnTime
)


@frozen
class ThreadStarted:
    type: ClassVar = "thread.started"
    thread_id: str
    worktree: str | None = field(default=None, metadata={"json": "unless none"})
    """The top of the git worktree that the session works in, if it is one of ours."""


@frozen
class TurnStarted:
    type: ClassVar = "turn.started"


@frozen
class ItemStarted:
    type: ClassVar = "item.started"
    item: ThreadItem


@frozen
class ItemUpdated:
    type: ClassVar = "item.updated"
    item: ThreadItem


@frozen
class ItemCompleted:
    type: ClassVar = "item.completed"
    item: ThreadItem


@frozen
class StopOverridden:
    """An extension, such as the `Stop` hooks, still wanted more work of the agent when its rounds were used up."""

    rounds: int
    reason: str


@frozen
class TurnCompleted:
    type: ClassVar = "turn.completed"
    usage: Usage
    """Of the whole thread, earlier turns included."""
    diff: str | None = field(default=None, metadata={"json": "unless none"})
    """All changes by patches of the turn, git style; None if they changed nothing."""
    denied: Denied | None = field(default=None, metadata={"json": "unless none"})
    stop: StopOverridden | None = field(default=None, metadata={"json": "unless none"})
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any], metadata={"json": "inline"})
    """Further fields of extensions; see `Extension.turn_facts`."""


@frozen
class ErrorInfo:
    message: str
    code: str
    retryable: bool = False
    http_status: int | None = None


@frozen
class TurnFailed:
    type: ClassVar = "turn.failed"
    error: ErrorInfo
    diff: str | None = field(default=None, metadata={"json": "unless none"})
    """As in `TurnCompleted`: a failure does not undo patches."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any], metadata={"json": "inline"})


@frozen
class Error(ErrorInfo):
    """Why the turn fails; `TurnFailed` follows."""

    type: ClassVar = "error"


@frozen
class Reconnecting:
    """A request failed; it is sent again after a wait. Discard the deltas of the failed response."""

    type: ClassVar = "error"
    message: str
    """`Reconnecting... 3/5 (cause)`, as Codex words it."""
    code: str
    http_status: int | None
    retryable: bool = field(default=True, init=False)
    cause: str = field(kw_only=True, metadata={"json": False})
    attempt: int = field(kw_only=True)
    """From 1."""
    max_attempts: int = field(kw_only=True)
    tries: int = field(default=1, kw_only=True, metadata={"json": False})
    """How often the request was sent again so far, this time included; `attempt` counts in one layer of two."""
    wait_s: float = field(kw_only=True)


class _LiveOnly:
    """For whoever shows the session as it runs; never written to `--json`."""

    __slots__ = ()
    type: ClassVar = None


@frozen
class MessageDelta(_LiveOnly):
    """Text of an answer as it arrives."""

    delta: str


@frozen
class ReasoningSummaryDelta(_LiveOnly):
    delta: str
    part: int


@frozen
class CommandOutputDelta(_LiveOnly):
    item_id: str
    delta: str


@frozen
class McpToolCallProgress(_LiveOnly):
    """The progress of a call, as its server reports it."""

    item_id: str
    message: str
    """One line: `3/10`, the message of the server, or both."""


@frozen
class CallDenied(_LiveOnly):
    """A policy, the sandbox or the user refused a call."""

    tool: str
    reason: str
    """The output that the model gets."""
    cause: str | None = None
    """As in `CallRefused`, like `allow`; None if the user refused."""
    allow: str | None = None


@frozen
class HookProgress(_LiveOnly):
    """A hook runs, or has ended. Those that nothing waits for are not shown."""

    event: str
    """`PreToolUse`."""
    status: HookStatus
    message: str | None = None
    """What the user wants to read while it runs."""


@frozen
class SteeringRefused(_LiveOnly):
    """An extension refused the oldest prompt that was steered into the turn and not sent yet."""

    text: str


@frozen
class FilesPatched(_LiveOnly):
    """A patch has been written."""

    files: Sequence[PatchedFile]
    entry: int | None = None
    """The number of the journal's entry; None if there is none."""


@frozen
class AgentEvent(_LiveOnly):
    """An event of a subagent, or of one further down."""

    thread_id: str
    """Of the subagent."""
    event: "Event"


@frozen
class UsageReported(_LiveOnly):
    """The tokens used so far, after each response."""

    last: Usage
    """Of the last response, which shows how full the window is. An estimate after a compaction."""
    total: Usage
    """Of the whole thread."""
    context_window: int
    """In tokens."""

    @property
    def context_left_percent(self) -> int:
        """The free part of the window, 0 to 100. As in Codex, the base prompt and the tools do not count."""
        window, used = self.context_window, self.last.total_tokens
        if window > _BASELINE_TOKENS:
            window -= _BASELINE_TOKENS
            used = max(0, used - _BASELINE_TOKENS)
        return max(0, round(100 * (window - used) / window)) if window > 0 else 0


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
    | McpToolCallProgress
    | CallDenied
    | HookProgress
    | SteeringRefused
    | FilesPatched
    | AgentEvent
    | UsageReported
)

EventSink: TypeAlias = Callable[[Event], None]
"""Takes each event as it happens. It never blocks for long and never raises."""
