"""The items of a thread in events: messages and actions of the agent.

They are dataclasses, not pydantic models: nothing parses them. Source of the shapes: the items of
Codex's JSONL events; fields beyond those are additions. `plain_data` reads the metadata `json` of
the fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Final, Literal, TypeAlias

from codex_py.protocol.approval import DENIALS
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import ChangeKind, PatchedFile

Status: TypeAlias = Literal["in_progress", "completed", "failed"]
INTERRUPTED: Final = "Conversation interrupted"
"""The message of errors with the code `aborted`."""


@frozen(kw_only=True)
class _Item:
    id: str


@frozen(kw_only=True)
class AgentMessage(_Item):
    """A message of the model to the user."""

    type: ClassVar = "agent_message"
    text: str


@frozen(kw_only=True)
class ReasoningSummary(_Item):
    """The summary of the model's reasoning before a message or a call."""

    type: ClassVar = "reasoning"
    text: str


@frozen(kw_only=True)
class CommandExecution(_Item):
    """A command of the model or of the user."""

    type: ClassVar = "command_execution"
    command: str
    """The argv, joined with shell quoting."""
    aggregated_output: str = ""
    exit_code: int | None = None
    status: Status | Literal["declined"] = "in_progress"
    cwd: str = field(default="", metadata={"json": False})
    duration_ms: int | None = field(default=None, metadata={"json": False})
    was_stopped: bool = field(default=False, metadata={"json": False})
    """The command was killed, usually by the user."""
    is_users: bool = field(default=False, metadata={"json": False})
    """The user ran the command, and wants to see its output."""
    was_relayed: bool = field(default=False, metadata={"json": False})
    """The command has already printed its output to the terminal."""


@frozen(kw_only=True)
class Change:
    """The change of one file by a patch."""

    path: str
    """The absolute path; the old path of a move."""
    kind: ChangeKind


@frozen(kw_only=True)
class FileChange(_Item):
    """A patch."""

    type: ClassVar = "file_change"
    changes: Sequence[Change]
    """Sorted by path."""
    status: Status = "in_progress"
    diff: str = field(default="", metadata={"json": False})
    """The diff in git's format; empty if the patch cannot be applied."""
    files: Sequence[PatchedFile] = field(
        default=(), compare=False, metadata={"json": False}
    )
    """The complete files before and after the patch. Only in the item that starts: nothing stores
    them."""
    error: dict[str, str] | None = field(default=None, metadata={"json": "unless none"})
    """`code` and `message` of the failure or the refusal."""

    @property
    def is_declined(self) -> bool:
        """True if the change was not allowed. Its status is `failed`: the types of Codex's SDKs
        have no other."""
        return self.error is not None and self.error["code"] in DENIALS


@frozen(kw_only=True)
class McpToolCall(_Item):
    """A call of a tool of an MCP server, or of a built-in tool that is shown like one."""

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
    """The state of a subagent."""

    status: AgentWord
    message: str | None = None
    """The answer of a `completed` subagent, or the error of an `errored` one."""


@frozen(kw_only=True)
class CollabToolCall(_Item):
    """A call about subagents."""

    type: ClassVar = "collab_tool_call"
    tool: Literal["spawn_agent", "send_input", "wait", "close_agent"]
    """The tool that was called. As in Codex, `wait` stands for `resume_agent` too."""
    sender_thread_id: str
    receiver_thread_ids: Sequence[str] = ()
    prompt: str | None = None
    agents_states: Mapping[str, AgentState] = field(
        default_factory=dict[str, AgentState]
    )
    """The states by thread id."""
    status: Status = "in_progress"
    names: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata={"json": False}
    )
    """Nicknames by thread id, as far as they are known."""


@frozen(kw_only=True)
class WebSearch(_Item):
    """A search that the provider ran."""

    type: ClassVar = "web_search"
    query: str
    action: dict[str, Any] | None = None


@frozen(kw_only=True)
class TodoEntry:
    """A step of a plan."""

    text: str
    completed: bool
    in_progress: bool = field(default=False, metadata={"json": False})

    @property
    def status(self) -> Literal["pending", "in_progress", "completed"]:
        """The status in the model's words."""
        if self.completed:
            return "completed"
        if self.in_progress:
            return "in_progress"
        return "pending"


@frozen(kw_only=True)
class TodoList(_Item):
    """The plan of the model."""

    type: ClassVar = "todo_list"
    items: Sequence[TodoEntry]
    explanation: str | None = field(default=None, metadata={"json": False})


@frozen(kw_only=True)
class ErrorItem(_Item):
    """A problem to report to the user.

    With a code and no tool, it is the error that ended the turn, and appears only in a replay.
    """

    type: ClassVar = "error"
    message: str
    tool: str | None = field(default=None, metadata={"json": "unless none"})
    """The tool of a call that could not run, as the model wrote it; see `failed_call`."""
    call_id: str | None = field(default=None, metadata={"json": "unless none"})
    code: str | None = field(default=None, metadata={"json": "unless none"})


@frozen(kw_only=True)
class UserMessage(_Item):
    """A prompt that was steered into a running turn, once the model gets it. Live only.

    In a replay, every prompt is such an item.
    """

    type: ClassVar = "user_message"
    live_only: ClassVar = True
    text: str
    images: Sequence[str] = ()
    """Paths, absolute."""


@frozen(kw_only=True)
class ContextCompaction(_Item):
    """A compaction; it starts when the summary is requested.

    Codex does not print this item, so it gets the id of a live item, and the ids of other items are
    the same as in Codex.
    """

    type: ClassVar = "context_compaction"
    status: Status = "in_progress"


@frozen(kw_only=True)
class TurnTime(_Item):
    """The duration of a completed turn. Only in a replay."""

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
