"""The seam of features: what one may wrap, watch, add, or be asked. LIGHT.

A feature is a function that is called once for each session, when the session is made, and returns its
`Extension`. It must not start anything yet: `around_session` is for that. A feature that is given to several
sessions shares the state of its object between them; the state of one session belongs to the call.

Before the first request leaves run the feature itself, the entries of `around_session` and `around_turn`, `context`,
`before_prompt`, `before_request` and `wrap_model`: they import light modules only, no pydantic.

What each function may raise: a `CodexError` ends the turn with that error; anything else is a bug, and leaves the
turn as `internal error` with its traceback. Exceptions to this are named below. A cancellation always goes on.
"""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import reduce
from typing import Any, Literal, Protocol, TypeAlias

from codex_py.errors import CodexError, ModelError
from codex_py.protocol.approval import Approver
from codex_py.protocol.dispatch import Dispatch, Tool
from codex_py.protocol.events import Event, EventSink, UsageReported
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, PastPrompt, UserPrompt
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.stream import ModelStream, Usage
from codex_py.protocol.tools import ToolSpec

Occasion: TypeAlias = Literal["start", "resume", "compact"]
ToolFinder: TypeAlias = Callable[[str], Tool[Any] | None]
"""The tool of the name that a model wrote; None if there is none."""


@frozen
class OfferedTool:
    """A tool of an extension."""

    name: str
    load: Callable[[], Tool[Any]]
    """Called once, when the first request is on its way: it may import what the tool needs."""
    spec: ToolSpec | None = None
    """How requests offer it; None does not offer it, but accepts calls."""


@frozen
class TurnStart:
    id: str
    prompt: UserPrompt | None
    """None for a turn that is retried, and for a compaction that the user asked for."""


@frozen
class TurnStop:
    """A turn that is about to end because the model has called nothing."""

    turn: TurnStart
    last_message: str | None
    rounds: int
    """How often the agent was kept going in this turn."""


@frozen
class Compaction:
    trigger: Literal["auto", "manual"]
    keep: Callable[[Note], None]
    """Put a note behind the summary."""


class Thread(Protocol):
    """A session, as its features see it. Its history grows and its settings change while they look."""

    @property
    def thread_id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def settings(self) -> TurnSettings: ...
    @property
    def turn(self) -> TurnStart | None:
        """The turn that is running."""
        ...

    @property
    def items(self) -> Sequence[EncodedItem]:
        """The history, base prompt first, as the model has it."""
        ...

    @property
    def token_usage(self) -> UsageReported: ...

    def emit(self, event: Event) -> None: ...

    def warn(self, text: str) -> None:
        """Tell the user something that does not end the turn. Before the session has started, it waits for that."""
        ...

    def next_item_id(self) -> str: ...

    def tell(self, note: Note) -> None:
        """Append to the history before the next request; at once if no turn is running."""
        ...

    def steer(self, text: str) -> bool:
        """Say something as the user, into the running turn. False if it takes no more."""
        ...

    def abort(self) -> None:
        """End the running turn as if the user had interrupted it."""
        ...

    def end(self, error: CodexError) -> None:
        """End the running turn with an error: its calls are cancelled and answered `aborted: {error}`."""
        ...

    def past_prompts(self) -> Sequence[PastPrompt]: ...

    def count(self, usage: Usage) -> None:
        """Add tokens that others used for this thread, such as a child, to its total."""
        ...


_Context: TypeAlias = AbstractAsyncContextManager[object]


def _unchanged(wrapped: Any) -> Any:
    return wrapped


def _no_context(_: Any = None) -> _Context:
    return nullcontext()


async def _no_notes(_: Any = None) -> Sequence[Note]:
    return ()


async def _no_note(_: TurnStop) -> Note | None:
    return None


async def _no_recovery(_: ModelError, __: int) -> bool:
    return False


@frozen(kw_only=True)
class Extension:
    """What a feature does in one session. Every field may be left out."""

    tools: Sequence[OfferedTool] = ()
    find_tool: Callable[[], ToolFinder] = lambda: lambda _: None
    """Tools that come and go. Called once behind the first request; the finder is asked when no tool of `tools` or of
    the program has the name."""
    wrap_model: Callable[[ModelStream], ModelStream] = _unchanged
    recover: Callable[[ModelError, int], Awaitable[bool]] = _no_recovery
    """Try to make the next request succeed after this failure, with so many retries left. True: send it now."""
    wrap_dispatch: Callable[[Dispatch], Dispatch] = _unchanged
    """Inside the queue of calls, around the understood call; see `Dispatch`."""
    wrap_approver: Callable[[Approver], Approver] = _unchanged
    """Approvals are asked inside tools. An answer for the whole session is kept outside of this: the wrapper sees the
    question once."""
    context: Callable[[Occasion], Sequence[Note]] = lambda _: ()
    """What the model is told before the first prompt of a session, and again when a compaction replaced the history."""
    before_prompt: Callable[[UserPrompt], Awaitable[Sequence[Note]]] = _no_notes
    """Notes that follow a prompt; also of one that is steered into a turn. `PromptRefused`: the prompt is not kept, and
    its turn fails, or if it was steered, the user is warned and the turn goes on."""
    before_request: Callable[[], Awaitable[Sequence[Note]]] = _no_notes
    """Notes before each request of a turn."""
    before_stop: Callable[[TurnStop], Awaitable[Note | None]] = _no_note
    """A note keeps the agent going. Extensions are asked in order, and the first note wins; how often is bounded. Not
    asked after a failure."""
    around_turn: Callable[[TurnStart], _Context] = _no_context
    """Left before the terminal event of the turn, on every path. It must not suppress what is raised inside."""
    around_compaction: Callable[[Compaction], _Context] = _no_context
    """`CompactionFailed` refuses it; the history stays as it is."""
    around_session: Callable[[], _Context] = _no_context
    """Entered before `ThreadStarted`. A `CodexError` there means that there is no session, and no file of it."""
    turn_facts: Callable[[], Mapping[str, Any]] = dict
    """Fields of the turn's last event, asked when `around_turn` was left. Of `exit_code`, the first one that is not 0
    is what `exec` returns for a turn that completed."""
    sink: EventSink = lambda _: None
    """Gets every event. It must not raise, not even a `CodexError`: it gets the terminal event as well."""


def combined(extensions: Sequence[Extension]) -> Extension:
    """Many extensions as one, in the order given: the first is the outermost, is entered first and left last."""
    every = extensions
    sinks = [each.sink for each in every]

    def sink(event: Event) -> None:
        for take in sinks:
            take(event)

    def find_tool() -> ToolFinder:
        finders = [each.find_tool() for each in every]
        return lambda name: next((t for find in finders if (t := find(name)) is not None), None)

    return Extension(
        tools=[tool for each in every for tool in each.tools],
        find_tool=find_tool,
        wrap_model=_wrapping([each.wrap_model for each in every]),
        recover=_first([each.recover for each in every]),
        wrap_dispatch=_wrapping([each.wrap_dispatch for each in every]),
        wrap_approver=_wrapping([each.wrap_approver for each in every]),
        context=lambda occasion: [note for each in every for note in each.context(occasion)],
        before_prompt=_all([each.before_prompt for each in every]),
        before_request=_all([each.before_request for each in every]),
        before_stop=_first([each.before_stop for each in every]),
        around_turn=lambda turn: _nested(each.around_turn(turn) for each in every),
        around_compaction=lambda compaction: _nested(
            each.around_compaction(compaction) for each in every
        ),
        around_session=lambda: _nested(each.around_session() for each in every),
        turn_facts=lambda: _merged(each.turn_facts() for each in every),
        sink=sink,
    )


def _wrapping(wraps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda wrapped: reduce(lambda inner, wrap: wrap(inner), reversed(wraps), wrapped)


def _first(functions: Sequence[Callable[..., Awaitable[Any]]]) -> Callable[..., Awaitable[Any]]:
    async def first(*arguments: Any) -> Any:
        found = None
        for function in functions:
            if found := await function(*arguments):
                break
        return found

    return first


def _all(
    functions: Sequence[Callable[..., Awaitable[Sequence[Note]]]],
) -> Callable[..., Awaitable[Sequence[Note]]]:
    async def notes(*arguments: Any) -> Sequence[Note]:
        return [note for function in functions for note in await function(*arguments)]

    return notes


def _merged(facts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    merged: dict[str, Any] = {}
    for some in facts:
        merged.update((name, merged.get(name) or value) for name, value in some.items())
    return merged


@asynccontextmanager
async def _nested(contexts: Iterable[_Context]) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for context in contexts:
            await stack.enter_async_context(context)
        yield


Feature: TypeAlias = Callable[[Thread], Extension]
"""Called once for each session, when it is made. It must not start anything yet."""
