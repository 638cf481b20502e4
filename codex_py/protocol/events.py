"""The events of a session: the same ones for the terminal, for files and for `exec --json`.

They are dataclasses, not pydantic models: nothing parses them, and the first two are emitted before pydantic
is loaded. `protocol.event_data` makes the object that `exec --json` prints as a line. Source of the shapes: the
JSONL events of Codex (`thread.started` … `turn.failed`); fields beyond those are additions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal, TypeAlias

from codex_py.protocol.approval import Denied
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.stream import Usage

HookStatus: TypeAlias = Literal["running", "completed", "blocked", "failed"]

_BASELINE_TOKENS = 12_000
"""What Codex estimates for the base prompt and the tools."""


@frozen
class ThreadStarted:
    type: ClassVar = "thread.started"
    thread_id: str
    worktree: str | None = field(default=None, metadata={"json": "unless none"})
    """The top of the git worktree that the session works in, if it is one of ours."""


@frozen
class TurnStarted:
    type: ClassVar = "turn.started"
    turn_id: str = field(default="", metadata={"json": False})
    """As in `TurnStart`."""


@frozen
class ItemStarted:
    """The agent began something: a command, a change, a call."""

    type: ClassVar = "item.started"
    item: ThreadItem


@frozen
class ItemUpdated:
    type: ClassVar = "item.updated"
    item: ThreadItem


@frozen
class ItemCompleted:
    """Something that the agent said or did is complete."""

    type: ClassVar = "item.completed"
    item: ThreadItem


@frozen
class StopOverridden:
    """An extension, such as the `Stop` hooks, still wanted more work of the agent when its rounds were used up."""

    rounds: int
    reason: str


@frozen
class TurnCompleted:
    """The last event of a turn that completed."""

    type: ClassVar = "turn.completed"
    usage: Usage
    """Of the whole thread, earlier turns included."""
    diff: str | None = field(default=None, metadata={"json": "unless none"})
    """All changes by patches of the turn, git style; None if they changed nothing."""
    denied: Denied | None = field(default=None, metadata={"json": "unless none"})
    stop: StopOverridden | None = field(default=None, metadata={"json": "unless none"})
    facts: Mapping[str, Any] = field(
        default_factory=dict[str, Any], metadata={"json": "inline"}
    )
    """Further fields of extensions; see `Extension.turn_facts`."""


@frozen
class ErrorInfo:
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
    """As in `TurnCompleted`: a failure does not undo patches."""
    facts: Mapping[str, Any] = field(
        default_factory=dict[str, Any], metadata={"json": "inline"}
    )


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
    """How often the request was sent again so far, this time included."""
    max_attempts: int = field(kw_only=True)
    """How often it is sent again in all, if it goes on failing in the same way."""
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
class CommandInBackground(_LiveOnly):
    """The call that started the command is answered, and the command goes on."""

    item_id: str


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
    code: str | None = None
    """Of the error that the model gets, such as `SandboxDenied`."""


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
class GoalChanged(_LiveOnly):
    """The thread has a goal, or what is known of it has changed."""

    goal: Mapping[str, Any] | None
    """As Codex has it: `objective`, `status`, `tokenBudget` and others. None: there is none any more."""


@frozen
class BugFound(_LiveOnly):
    """An exception that nobody expected. A call has failed with it, or the turn ends with it."""

    error: str
    """The exception in one line."""
    trace: str
    """The traceback."""


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
    | McpToolCallProgress
    | CallDenied
    | HookProgress
    | SteeringRefused
    | FilesPatched
    | GoalChanged
    | BugFound
    | AgentEvent
    | UsageReported
)

EventSink: TypeAlias = Callable[[Event], None]
"""Takes each event as it happens. It never blocks for long and never raises."""
