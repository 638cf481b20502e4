"""What an extension wraps, and what it makes of it: whose mistake is told.

Tests `app/inner_parts.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from codex_py.app.guarded_extension import ExtensionBug, GuardedFeature
from codex_py.errors import CodexError, ToolError, TurnSuspended
from codex_py.protocol.approval import Review, ReviewDecision
from codex_py.protocol.extension import Extension
from codex_py.protocol.tools import ToolOutput

NAME = "the extension 'x' (x:feature)"
YES = Review(ReviewDecision.APPROVED)
ANYTHING: Any = None
Inner: TypeAlias = Callable[[], Awaitable[Any]]
Middle: TypeAlias = Callable[[Inner], Any]


async def hands_on(inner: Inner) -> Any:
    return await inner()


async def hands_on_in_a_group(inner: Inner) -> Any:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(hands_on(inner))
    return task.result()


async def fails(_: Inner) -> Any:
    raise ValueError("boom")


async def fails_on_an_error(inner: Inner) -> Any:
    try:
        return await inner()
    except Exception as error:
        raise ValueError("boom") from error


def answers_at_once(_: Inner) -> Any:
    return YES


class OfFunctions:
    """An approver whose `review` calls a function."""

    def __init__(self, review: Callable[[], Any]) -> None:
        self._review = review

    def review(self, request: object) -> Any:
        return self._review()


def guarded(extension: Extension, *, keeps_errors: bool = False) -> Extension:
    feature = GuardedFeature(lambda _: extension, NAME, keeps_errors=keeps_errors)
    return feature(ANYTHING)


def reviewed(middle: Middle, inner: Inner, *, keeps_errors: bool = False) -> Any:
    def wrap(approver: Any) -> Any:
        return OfFunctions(lambda: middle(lambda: approver.review(ANYTHING)))

    extension = guarded(Extension(wrap_approver=wrap), keeps_errors=keeps_errors)
    approver: Any = extension.wrap_approver(OfFunctions(inner))  # pyright: ignore[reportArgumentType]
    return approver.review(ANYTHING)


def dispatched(middle: Middle, inner: Inner, *, keeps_errors: bool = False) -> Any:
    def wrap(dispatch: Any) -> Any:
        def run(use: Any) -> Any:
            return middle(lambda: dispatch(use))

        return run

    extension = guarded(Extension(wrap_dispatch=wrap), keeps_errors=keeps_errors)
    return extension.wrap_dispatch(lambda _: inner())(ANYTHING)


def streamed(middle: Middle, inner: Inner, *, keeps_errors: bool = False) -> Any:
    """Read the events of a response, the first of which `inner` returns."""

    @asynccontextmanager
    async def model(_: object) -> AsyncGenerator[Any]:
        async def events() -> AsyncGenerator[Any]:
            yield await inner()

        yield events()

    def wrap(stream: Any) -> Any:
        @asynccontextmanager
        async def wrapped(prompt: Any) -> AsyncGenerator[Any]:
            async with stream(prompt) as events:

                async def changed() -> AsyncGenerator[Any]:
                    yield await middle(lambda: anext(events))

                yield changed()

        return wrapped

    async def read() -> Any:
        extension = guarded(Extension(wrap_model=wrap), keeps_errors=keeps_errors)
        async with extension.wrap_model(model)(ANYTHING) as events:
            (event,) = [event async for event in events]
            return event

    return read()


PARTS = {
    "the approver of `wrap_approver`": (reviewed, YES),
    "the function of `wrap_dispatch`": (dispatched, ToolOutput("done")),
    "the stream of `wrap_model`": (streamed, "event"),
}
PART = pytest.mark.parametrize(("what", "part"), [*PARTS.items()], ids=[*PARTS])


def gives(value: Any) -> Inner:
    async def give() -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return give


@PART
@pytest.mark.parametrize("middle", [hands_on, hands_on_in_a_group])
def test_what_the_inner_part_returns_is_handed_on(
    what: str, part: Any, middle: Middle
) -> None:
    run, value = part
    assert asyncio.run(run(middle, gives(value))) == value


@PART
def test_a_bug_of_an_extension_is_told_with_its_name(what: str, part: Any) -> None:
    run, value = part
    with pytest.raises(ExtensionBug) as caught:
        asyncio.run(run(fails, gives(value)))
    assert str(caught.value) == f"{NAME} failed in {what}: ValueError('boom')"
    assert isinstance(caught.value.__cause__, ValueError)


@PART
def test_a_bug_behind_the_error_of_another_is_one_of_the_extension(
    what: str, part: Any
) -> None:
    run, _ = part
    with pytest.raises(ExtensionBug, match="failed in"):
        asyncio.run(run(fails_on_an_error, gives(KeyError("mine"))))


@PART
def test_the_error_of_a_caller_gets_a_note(what: str, part: Any) -> None:
    run, value = part
    with pytest.raises(ValueError, match="boom") as caught:
        asyncio.run(run(fails, gives(value), keeps_errors=True))
    assert caught.value.__notes__ == [f"{NAME} failed in {what}"]


@PART
@pytest.mark.parametrize("keeps_errors", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        KeyError("mine"),
        SystemExit(3),
        CodexError("no", code="mine"),
        TurnSuspended("later"),
        asyncio.CancelledError(),
    ],
    ids=repr,
)
def test_an_error_of_the_inner_part_is_not_blamed_on_the_extension(
    what: str, part: Any, error: BaseException, keeps_errors: bool
) -> None:
    run, _ = part
    with pytest.raises(type(error)) as caught:
        asyncio.run(run(hands_on, gives(error), keeps_errors=keeps_errors))
    if not isinstance(error, asyncio.CancelledError):
        assert caught.value is error
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("run", [reviewed, dispatched])
def test_an_error_for_the_model_is_no_bug(run: Any) -> None:
    async def refuses(_: Inner) -> Any:
        raise ToolError("not today")

    with pytest.raises(ToolError, match="not today"):
        asyncio.run(run(refuses, gives(None)))


@pytest.mark.parametrize(
    ("run", "what", "wanted"),
    [
        (reviewed, "the approver of `wrap_approver`", "a `Review`"),
        (dispatched, "the function of `wrap_dispatch`", "a `ToolOutput`"),
    ],
)
def test_a_wrong_answer_is_told_with_the_name(run: Any, what: str, wanted: str) -> None:
    async def forgets(_: Inner) -> Any:
        return None

    with pytest.raises(TypeError) as caught:
        asyncio.run(run(forgets, gives(None)))
    assert str(caught.value) == f"{NAME}: {what} returned None, not {wanted}"
    with pytest.raises(TypeError) as caught:
        asyncio.run(run(answers_at_once, gives(None)))
    text = f"{NAME}: {what} must be an `async def`; it returned Review"
    assert str(caught.value) == text


def test_a_wrong_answer_of_the_user_is_not_blamed_on_the_extension() -> None:
    with pytest.raises(CodexError, match="the approver answered 'yes'"):
        asyncio.run(reviewed(hands_on, gives("yes")))


def test_a_stream_that_is_none_is_told_with_the_name() -> None:
    def stream(_: object) -> Any:
        return None

    def wrap(_: object) -> Any:
        return stream

    extension = guarded(Extension(wrap_model=wrap))

    async def read() -> None:
        async with extension.wrap_model(ANYTHING)(ANYTHING):
            pass

    with pytest.raises(TypeError) as caught:
        asyncio.run(read())
    text = "the stream of `wrap_model` returned None, not an async context manager"
    assert str(caught.value) == f"{NAME}: {text}"


def finds_a_number(_: str) -> Any:
    return 42


def finds_nothing(name: str) -> Any:
    raise KeyError(name)


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (
            finds_a_number,
            ": the finder of `find_tool` returned int, not a `Tool` or None",
        ),
        (finds_nothing, " failed in the finder of `find_tool`: KeyError('words')"),
    ],
)
def test_a_finder_of_tools_is_told_with_its_name(find: Any, text: str) -> None:
    extension = guarded(Extension(find_tool=lambda: find))
    with pytest.raises(ExtensionBug) as caught:
        extension.find_tool()("words")
    assert str(caught.value) == f"{NAME}{text}"


def test_what_wraps_nothing_costs_nothing() -> None:
    extension = guarded(
        Extension(
            wrap_model=lambda model: model,
            wrap_dispatch=lambda dispatch: dispatch,
            wrap_approver=lambda approver: approver,
        )
    )
    inner: Any = OfFunctions(gives(YES))
    assert extension.wrap_model(inner) is inner
    assert extension.wrap_dispatch(inner) is inner
    assert extension.wrap_approver(inner) is inner


def test_an_extension_finds_the_other_attributes_of_what_it_wraps() -> None:
    class Asks(OfFunctions):
        question = "may it?"

    found: list[str] = []

    def wrap(approver: Any) -> Any:
        found.append(approver.question)
        return Asks(gives(YES))

    user: Any = Asks(gives(YES))
    wrapped: Any = guarded(Extension(wrap_approver=wrap)).wrap_approver(user)
    assert [*found, wrapped.question] == ["may it?", "may it?"]
