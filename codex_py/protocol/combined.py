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
from functools import reduce
from typing import Any, Final, TypeVar

from codex_py.protocol.events import Event, StopOverridden
from codex_py.protocol.extension import (
    Extension,
    StopCheck,
    ToolFinder,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.prompts import Note

ValueT = TypeVar("ValueT")
_EMPTY: Final = Extension()


def combined(extensions: Sequence[Extension]) -> Extension:
    """Combine extensions in the order given: the first is the outermost, entered first and left last."""
    sinks = _set(extensions, lambda each: each.sink)
    finders = _set(extensions, lambda each: each.find_tool)
    contexts = _set(extensions, lambda each: each.context)
    around_turn = _set(extensions, lambda each: each.around_turn)
    around_compaction = _set(extensions, lambda each: each.around_compaction)
    around_session = _set(extensions, lambda each: each.around_session)
    turn_facts = _set(extensions, lambda each: each.turn_facts)
    loaded = _set(extensions, lambda each: each.loaded)

    def sink(event: Event) -> None:
        for emit in sinks:
            emit(event)

    def find_tool() -> ToolFinder:
        found = [find() for find in finders]
        return lambda name: next(
            (t for find in found if (t := find(name)) is not None), None
        )

    return Extension(
        tools=[tool for each in extensions for tool in each.tools],
        find_tool=find_tool,
        wrap_model=_wrapping(_set(extensions, lambda each: each.wrap_model)),
        recover=_first(_set(extensions, lambda each: each.recover)),
        wrap_dispatch=_wrapping(_set(extensions, lambda each: each.wrap_dispatch)),
        wrap_approver=_wrapping(_set(extensions, lambda each: each.wrap_approver)),
        context=lambda occasion: [
            note for context in contexts for note in context(occasion)
        ],
        before_prompt=_all(_set(extensions, lambda each: each.before_prompt)),
        before_request=_all(_set(extensions, lambda each: each.before_request)),
        before_stop=_all_content(
            [
                _bounded(each)
                for each in extensions
                if each.before_stop is not _EMPTY.before_stop
            ]
        ),
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


def _set(
    extensions: Sequence[Extension], field: Callable[[Extension], ValueT]
) -> list[ValueT]:
    """The values of a field, without the extensions that leave it out."""
    default = field(_EMPTY)
    values = map(field, extensions)
    return [value for value in values if value is not default]


def _wrapping(wraps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda wrapped: reduce(
        lambda inner, wrap: wrap(inner), reversed(wraps), wrapped
    )


def _first(
    functions: Sequence[Callable[..., Awaitable[Any]]],
) -> Callable[..., Awaitable[Any]]:
    async def first(*arguments: Any) -> Any:
        found = None
        for function in functions:
            found = await function(*arguments)
            if found:
                break
        return found

    return first


def _all_content(checks: Sequence[StopCheck]) -> StopCheck:
    """Return the first note, which continues the turn. An extension without rounds left does not
    stop later ones."""

    async def before_stop(stop: TurnStop) -> Note | StopOverridden | None:
        overridden = None
        for check in checks:
            wanted = await check(stop)
            if isinstance(wanted, Note):
                return wanted
            overridden = overridden or wanted
        return overridden

    return before_stop


def _bounded(extension: Extension) -> StopCheck:
    """The extension's `before_stop`, with its rounds counted."""
    turn: TurnStart | None = None
    rounds = 0

    async def before_stop(stop: TurnStop) -> Note | StopOverridden | None:
        nonlocal turn, rounds
        if stop.turn is not turn:
            turn = stop.turn
            rounds = 0
        stop = replace(stop, rounds=rounds, rounds_left=extension.max_rounds - rounds)
        wanted = await extension.before_stop(stop)
        if isinstance(wanted, Note) and stop.rounds_left <= 0:
            return StopOverridden(rounds, wanted.text)
        if isinstance(wanted, Note):
            rounds += 1
        return wanted

    return before_stop


def _all(
    functions: Sequence[Callable[..., Awaitable[Sequence[Note]]]],
) -> Callable[..., Awaitable[Sequence[Note]]]:
    async def notes(*arguments: Any) -> Sequence[Note]:
        found: list[Note] = []
        for function in functions:
            found += await function(*arguments) or ()
        return found

    return notes


def _merged(facts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Merge facts. For each name the first value that is not empty wins; for `exit_code` the
    largest."""
    merged: dict[str, Any] = {}
    for some in facts:
        for name, value in some.items():
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
