"""Extensions: what a feature may wrap, watch, add and decide in a session. LIGHT.

A feature is a function that is called once for each session, when the session is made, and returns
its `Extension`. It must not start anything yet: `around_session` is for that. Create the state of a
session within that call; a feature object that is given to several sessions shares its attributes
between them.

The feature itself, the entries of `around_session` and `around_turn`, `context`, `before_prompt`,
`before_request` and `wrap_model` run before the first request is sent: they must import light
modules only, no pydantic.

Any function may raise a `CodexError`, which ends the turn with that error. Any other exception is a
bug: the turn ends with `internal error`, which names the extension and the field, and a traceback. Fields with other
rules say so; a bug around a call fails that call alone, see `Dispatch`. A cancellation must always be passed on.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import (
    Any,
    Literal,
    Protocol,
    Required,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from codex_py.errors import CodexError, ModelError
from codex_py.protocol.approval import Approver
from codex_py.protocol.dispatch import Dispatch, Tool
from codex_py.protocol.events import Event, EventSink, StopOverridden, UsageReported
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, PastPrompt, UserPrompt
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.stream import ModelStream, PlanUse, ToolChoice, Usage
from codex_py.protocol.tools import ToolSpec

Occasion: TypeAlias = Literal["start", "resume", "compact"]
ToolFinder: TypeAlias = Callable[[str], Tool[Any] | None]
"""Finds a tool by the name that the model wrote; None if no tool has it."""


@frozen
class OfferedTool:
    """A tool of an extension.

    Its name must differ from the names of built-in tools, Python functions and tools of other
    extensions.
    """

    name: str
    load: Callable[[], Tool[Any]]
    """Make the tool. Its first call calls this, so it may import what the tool needs."""
    spec: ToolSpec | None = None
    """The specification in requests; None: accept calls of the tool without offering it."""


@frozen
class TurnStart:
    """The start of a turn, as extensions see it."""

    id: str
    prompt: UserPrompt | None
    """The prompt; None for a retried turn, and for a compaction that the user asked for."""
    tool_choice: ToolChoice | None = None
    """The choice given with the turn; None: the configured one."""
    output_schema: Any = None
    """A JSON Schema for the final answer; None: any text."""


@frozen
class TurnStop:
    """A turn that is about to end because the model called no tool."""

    turn: TurnStart
    last_message: str | None
    rounds: int = 0
    """The number of times that this extension has continued the turn."""
    rounds_left: int = 0
    """The number of times that it may still do so. With 1, a note starts the last round; with 0, a
    note does not continue the turn."""


StopCheck: TypeAlias = Callable[[TurnStop], Awaitable[Note | StopOverridden | None]]
"""The type of `Extension.before_stop`."""


@frozen
class Compaction:
    """A replacement of the history by a summary, as extensions see it."""

    trigger: Literal["auto", "manual"]
    keep: Callable[[Note], None]
    """Add a note to the start of the new history, after the context."""


@frozen
class ParentThread:
    """The origin of a child session."""

    thread_id: str
    """The id of the session that opened the child."""
    root_id: str
    """The id of the session at the top, which no other session has opened."""
    depth: int
    """The depth of the child: 1 if the root opened it."""
    nickname: str
    """The child's name for the user."""
    role: str | None = None
    """The child's agent type."""
    session_file: Path | None = None
    """The file of the session that opened the child."""


class CommandOptions(TypedDict, total=False):
    """Options for running a program on behalf of the user."""

    sandboxed: Required[bool]
    """True: run in the sandbox, with the variables of the model's commands.

    False: run outside. The program is not taken from a folder that a command could write to, and a
    script finds no programs there unless the user trusts the project.
    """
    timeout_s: Required[float]
    cwd: Path | None
    """The absolute working directory; by default, the session's."""
    stdin: bytes
    environment: Mapping[str, str]
    """Additional environment variables."""
    max_output_bytes: int
    """Limit for stdout, by default 1 MiB; the middle of a longer output is left out."""
    joins_errors: bool
    """Merge stderr into stdout, in the order in which they were written."""


Script: TypeAlias = str | Sequence[str]
"""A script for the user's shell, or a program and its arguments."""


@frozen
class CommandResult:
    """The result of a program that was run for the user."""

    exit_code: int | None
    """Negative after a signal; None after a timeout."""
    stdout: str
    stderr: str
    """The last 16 KB."""


class ChildResult(Protocol):
    """The result of a child's turn; see `TurnResult`."""

    @property
    def last_message(self) -> str | None: ...
    @property
    def error(self) -> CodexError | None: ...


class ChildThread(Protocol):
    """A child session; see `Session`."""

    @property
    def thread_id(self) -> str: ...
    async def run_turn(
        self, text: str, *, output_schema: Any = None
    ) -> ChildResult: ...


@frozen
class NewChild:
    """A session to open below another one.

    The child uses the parent's environment, connections, approver and elicitor, and the extensions
    and tools that the caller gave the parent. The parent counts the child's tokens, and emits the
    child's warnings, refusals and patches, and its events as `AgentEvent`.
    """

    nickname: str
    role: str | None = None
    choices: Choices | None = None
    """The child's choices; None: the parent's current choices."""
    history: Sequence[EncodedItem] = ()
    """The first items of the child, after its context."""
    features: "Sequence[Feature]" = ()
    """Additional features of the child and its children. Their wrappers are the innermost, except
    for the fallback to other models."""
    sink: EventSink = lambda _: None
    """Takes the child's own events."""
    has_own_files: bool = False
    """True: the child's patches do not count as changes of the parent's turns."""


FeatureT = TypeVar("FeatureT")


class Thread(Protocol):
    """A session, as its features see it. Its history and settings may change between two reads."""

    @property
    def thread_id(self) -> str: ...
    @property
    def parent(self) -> ParentThread | None:
        """The session that opened this one; None if no session has."""
        ...

    @property
    def session_file(self) -> Path | None:
        """The absolute path of the session file; None if the session is not saved."""
        ...

    @property
    def name(self) -> str | None: ...
    @property
    def settings(self) -> TurnSettings: ...
    @property
    def turn(self) -> TurnStart | None:
        """The running turn; None between turns."""
        ...

    @property
    def items(self) -> Sequence[EncodedItem]:
        """The history in the form that the model gets, base prompt first."""
        ...

    @property
    def token_usage(self) -> UsageReported: ...

    def feature(self, kind: type[FeatureT]) -> FeatureT | None:
        """Another feature of this session, by its class. Call it only once the session has
        started."""
        ...

    def emit(self, event: Event) -> None: ...

    def warn(self, text: str) -> None:
        """Show the user a warning. Before the session has started, the warning waits until then."""
        ...

    def next_item_id(self) -> str: ...

    def tell(self, note: Note) -> None:
        """Append a note to the history before the next request; at once if no turn is running."""
        ...

    def steer(self, text: str) -> bool:
        """Add a user message to the running turn. False if the turn takes no more."""
        ...

    def abort(self) -> None:
        """End the running turn as if the user had interrupted it."""
        ...

    def end(self, error: CodexError) -> None:
        """End the running turn with an error.

        Its calls are cancelled and answered `aborted: {error}`.
        """
        ...

    async def run_command(
        self, command: Script, **how: Unpack[CommandOptions]
    ) -> CommandResult:
        """Run a program to its end.

        Afterwards, also after a cancellation, the program and all processes that it started are
        dead. It does not see the variables that hold keys.

        Raises:
            CodexError: the program cannot be started, or cannot be confined (`exit_code` 6).
        """
        ...

    def open_child(self, child: NewChild) -> AbstractAsyncContextManager[ChildThread]:
        """Open a session below this one. It may outlive the call, but not this session.

        Raises:
            CodexError: it cannot be opened.
        """
        ...

    def past_prompts(self) -> Sequence[PastPrompt]: ...

    def count(self, usage: Usage, *, plan: PlanUse | None = None) -> None:
        """Add the tokens that others, such as a child session, used for this thread.

        `plan`: the use of the ChatGPT plan that paid for them; None if no plan did.
        """
        ...


_Context: TypeAlias = AbstractAsyncContextManager[object]


def _unchanged(wrapped: Any) -> Any:
    return wrapped


def _no_context(_: Any = None) -> _Context:
    return nullcontext()


async def _nothing(*_: object) -> Any:
    return None


@frozen(kw_only=True)
class Extension:
    """The contributions of a feature to one session. Every field may be left out."""

    tools: Sequence[OfferedTool] = ()
    find_tool: Callable[[], ToolFinder] = lambda: lambda _: None
    """Return a finder of tools that come and go.

    This is called once, after the first request was sent. The finder is asked for names that
    neither `tools` nor the built-in tools have.
    """
    wrap_model: Callable[[ModelStream], ModelStream] = _unchanged
    """Wrap each attempt at a request; see `ModelStream`."""
    recover: Callable[[ModelError, int], Awaitable[bool]] = _nothing
    """Try to make the next request succeed. True: send it now.

    The arguments are the failure, and the number of retries that are left for failures of its kind.
    """
    wrap_dispatch: Callable[[Dispatch], Dispatch] = _unchanged
    """Wrap each call once it leaves the queue; see `Dispatch`."""
    wrap_approver: Callable[[Approver], Approver] = _unchanged
    """Wrap the approver that tools ask. The wrapper does not see questions that an approval for the
    session already answers."""
    context: Callable[[Occasion], Sequence[Note]] = lambda _: ()
    """Return notes before the first prompt of a session, and again after a compaction has replaced
    the history."""
    before_prompt: Callable[[UserPrompt], Awaitable[Sequence[Note]]] = _nothing
    """Return notes that follow a prompt, a steered one included.

    If it raises `PromptRefused`, the prompt is not kept, and its turn fails; if the prompt was
    steered, the user is warned and the turn continues. If this, or `around_turn`, raises
    `TurnSkipped`, the turn completes instead, with its `exit_code`.
    """
    before_request: Callable[[], Awaitable[Sequence[Note]]] = _nothing
    """Return notes before each request of a turn."""
    before_stop: StopCheck = _nothing
    """Return a note to continue the turn.

    Extensions are called in order, and the first note wins. A note after the last round is
    overridden: the turn ends, its last event says so, and `exec` exits with 3. This is not called
    after a failure.
    """
    max_rounds: int = 20
    """Limit on how often `before_stop` may continue a turn."""
    around_turn: Callable[[TurnStart], _Context] = _no_context
    """The context of a turn. It is left before the terminal event of the turn, on every path, and
    must not suppress exceptions."""
    around_compaction: Callable[[Compaction], _Context] = _no_context
    """The context of a compaction. Raise `CompactionFailed` to refuse the compaction, before or
    after the summary; the history is then unchanged."""
    around_session: Callable[[], _Context] = _no_context
    """The context of the session, entered before `ThreadStarted`. If entering raises a
    `CodexError`, no session is opened and no file written."""
    turn_facts: Callable[[], Mapping[str, Any]] = dict
    """Return fields of the turn's terminal event. This is called after `around_turn` was left.

    If the turn completed, `exec` exits with the highest `exit_code`, which among our own codes is
    the most serious one.
    """
    loaded: Callable[[], object] = lambda: None
    """Start slow imports. This is called once, after the first request was sent and the tools were
    loaded."""
    sink: EventSink = lambda _: None
    """Take every event, the terminal one included. It must not raise, not even a `CodexError`."""


Feature: TypeAlias = Callable[[Thread], Extension]
"""Makes the extension of one session, when the session is made. It must not start anything yet, and
may call only `warn` of the thread's functions."""
