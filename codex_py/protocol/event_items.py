"""The items of a thread, as events carry them: what the agent said and did.

They are dataclasses, not pydantic models: nothing parses them. Source of the shapes: the items of Codex's JSONL events;
fields beyond those are additions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Final, Literal, TypeAlias

from codex_py.protocol.approval import DENIALS
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import ChangeKind, PatchedFile

Status: TypeAlias = Literal["in_progress", "completed", "failed"]
INTERRUPTED: Final = "Conversation interrupted"
"""The message of the code `aborted`."""


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
    was_stopped: bool = field(default=False, metadata={"json": False})
    """It was killed, by the user as a rule."""
    is_users: bool = field(default=False, metadata={"json": False})
    """The user ran it, and wants to see what it prints."""
    was_relayed: bool = field(default=False, metadata={"json": False})
    """Its output stands on the terminal already, as the command printed it."""


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
    files: Sequence[PatchedFile] = field(
        default=(), compare=False, metadata={"json": False}
    )
    """The files whole, as the patch finds them and leaves them. Only as it starts: nobody keeps them."""
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
    agents_states: Mapping[str, AgentState] = field(
        default_factory=dict[str, AgentState]
    )
    """By thread id."""
    status: Status = "in_progress"
    names: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata={"json": False}
    )
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

    @property
    def status(self) -> Literal["pending", "in_progress", "completed"]:
        """As the model gives it."""
        if self.completed:
            return "completed"
        if self.in_progress:
            return "in_progress"
        return "pending"


@frozen(kw_only=True)
class TodoList(_Item):
    type: ClassVar = "todo_list"
    items: Sequence[TodoEntry]
    explanation: str | None = field(default=None, metadata={"json": False})


@frozen(kw_only=True)
class ErrorItem(_Item):
    """Something the user should know. It has ended the turn if it has a code and no tool: only in a replay."""

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
    """A compaction; it starts when the summary is requested.

    Codex does not print one, so its id is that of a live item: the ids of the other items stay those of Codex.
    """

    type: ClassVar = "context_compaction"
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
