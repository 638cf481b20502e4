"""A stream of events may be left at every place, in every way, and then has a result."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py import (
    Agent,
    Event,
    EventStream,
    Extension,
    ItemStarted,
    MessageDelta,
    Note,
    Thread,
    TurnAborted,
    UserPrompt,
)
from codex_py.errors import ConfigError
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import (
    ItemCompleted,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from codex_py.testing import (
    FakeModel,
    Pause,
    call,
    ev_completed,
    ev_created,
    ev_message,
)

Place: TypeAlias = Callable[[Event], bool]


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def is_command(event: Event) -> bool:
    return isinstance(event, ItemStarted) and isinstance(event.item, CommandExecution)


PLACES: dict[str, Place] = {
    "the first event": lambda event: True,
    "the start of the thread": lambda event: isinstance(event, ThreadStarted),
    "the start of the turn": lambda event: isinstance(event, TurnStarted),
    "a part of a message": lambda event: isinstance(event, MessageDelta),
    "a message": lambda event: isinstance(event, ItemCompleted),
    "the start of a command": is_command,
    "the end of the turn": lambda event: isinstance(event, TurnCompleted),
    "nowhere": lambda event: False,
}
SCRIPT = ["abcdefghij" * 6, call("exec_command", cmd="echo hi")]


class Mistake(Exception):
    pass


async def read(stream: EventStream, is_place: Place) -> None:
    async for event in stream:
        if is_place(event):
            break


async def joined(agent: Agent, is_place: Place) -> EventStream:
    async with agent, agent.stream("go") as stream:
        async for event in stream:
            if is_place(event):
                break
    return stream


async def nested(agent: Agent, is_place: Place) -> EventStream:
    async with agent:
        async with agent.stream("go") as stream:
            async for event in stream:
                if is_place(event):
                    break
        assert stream.result is not None
        assert (await agent.run("go on")).text == "next"
    return stream


async def without_the_agent(agent: Agent, is_place: Place) -> EventStream:
    async with agent.stream("go") as stream:
        async for event in stream:
            if is_place(event):
                break
    assert (await agent.run("go on")).text == "next"
    return stream


async def in_another_function(agent: Agent, is_place: Place) -> EventStream:
    async with agent, agent.stream("go") as stream:
        await read(stream, is_place)
    return stream


async def closed_by_hand(agent: Agent, is_place: Place) -> EventStream:
    stream = agent.stream("go")
    await read(stream, is_place)
    await stream.aclose()
    await stream.aclose()
    assert (await agent.run("go on")).text == "next"
    return stream


async def after_other_awaits(agent: Agent, is_place: Place) -> EventStream:
    async with agent, agent.stream("go") as stream:
        await read(stream, is_place)
        for _ in range(50):
            await asyncio.sleep(0)
    return stream


async def with_an_iterator(agent: Agent, is_place: Place) -> EventStream:
    async with agent, agent.stream("go") as stream:
        events = aiter(stream)
        async for event in events:
            if is_place(event):
                break
    return stream


async def with_an_error(agent: Agent, is_place: Place) -> EventStream:
    stream = agent.stream("go")
    with suppress(Mistake):
        async with agent, stream:
            async for event in stream:
                if is_place(event):
                    raise Mistake
    return stream


async def with_an_interruption(agent: Agent, is_place: Place) -> EventStream:
    async with agent, agent.stream("go") as stream:
        async for event in stream:
            if is_place(event):
                agent.interrupt()
                break
        agent.interrupt()
    return stream


async def cancelled(agent: Agent, is_place: Place) -> EventStream:
    stream = agent.stream("go")
    reached = asyncio.Event()

    async def work() -> None:
        async with agent, stream:
            async for event in stream:
                if is_place(event):
                    reached.set()
                    await asyncio.Event().wait()
        reached.set()

    reading = asyncio.create_task(work())
    await reached.wait()
    reading.cancel()
    await asyncio.wait([reading])
    return stream


async def in_a_generator(agent: Agent, is_place: Place) -> EventStream:
    stream = agent.stream("go")

    async def places() -> AsyncGenerator[Event]:
        async for event in stream:
            if is_place(event):
                yield event

    async with agent, stream, aclosing(places()) as events:
        async for _ in events:
            break
    return stream


WAYS: Sequence[Callable[[Agent, Place], Awaitable[EventStream]]] = (
    joined,
    nested,
    without_the_agent,
    in_another_function,
    closed_by_hand,
    after_other_awaits,
    with_an_iterator,
    with_an_error,
    with_an_interruption,
    cancelled,
    in_a_generator,
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_stream_that_was_left_has_a_result(
    way: Callable[[Agent, Place], Awaitable[EventStream]],
    place: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> EventStream:
        # The next turn has a response, wherever this one was left.
        model = FakeModel(SCRIPT, "next", "next")
        agent = Agent(model, sandbox="danger-full-access")
        async with asyncio.timeout(60):
            return await way(agent, PLACES[place])

    result = asyncio.run(main()).result
    assert isinstance(result.error, TurnAborted | None)
    if result.error is None:
        assert result.text == "next"
    else:
        assert str(result.error).startswith("the turn was interrupted")
        assert result.output is None
        assert result.error.result is result
        assert result.exit_code == 130
    assert caplog.messages == []


def test_a_turn_that_was_left_has_what_it_had_brought() -> None:
    async def main() -> EventStream:
        script = ["Look:", call("exec_command", cmd="sleep 60")]
        async with Agent(FakeModel(script), sandbox="danger-full-access") as agent:
            async with agent.stream("go") as stream:
                async for event in stream:
                    if is_command(event):
                        break
            return stream

    result = asyncio.run(main()).result
    assert isinstance(result.error, TurnAborted)
    assert (result.text, result.output) == ("Look:", None)
    types = [item.type for item in result.items]
    assert types == ["agent_message", "command_execution"]


def test_a_turn_that_waits_for_the_one_before_can_be_left_too() -> None:
    async def main() -> EventStream:
        async with Agent(FakeModel("one", "two", "three")) as agent:
            first = agent.stream("go")
            await read(first, PLACES["a part of a message"])
            second = agent.stream("and this?")
            waiting = asyncio.create_task(read(second, PLACES["nowhere"]))
            await asyncio.sleep(0)
            await second.aclose()
            with pytest.raises(TurnAborted, match="before it began"):
                await waiting
            assert isinstance(first.result.error, TurnAborted | None)
            assert (await agent.run("go on")).error is None
            return second

    result = asyncio.run(main()).result
    assert (result.text, result.output, result.items) == ("", None, ())
    assert isinstance(result.error, TurnAborted)


def test_a_turn_that_is_interrupted_while_it_opens_has_an_empty_result() -> None:
    async def main() -> None:
        async with Agent(FakeModel("fine")) as agent:
            running = asyncio.create_task(agent.run("go"))
            await asyncio.sleep(0)
            for _ in range(3):
                agent.interrupt()
            with pytest.raises(TurnAborted) as caught:
                await running
            assert (caught.value.result.items, caught.value.result.exit_code) == (
                (),
                130,
            )
            assert (await agent.run("go on")).text == "fine"

    asyncio.run(main())


def test_a_late_interruption_does_not_cancel_its_caller() -> None:
    """It comes from another thread, after the turn's end and before `run` returns."""

    async def main() -> None:
        async with Agent(FakeModel("one", "two"), extensions=[at_the_end]) as agent:

            def interrupt_often() -> None:
                for _ in range(3):
                    agent.interrupt()

            interrupts.append(interrupt_often)
            assert (await agent.run("go")).text == "one"
            agent.interrupt()
            await asyncio.sleep(0)
            assert (await agent.run("go on")).text == "two"

    interrupts: list[Callable[[], None]] = []

    def at_the_end(_: Thread) -> Extension:
        def sink(event: Event) -> None:
            if isinstance(event, TurnCompleted):
                interrupts[0]()

        return Extension(sink=sink)

    asyncio.run(main())


@pytest.mark.parametrize("place", ["the start of the turn", "a part of a message"])
def test_an_interruption_of_the_sync_form_has_a_result(place: str) -> None:
    def interrupts(_: Thread) -> Extension:
        def sink(event: Event) -> None:
            if PLACES[place](event) and len(model.requests) < 2:
                agent.interrupt()
                agent.interrupt()

        return Extension(sink=sink)

    script = [*SCRIPT, call("exec_command", cmd="sleep 60")]
    model = FakeModel(script, "next", "next")
    agent = Agent(model, extensions=[interrupts], sandbox="danger-full-access")
    with agent, pytest.raises(TurnAborted) as caught:
        agent.run_sync("go")
    assert str(caught.value) == "the turn was interrupted"
    assert caught.value.result.exit_code == 130


def test_a_stream_says_why_it_has_no_result(tmp_path: Path) -> None:
    def broken(_: Thread) -> Extension:
        async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
            raise Mistake("in here")

        return Extension(before_prompt=before_prompt)

    async def main() -> None:
        stream = Agent(FakeModel(), extensions=[broken]).stream("go")
        with pytest.raises(Mistake, match="in here"):
            await read(stream, PLACES["nowhere"])
        with pytest.raises(RuntimeError, match=r"the turn has no result: .*in here"):
            _ = stream.result

        home = tmp_path / "own"
        home.mkdir()
        (home / "config.toml").write_text("model = [", encoding="utf-8")
        stream = Agent(FakeModel(), home=home).stream("go")
        with pytest.raises(ConfigError):
            await read(stream, PLACES["nowhere"])
        with pytest.raises(
            RuntimeError, match=r"the turn has no result: .*config\.toml"
        ):
            _ = stream.result

    asyncio.run(main())


LEFT_BY_CTRL_C = """
import asyncio, os, signal
from codex_py import Agent, ItemStarted, MessageDelta
from codex_py.protocol.events import TurnStarted
from codex_py.testing import FakeModel, call

streams = []

async def main(kind):
    script = ["abcdefghij" * 6, call("exec_command", cmd="sleep 60")]
    agent = Agent(FakeModel(script), sandbox="danger-full-access")
    async with agent, agent.stream("go") as stream:
        streams.append(stream)
        async for event in stream:
            if isinstance(event, kind):
                os.kill(os.getpid(), signal.SIGINT)

for kind in (TurnStarted, MessageDelta, ItemStarted):
    try:
        asyncio.run(main(kind))
    except KeyboardInterrupt:
        print(repr(streams[-1].result.error))
"""


def test_ctrl_c_in_the_loop_leaves_a_result() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEFT_BY_CTRL_C],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    aborted = "TurnAborted('the turn was interrupted')\n"
    assert (done.stdout, done.stderr) == (aborted * 3, "")


def test_a_reader_that_is_cancelled_interrupts_the_turn_although_its_exception_is_kept() -> (
    None
):
    async def main() -> None:
        model = FakeModel(call("exec_command", cmd="sleep 60"), "Still here.")
        agent = Agent(model)
        waits = asyncio.Event()

        async def read() -> None:
            async for event in agent.stream("go"):
                if is_command(event):
                    waits.set()

        reader = asyncio.create_task(read())
        await waits.wait()
        reader.cancel()
        # A notebook keeps the exception of a cell, with its traceback and the frames of that.
        with pytest.raises(asyncio.CancelledError) as kept:
            await reader
        assert (await agent.run("And now?")).text == "Still here."
        assert kept.traceback
        await agent.close()

    asyncio.run(main())


def test_a_reader_may_stop_waiting_for_one_event() -> None:
    pause = Pause()
    slow = [ev_created(), pause, *ev_message("Hello."), ev_completed()]

    async def main() -> None:
        types: list[str] = []
        async with Agent(FakeModel(slow)) as agent, agent.stream("go") as stream:
            events = aiter(stream)
            while True:
                try:
                    event = await asyncio.wait_for(anext(events), 0.2)
                except TimeoutError:
                    pause.until.set()
                    types.append("time-out")
                except StopAsyncIteration:
                    break
                else:
                    types.append(type(event).__name__)
            assert stream.result.text == "Hello."
        assert "time-out" in types
        assert types[-1] == "TurnCompleted"

    asyncio.run(main())


def test_a_turn_that_is_left_has_the_text_that_had_come() -> None:
    pause = Pause()
    begun = [ev_created(), *ev_message("one two three", pieces=3)[:3], pause]

    async def main() -> None:
        agent = Agent(FakeModel(begun))
        text = ""
        async with agent, agent.stream("go") as stream:
            async for event in stream:
                if isinstance(event, MessageDelta):
                    text += event.delta
                    break
        pause.until.set()
        assert isinstance(stream.result.error, TurnAborted)
        assert text
        assert stream.result.text.startswith(text)
        assert "one two three".startswith(stream.result.text)

    asyncio.run(main())
