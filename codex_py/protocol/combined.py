"""Combines the extensions of a session into one. LIGHT."""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from codex_py.protocol.dispatch import Tool
from codex_py.protocol.events import Event, StopOverridden
from codex_py.protocol.extension import (
    Extension,
    Occasion,
    OfferedTool,
    StopCheck,
    ToolFinder,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.prompts import Note

ValueT = TypeVar("ValueT")
_EMPTY: Final = Extension()


def combined(extensions: Sequence[Extension]) -> Extension:
    """Combine extensions: the first is the outermost, entered first and left last."""
    sinks = _given(extensions, lambda each: each.sink)
    finders = _given(extensions, lambda each: each.find_tool)
    contexts = _given(extensions, lambda each: each.context)
    around_turn = _given(extensions, lambda each: each.around_turn)
    around_compaction = _given(extensions, lambda each: each.around_compaction)
    around_session = _given(extensions, lambda each: each.around_session)
    turn_facts = _given(extensions, lambda each: each.turn_facts)
    loaded = _given(extensions, lambda each: each.loaded)

    def sink(event: Event) -> None:
        for emit in sinks:
            emit(event)

    def find_tool() -> ToolFinder:
        return _first_tool([make_finder() for make_finder in finders])

    def context(occasion: Occasion) -> Sequence[Note]:
        notes: list[Note] = []
        for notes_for in contexts:
            notes += notes_for(occasion)
        return notes

    tools: list[OfferedTool] = []
    stop_checks: list[StopCheck] = []
    for each in extensions:
        tools += each.tools
        if each.before_stop is not _EMPTY.before_stop:
            stop_checks.append(_bounded(each))
    return Extension(
        tools=tools,
        find_tool=find_tool,
        wrap_model=_wrapping(_given(extensions, lambda each: each.wrap_model)),
        recover=_first(_given(extensions, lambda each: each.recover)),
        wrap_dispatch=_wrapping(_given(extensions, lambda each: each.wrap_dispatch)),
        wrap_approver=_wrapping(_given(extensions, lambda each: each.wrap_approver)),
        context=context,
        before_prompt=_all(_given(extensions, lambda each: each.before_prompt)),
        before_request=_all(_given(extensions, lambda each: each.before_request)),
        before_stop=_first_note(stop_checks),
        max_rounds=sum(each.max_rounds for each in extensions),
        around_turn=lambda turn: _nested(around(turn) for around in around_turn),
        around_compaction=lambda compaction: _nested(
            around(compaction) for around in around_compaction
        ),
        around_session=lambda: _nested(around() for around in around_session),
        turn_facts=lambda: _merged(facts() for facts in turn_facts),
        loaded=lambda: [tell() for tell in loaded],
        sink=sink,
    )


def _given(
    extensions: Sequence[Extension], field: Callable[[Extension], ValueT]
) -> list[ValueT]:
    """The values of a field of the extensions that do not leave it out."""
    default = field(_EMPTY)
    values = map(field, extensions)
    return [value for value in values if value is not default]


def _first_tool(finders: Sequence[ToolFinder]) -> ToolFinder:
    """Ask the finders in order, until one has the tool."""

    def find(name: str) -> Tool[Any] | None:
        for finder in finders:
            tool = finder(name)
            if tool is not None:
                return tool
        return None

    return find


def _wrapping(wraps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Apply the wrappers from the last, which is the innermost, to the first."""

    def wrap_all(wrapped: Any) -> Any:
        for wrap in reversed(wraps):
            wrapped = wrap(wrapped)
        return wrapped

    return wrap_all


def _first(
    functions: Sequence[Callable[..., Awaitable[Any]]],
) -> Callable[..., Awaitable[Any]]:
    """Call the functions in order, until one returns something true. Else the last result counts."""

    async def first(*arguments: Any) -> Any:
        result = None
        for function in functions:
            result = await function(*arguments)
            if result:
                break
        return result

    return first


def _first_note(checks: Sequence[StopCheck]) -> StopCheck:
    """Call the checks in order, until one returns a note, which continues the turn.

    An extension without rounds left does not stop later ones.
    """

    async def before_stop(stop: TurnStop) -> Note | StopOverridden | None:
        overridden: StopOverridden | None = None
        for check in checks:
            answer = await check(stop)
            if isinstance(answer, Note):
                return answer
            if overridden is None:
                overridden = answer
        return overridden

    return before_stop


def _bounded(extension: Extension) -> StopCheck:
    """Return the extension's `before_stop`, with its rounds counted and limited."""
    turn: TurnStart | None = None
    rounds = 0

    async def before_stop(stop: TurnStop) -> Note | StopOverridden | None:
        nonlocal turn, rounds
        if stop.turn is not turn:
            turn = stop.turn
            rounds = 0
        rounds_left = extension.max_rounds - rounds
        stop = replace(stop, rounds=rounds, rounds_left=rounds_left)
        answer = await extension.before_stop(stop)
        if not isinstance(answer, Note):
            return answer
        if rounds_left <= 0:
            return StopOverridden(rounds, answer.text)
        rounds += 1
        return answer

    return before_stop


def _all(
    functions: Sequence[Callable[..., Awaitable[Sequence[Note]]]],
) -> Callable[..., Awaitable[Sequence[Note]]]:
    """Call all functions in order, and return the notes of all."""

    async def all_notes(*arguments: Any) -> Sequence[Note]:
        notes: list[Note] = []
        for function in functions:
            notes += await function(*arguments) or ()
        return notes

    return all_notes


def _merged(all_facts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Merge the facts of all extensions.

    For each name the first value that is not empty wins, for `exit_code` the largest.
    """
    merged: dict[str, Any] = {}
    for facts in all_facts:
        for name, value in facts.items():
            if not merged.get(name):
                merged[name] = value
            elif name == "exit_code" and value:
                merged[name] = max(merged[name], value)
    return merged


@asynccontextmanager
async def _nested(
    contexts: Iterable[AbstractAsyncContextManager[object]],
) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for context in contexts:
            await stack.enter_async_context(context)
        yield
