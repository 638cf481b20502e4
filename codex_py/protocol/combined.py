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
from typing import Any

from codex_py.protocol.events import Event, StopOverridden
from codex_py.protocol.extension import (
    Extension,
    StopCheck,
    ToolFinder,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.prompts import Note


def combined(extensions: Sequence[Extension]) -> Extension:
    """Combine extensions in the order given: the first is the outermost, entered first and left last."""
    sinks = [each.sink for each in extensions]

    def sink(event: Event) -> None:
        for emit in sinks:
            emit(event)

    def find_tool() -> ToolFinder:
        finders = [each.find_tool() for each in extensions]
        return lambda name: next(
            (t for find in finders if (t := find(name)) is not None), None
        )

    return Extension(
        tools=[tool for each in extensions for tool in each.tools],
        find_tool=find_tool,
        wrap_model=_wrapping([each.wrap_model for each in extensions]),
        recover=_first([each.recover for each in extensions]),
        wrap_dispatch=_wrapping([each.wrap_dispatch for each in extensions]),
        wrap_approver=_wrapping([each.wrap_approver for each in extensions]),
        context=lambda occasion: [
            note for each in extensions for note in each.context(occasion)
        ],
        before_prompt=_all([each.before_prompt for each in extensions]),
        before_request=_all([each.before_request for each in extensions]),
        before_stop=_all_content([_bounded(each) for each in extensions]),
        max_rounds=sum(each.max_rounds for each in extensions),
        around_turn=lambda turn: _nested(each.around_turn(turn) for each in extensions),
        around_compaction=lambda compaction: _nested(
            each.around_compaction(compaction) for each in extensions
        ),
        around_session=lambda: _nested(each.around_session() for each in extensions),
        turn_facts=lambda: _merged(each.turn_facts() for each in extensions),
        loaded=lambda: [each.loaded() for each in extensions],
        sink=sink,
    )


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
    """The first note continues the turn. An extension without rounds does not decide for those behind it."""

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
    """`before_stop` with the rounds of the extension counted."""
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
    """All facts together. Of several by one name the first that is not empty counts, of exit codes the largest."""
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
