"""Extensions: what a feature may wrap, watch, add and decide in a session. LIGHT.

A feature is a function that is called once for each session, when the session is made, and returns its
`Extension`. It must not start anything yet: `around_session` is for that. The state of one session belongs into that
call; a feature object that is given to several sessions shares its state between them.

The feature itself, the entries of `around_session` and `around_turn`, `context`, `before_prompt`, `before_request` and
`wrap_model` run before the first request is sent: they must import light modules only, no pydantic.

Any function may raise a `CodexError`, which ends the turn with that error. Another exception is a bug: the turn ends as
`internal error` with a traceback. Fields for which this differs say so; a bug around a call costs that call alone, see
`Dispatch`. A cancellation must always be passed on.
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
from codex_py.protocol.stream import ModelStream, ToolChoice, Usage
from codex_py.protocol.tools import ToolSpec

Occasion: TypeAlias = Literal["start", "resume", "compact"]
ToolFinder: TypeAlias = Callable[[str], Tool[Any] | None]
"""Finds a tool by the name that the model wrote; None if there is none."""


@frozen
class OfferedTool:
    """A tool of an extension. Its name is its own: not one of the program, of a function, or of another extension."""

    name: str
    load: Callable[[], Tool[Any]]
    """Called once, by the first call of the tool, so it may import what the tool needs."""
    spec: ToolSpec | None = None
    """How requests offer the tool; None accepts its calls without offering it."""


@frozen
class TurnStart:
    """A turn that begins, as extensions see it."""

    id: str
    prompt: UserPrompt | None
    """None for a turn that is retried, and for a compaction that the user asked for."""
    tool_choice: ToolChoice | None = None
    """Given with the turn; None: as configured."""
    output_schema: Any = None
    """A JSON Schema for the final answer; None: any text."""


@frozen
class TurnStop:
    """A turn that is about to end because the model called no tool."""

    turn: TurnStart
    last_message: str | None
    rounds: int = 0
    """How often this extension has continued the turn."""
    rounds_left: int = 0
    """How often it still may. 1: a note starts the last round; 0: a note does not continue the turn."""


StopCheck: TypeAlias = Callable[[TurnStop], Awaitable[Note | StopOverridden | None]]


@frozen
class Compaction:
    """A replacement of the history by a summary, as extensions see it."""

    trigger: Literal["auto", "manual"]
    keep: Callable[[Note], None]
    """Add a note that the new history begins with, behind the context."""


@frozen
class ParentThread:
    """Where a child session comes from."""

    thread_id: str
    """Of the session that opened it."""
    root_id: str
    """Of the session at the top, which no other has opened."""
    depth: int
    """Of the child: 1 if the root opened it."""
    nickname: str
    """Of the child, for the user."""
    role: str | None = None
    """The child's agent type."""
    session_file: Path | None = None
    """Of the session that opened it."""


class CommandOptions(TypedDict, total=False):
    """How a program is run for the user."""

    sandboxed: Required[bool]
    """True: in the sandbox, with the variables of the model's commands. False: the program is not taken from a folder
    that a command could write to, and a script finds none there unless the user trusts the project."""
    timeout_s: Required[float]
    cwd: Path | None
    """Absolute; the default is that of the session."""
    stdin: bytes
    environment: Mapping[str, str]
    """Further variables."""
    max_output_bytes: int
    """Of stdout, by default 1 MiB; the middle of a longer one is left out."""
    joins_errors: bool
    """What it writes to stderr is part of stdout, in the order in which it was written."""


Script: TypeAlias = str | Sequence[str]
"""A script for the user's shell, or a program and its arguments."""


@frozen
class CommandResult:
    """How a program ended that was run for the user."""

    exit_code: int | None
    """Negative after a signal; None if the time was over."""
    stdout: str
    stderr: str
    """The last 16 KB."""


class ChildResult(Protocol):
    """See `TurnResult`."""

    @property
    def last_message(self) -> str | None: ...
    @property
    def error(self) -> CodexError | None: ...


class ChildThread(Protocol):
    """See `Session`."""

    @property
    def thread_id(self) -> str: ...
    async def run_turn(
        self, text: str, *, output_schema: Any = None
    ) -> ChildResult: ...


@frozen
class NewChild:
    """A session to open below another one. It has the environment, the connections, the approver, the elicitor and the
    caller's extensions and tools of that one, which counts its tokens, and emits its warnings, refusals and patches,
    and its events as `AgentEvent`."""

    nickname: str
    role: str | None = None
    choices: Choices | None = None
    """None: those that hold in the session above now."""
    history: Sequence[EncodedItem] = ()
    """What it begins with, behind its context."""
    features: "Sequence[Feature]" = ()
    """Further ones of the child and its children, inside all others but the fallback to other models."""
    sink: EventSink = lambda _: None
    """Takes the child's own events."""
    has_own_files: bool = False
    """What it patches is no change of a turn of the session above."""


FeatureT = TypeVar("FeatureT")


class Thread(Protocol):
    """A session, as its features see it. Its history grows and its settings change while they look."""

    @property
    def thread_id(self) -> str: ...
    @property
    def parent(self) -> ParentThread | None:
        """None for a session that no other has opened."""
        ...

    @property
    def session_file(self) -> Path | None:
        """Absolute; None if the session is not saved."""
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
        """The history as it is sent to the model, base prompt first."""
        ...

    @property
    def token_usage(self) -> UsageReported: ...

    def feature(self, kind: type[FeatureT]) -> FeatureT | None:
        """Another feature of this session, by its class. Not before the session has started."""
        ...

    def emit(self, event: Event) -> None: ...

    def warn(self, text: str) -> None:
        """Show the user a warning. If the session has not started yet, it is shown once it has."""
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
        """End the running turn with an error: its calls are cancelled and answered `aborted: {error}`."""
        ...

    async def run_command(
        self, command: Script, **how: Unpack[CommandOptions]
    ) -> CommandResult:
        """Run a program to its end. It and all that it started are dead afterwards, also after a cancellation. It does
        not see the variables that hold keys.

        Raises:
            CodexError: it cannot be started, or not be confined (`exit_code` 6).
        """
        ...

    def open_child(self, child: NewChild) -> AbstractAsyncContextManager[ChildThread]:
        """Open a session below this one. It may outlive the call, but not this session.

        Raises:
            CodexError: it cannot be opened.
        """
        ...

    def past_prompts(self) -> Sequence[PastPrompt]: ...

    def count(self, usage: Usage) -> None:
        """Add the tokens that others, such as a child session, used for this thread."""
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
    """What a feature does in one session. Every field may be left out."""

    tools: Sequence[OfferedTool] = ()
    find_tool: Callable[[], ToolFinder] = lambda: lambda _: None
    """Tools that come and go. Called once, after the first request was sent; the finder is asked for names that neither
    `tools` nor the built-in tools have."""
    wrap_model: Callable[[ModelStream], ModelStream] = _unchanged
    recover: Callable[[ModelError, int], Awaitable[bool]] = _nothing
    """Try to make the next request succeed. Gets the failure, and how many retries of its kind are left. True: send it
    now."""
    wrap_dispatch: Callable[[Dispatch], Dispatch] = _unchanged
    """Wraps each call when its turn in the queue has come; see `Dispatch`."""
    wrap_approver: Callable[[Approver], Approver] = _unchanged
    """Wraps the approver that tools ask. Approvals for the session are stored outside of it: the wrapper sees each such
    question once."""
    context: Callable[[Occasion], Sequence[Note]] = lambda _: ()
    """Notes before the first prompt of a session, and again after a compaction has replaced the history."""
    before_prompt: Callable[[UserPrompt], Awaitable[Sequence[Note]]] = _nothing
    """Notes that follow a prompt, a steered one included. `PromptRefused`: the prompt is not kept, and its turn fails;
    if the prompt was steered, the user is warned and the turn continues. `TurnSkipped`, here and in `around_turn`: the
    turn completes instead, with its `exit_code`."""
    before_request: Callable[[], Awaitable[Sequence[Note]]] = _nothing
    """Notes before each request of a turn."""
    before_stop: StopCheck = _nothing
    """A note continues the turn. Extensions are called in order, and the first note wins. A note after the last round
    is
    overridden: the turn ends, its last event says so, and `exec` exits with 3. Not called after a failure."""
    max_rounds: int = 20
    """How often `before_stop` may continue a turn."""
    around_turn: Callable[[TurnStart], _Context] = _no_context
    """Left before the terminal event of the turn, on every path. It must not suppress exceptions."""
    around_compaction: Callable[[Compaction], _Context] = _no_context
    """`CompactionFailed` refuses it, with and without a summary; the history stays as it is."""
    around_session: Callable[[], _Context] = _no_context
    """Entered before `ThreadStarted`. If that raises a `CodexError`, no session is opened and no file written."""
    turn_facts: Callable[[], Mapping[str, Any]] = dict
    """Fields of the turn's terminal event, called after `around_turn` was left. If the turn completed, `exec` exits
    with the highest `exit_code`: of our own, that is the most serious."""
    loaded: Callable[[], object] = lambda: None
    """Called once, when the tools were loaded behind the first request: what takes time to import may begin here."""
    sink: EventSink = lambda _: None
    """Gets every event. It must not raise, not even a `CodexError`: it gets the terminal event as well."""


Feature: TypeAlias = Callable[[Thread], Extension]
"""Called once for each session, when it is made. It must not start anything yet, and of the functions of the thread it
may call `warn` alone."""
