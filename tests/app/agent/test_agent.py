"""The front door of the library, with a fake model.

Also tests `app/agent/agent_session.py`, `app/agent/result.py`, `app/agent/stream.py`
and `protocol/output_model.py`.
"""

import asyncio
import gc
import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, assert_type

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel, field_validator
from typing_extensions import TypedDict  # pydantic wants it before Python 3.12

from codex_py import (
    Agent,
    ApprovalRequest,
    CodexError,
    Event,
    EventStream,
    Extension,
    Feature,
    ItemStarted,
    MessageDelta,
    Note,
    Review,
    ReviewDecision,
    Thread,
    TurnAborted,
    TurnSkipped,
    UserPrompt,
    event_json,
    tool,
)
from codex_py.errors import ConfigError, UsageError
from codex_py.protocol.event_items import CommandExecution
from codex_py.testing import (
    FakeModel,
    Pause,
    Reply,
    call,
    ev_completed,
    ev_created,
    ev_message,
)
from tests.support.images import PNG


class Rating(BaseModel):
    stars: int
    why: str = Field(default="", description="One sentence.")

    @field_validator("stars")
    @classmethod
    def _at_most_five(cls, stars: int) -> int:
        if stars > 5:
            raise ValueError("five is the most")
        return stars


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def prompts(model: FakeModel) -> list[str]:
    """The texts of the user in the last request."""
    items = [item for item in model.requests[-1].input if item.get("role") == "user"]
    return [part.get("text", "") for item in items for part in item["content"]]


def test_an_answer_takes_three_lines_sync_and_async() -> None:
    assert Agent(FakeModel("Hello.")).run_sync("Say hello").text == "Hello."
    assert asyncio.run(Agent(FakeModel("Hello.")).run("Say hello")).text == "Hello."


def test_a_conversation_goes_on_with_each_prompt() -> None:
    model = FakeModel("one", "two")

    async def main() -> None:
        async with Agent(model) as agent:
            assert agent.thread_id is None
            await agent.run("first")
            thread = agent.thread_id
            assert (await agent.run("second")).text == "two"
            assert agent.thread_id == thread is not None
        with pytest.raises(RuntimeError, match="the agent is closed"):
            await agent.run("third")

    asyncio.run(main())
    assert prompts(model)[-2:] == ["first", "second"]


def test_a_turn_that_is_interrupted_takes_no_more_prompts() -> None:
    steered: list[bool] = []

    async def stop() -> None:
        agent.interrupt()
        steered.append(agent.steer("and this?"))
        await asyncio.Event().wait()

    agent = Agent(FakeModel(call("stop"), "next"), tools=[stop])
    with pytest.raises(TurnAborted):
        agent.run_sync("go")
    assert steered == [False]
    assert agent.run_sync("and this?").text == "next"


def test_a_closed_agent_says_so_to_run_sync_too() -> None:
    with Agent(FakeModel("one", "two")) as agent:
        agent.run_sync("first")
    with pytest.raises(RuntimeError, match="the agent is closed"):
        agent.run_sync("second")


def test_it_goes_on_in_another_event_loop_when_the_first_has_ended(
    tmp_path: Path,
) -> None:
    for home in (None, tmp_path / "own"):
        model = FakeModel("one", "two", "three")
        agent = Agent(model, home=home)
        assert asyncio.run(agent.run("first")).text == "one"
        assert asyncio.run(agent.run("second")).text == "two"
        assert agent.run_sync("third").text == "three"
        assert prompts(model)[-3:] == ["first", "second", "third"]


def test_it_cannot_be_in_two_loops_that_run() -> None:
    agent = Agent(FakeModel("one"))
    agent.run_sync("first")
    with pytest.raises(RuntimeError, match="is in another event loop"):
        asyncio.run(agent.run("second"))


def test_the_sync_form_works_inside_a_running_loop() -> None:
    async def cell() -> str:
        return Agent(FakeModel("Hello.")).run_sync("Say hello").text

    assert asyncio.run(cell()) == "Hello."


def test_an_agent_is_used_in_the_cells_of_a_notebook() -> None:
    loop = asyncio.new_event_loop()
    agent = Agent(FakeModel("one", "two"))
    assert loop.run_until_complete(agent.run("first")).text == "one"
    assert loop.run_until_complete(agent.run("second")).text == "two"
    loop.run_until_complete(agent.close())
    loop.close()


def test_a_function_is_a_tool() -> None:
    def stock(part: str) -> dict[str, int]:
        """How many of a part there are."""
        return {part: 7}

    model = FakeModel(call("stock", part="bolts"), "Seven.")
    result = Agent(model, tools=[stock]).run_sync("How many bolts?")
    assert result.text == "Seven."
    assert model.requests[1].output("call_1") == '{"bolts":7}'
    assert [item.type for item in result.items] == ["mcp_tool_call", "agent_message"]


def test_the_result_has_what_the_turn_brought(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"
    model = FakeModel(call("apply_patch", input=patch), "done", "again")
    agent = Agent(model, sandbox="danger-full-access")
    result = agent.run_sync("go")
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "hello\n"
    assert result.diff is not None
    assert "+hello" in result.diff
    assert (result.usage.input_tokens, result.exit_code, result.denied) == (
        200,
        0,
        False,
    )
    assert agent.run_sync("more").usage.input_tokens == 100


def test_an_answer_is_returned_as_the_model_that_was_asked_for() -> None:
    model = FakeModel('{"stars": 9, "why": ""}', '{"stars": 4, "why": "good"}')
    result = Agent(model, output_type=Rating).run_sync("Rate it")
    assert result.output == Rating(stars=4, why="good")
    note = model.requests[1].input[-1]["content"][0]["text"]
    assert note.startswith("Your last message cannot be used: ")
    assert "at stars: Value error, five is the most" in note
    assert len(result.warnings) == 1
    schema = model.requests[0].body["text"]["format"]["schema"]
    assert schema["required"] == ["stars", "why"]
    assert schema["additionalProperties"] is False
    assert "default" not in schema["properties"]["why"]


def test_a_second_answer_that_breaks_the_model_is_an_error() -> None:
    agent = Agent(FakeModel("five", "6", "fine"))
    with pytest.raises(CodexError, match="does not satisfy Rating") as caught:
        agent.run_sync("Rate it", output_type=Rating)
    assert (caught.value.code, caught.value.exit_code) == ("schema", 4)
    assert (caught.value.result.text, caught.value.result.output) == ("6", None)
    assert agent.run_sync("And in words?").output == "fine"


def test_a_typed_turn_that_an_extension_skips_has_no_answer() -> None:
    async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
        raise TurnSkipped("not today")

    skip = Extension(before_prompt=before_prompt)
    with pytest.raises(CodexError, match="does not satisfy Rating") as caught:
        Agent(FakeModel(), extensions=[lambda _: skip], output_type=Rating).run_sync(
            "Rate it"
        )
    assert (caught.value.code, caught.value.result.exit_code) == ("schema", 4)


def raises(error: BaseException) -> type[BaseModel]:
    class Fragile(BaseModel):
        stars: int

        @field_validator("stars")
        @classmethod
        def _check(cls, stars: int) -> int:
            if stars > 5:
                raise error
            return stars

    return Fragile


@pytest.mark.parametrize(
    "error",
    [KeyError("boom"), TypeError("boom"), ZeroDivisionError("boom"), OSError("boom")],
    ids=repr,
)
def test_a_validator_that_fails_refuses_the_answer(error: Exception) -> None:
    model = FakeModel('{"stars": 6}', '{"stars": 5}', '{"stars": 6}', '{"stars": 7}')
    agent = Agent(model, output_type=raises(error))
    assert agent.run_sync("Rate it").output.model_dump() == {"stars": 5}
    reason = f"the final answer does not satisfy Fragile: a validator failed: {error!r}"
    assert reason in str(model.requests[1].input[-1])
    with pytest.raises(CodexError) as caught:
        agent.run_sync("Rate it")
    assert (caught.value.code, str(caught.value)) == ("schema", reason)


class Nested(BaseModel):
    best: Rating = Field(description="The best.")
    default: list[Rating]


def test_a_model_of_models_is_strict_all_the_way_down() -> None:
    model = FakeModel('{"best": {"stars": 1, "why": ""}, "default": []}')
    result = Agent(model).run_sync("go", output_type=Nested)
    assert result.output == Nested(best=Rating(stars=1), default=[])
    schema = model.requests[0].body["text"]["format"]["schema"]
    assert schema["properties"]["best"] == {"$ref": "#/$defs/Rating"}
    assert schema["required"] == ["best", "default"]
    assert schema["$defs"]["Rating"]["required"] == ["stars", "why"]


@dataclass
class Place:
    name: str
    height: int = 0


class Numbers(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


AnyPet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Titled(TypedDict):
    title: str


class Tree(BaseModel):
    name: str
    parts: list["Tree"] = []


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (int, '{"response": 5}', 5),
        (list[int], '{"response": [1, 2]}', [1, 2]),
        (str | None, '{"response": null}', None),
        (Literal["a", "b"], '{"response": "b"}', "b"),
        (Place | Rating, '{"response": {"name": "x", "height": 1}}', Place("x", 1)),
        (list[Place], '{"response": [{"name": "x", "height": 1}]}', [Place("x", 1)]),
        (Place, '{"name": "x", "height": 1}', Place("x", 1)),
        (Titled, '{"title": "x"}', {"title": "x"}),
        (dict[str, int], '{"x": 1}', {"x": 1}),
        (Numbers, '{"response": [1, 2]}', Numbers([1, 2])),
        (AnyPet, '{"response": {"kind": "dog"}}', Dog(kind="dog")),
        (
            Tree,
            '{"name": "a", "parts": [{"name": "b", "parts": []}]}',
            Tree(name="a", parts=[Tree(name="b")]),
        ),
    ],
)
def test_an_answer_may_be_of_any_type_that_pydantic_knows(
    kind: Any, answer: str, value: object
) -> None:
    model = FakeModel("no JSON", answer)
    assert Agent(model).run_sync("go", output_type=kind).output == value
    schema = model.requests[0].body["text"]["format"]["schema"]
    assert schema["type"] == "object"
    assert "oneOf" not in json.dumps(schema)
    if "properties" in schema:
        assert schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False
    again = model.requests[1].input[-1]["content"][0]["text"]
    assert "does not satisfy" in again
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(answer), schema)


def test_type_checkers_know_the_type_of_an_answer() -> None:
    rated = Agent(FakeModel('{"stars": 5, "why": ""}'), output_type=Rating)
    assert assert_type(rated.run_sync("go").output, Rating) == Rating(stars=5, why="")
    maybe = Agent(FakeModel('{"response": null}'), output_type=int | None)
    assert assert_type(maybe.run_sync("go").output, int | None) is None
    plain = Agent(FakeModel("Yes.", '{"response": "b"}'), output_type=None)
    assert assert_type(plain.run_sync("go").output, str) == "Yes."
    letter = plain.run_sync("go", output_type=Literal["a", "b"])
    assert assert_type(letter.output, Literal["a", "b"]) == "b"


class WithFunction(BaseModel):
    function: Callable[[], int]


class Unfinished(BaseModel):
    field: "NotThere"  # pyright: ignore[reportUndefinedVariable] # noqa: F821


class Raising:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise OSError("no schema today")


def nested(depth: int) -> Any:
    kind: Any = int
    for _ in range(depth):
        kind = list[kind]
    return kind


@pytest.mark.parametrize(
    "kind",
    [
        "Rating",
        5,
        {"type": "x"},
        object(),
        socket.socket,
        len,
        nested,
        partial(int, "1"),
        WithFunction,
        Unfinished,
        Raising,
        Iterator[int],
        Iterable[int],
        nested(3000),
        Annotated[str, Field(pattern="(")],
        Annotated[int | str, Field(discriminator="kind")],
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_an_output_type_that_pydantic_does_not_know_is_refused_at_once(
    kind: Any,
) -> None:
    with pytest.raises(TypeError, match="`output_type` must be a type") as caught:
        Agent(FakeModel(), output_type=kind)
    assert len(str(caught.value)) < 500


def test_the_name_of_a_type_in_an_error_is_bounded() -> None:
    words = tuple(f"word {number}" for number in range(1000))
    kind: Any = Literal[words]
    agent = Agent(FakeModel("x", "x"), output_type=kind)
    with pytest.raises(CodexError, match="does not satisfy") as caught:
        agent.run_sync("go")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("right", [1, 2])
def test_a_validator_that_changes_its_mind_refuses_the_answer_as_any_other(
    right: int,
) -> None:
    """An answer is checked before the turn ends, and once more for its value."""
    calls: list[int] = []

    class Fickle(BaseModel):
        stars: int

        @field_validator("stars")
        @classmethod
        def _check(cls, stars: int) -> int:
            calls.append(stars)
            if len(calls) > right:
                raise ValueError("too often")
            return stars

    agent = Agent(FakeModel('{"stars": 6}'), output_type=Fickle)
    if right == 2:
        assert agent.run_sync("go").output == Fickle.model_construct(stars=6)
        return
    with pytest.raises(CodexError, match="too often") as caught:
        agent.run_sync("go")
    assert caught.value.code == "schema"


def test_a_turn_that_fails_raises_with_what_it_had_brought() -> None:
    refused = Reply(status=400, body=b'{"error":{"message":"No such model"}}')
    agent = Agent(
        FakeModel(["Look:", call("exec_command", cmd="echo hi")], refused, "fine")
    )
    with pytest.raises(CodexError, match="No such model") as caught:
        agent.run_sync("go")
    error, result = caught.value, caught.value.result
    assert (error.status, error.retryable, result.exit_code) == (
        400,
        False,
        error.exit_code,
    )
    assert [item.type for item in result.items][:2] == [
        "agent_message",
        "command_execution",
    ]
    assert (result.text, result.error is error) == ("Look:", True)
    assert agent.run_sync("again").text == "fine"


def asked(approve: Any, *further: str) -> tuple[list[int], FakeModel]:
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(euros: int) -> str:
        paid.append(euros)
        return "paid"

    model = FakeModel(call("pay", euros=5), "done", *further)
    Agent(model, tools=[pay], approve=approve).run_sync("Pay")
    return paid, model


async def says_no(request: ApprovalRequest) -> Review:
    assert request.kind == "mcp"
    assert request.tool == ("mcp__python__pay", {"euros": 5})
    assert request.arguments == {"euros": 5}
    return Review(ReviewDecision.DENIED, "too much")


def test_a_plain_or_async_function_approves_calls() -> None:
    main = threading.current_thread()

    def says_yes(request: ApprovalRequest) -> bool:
        assert threading.current_thread() is not main
        return True

    assert asked(says_yes)[0] == [5]
    assert asked(lambda request: ReviewDecision.APPROVED)[0] == [5]  # pyright: ignore[reportUnknownLambdaType]
    assert asked(lambda request: False)[0] == []  # pyright: ignore[reportUnknownLambdaType]
    paid, model = asked(says_no)
    assert paid == []
    assert "too much" in model.requests[1].output("call_1")


def test_only_functions_and_tools_of_servers_have_arguments_to_approve(
    tmp_path: Path,
) -> None:
    command = ApprovalRequest("command", "true", tmp_path)
    network = ApprovalRequest(
        "network", "pypi.org:443", tmp_path, tool=("pypi.org", {"port": 443})
    )
    assert (command.arguments, network.arguments) == ({}, {})


def test_without_approval_calls_that_need_one_are_refused() -> None:
    paid, model = asked(None)
    assert paid == []
    assert "The approval policy is `never`: nobody can be asked." in json.dumps(
        model.requests[0].body
    )


def takes_two(request: ApprovalRequest, other: object) -> bool:
    return True


@pytest.mark.parametrize("approve", [True, lambda: True, takes_two])
def test_a_callback_that_takes_something_else_is_refused_at_once(approve: Any) -> None:
    with pytest.raises(TypeError, match="`approve` must be a function of one argument"):
        Agent(FakeModel(), approve=approve)


def test_a_strange_answer_is_no_approval_and_an_error() -> None:
    with pytest.raises(CodexError, match="the approver answered 'yes'") as caught:
        asked(lambda request: "yes")  # pyright: ignore[reportUnknownLambdaType]
    assert caught.value.code == "approver"


def test_an_error_of_the_callback_comes_out_of_the_run() -> None:
    def approve(request: ApprovalRequest) -> bool:
        raise LookupError("no such user")

    with pytest.raises(LookupError, match="no such user"):
        asked(approve)


@pytest.mark.parametrize(
    "end",
    [SystemExit(2), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()],
    ids=repr,
)
@pytest.mark.parametrize("is_async", [True, False])
def test_no_exception_of_the_callback_is_told_to_the_model(
    end: BaseException, is_async: bool
) -> None:
    @tool(needs_approval=True)
    def pay(euros: int) -> str:
        return "paid"

    def raises(request: ApprovalRequest) -> bool:
        raise end

    async def raises_too(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        raise end

    model = FakeModel(call("pay", euros=5), "next")
    approve: Any = raises
    if is_async:
        approve = raises_too

    async def main() -> str:
        async with Agent(model, tools=[pay], approve=approve) as agent:
            raised: BaseException | None = None
            try:
                await agent.run("Pay")
            except BaseException as error:  # noqa: BLE001 - it is looked at below
                raised = error
            assert end in (raised, getattr(raised, "__cause__", None))
            assert len(model.requests) == 1
            return (await agent.run("go on")).text

    assert asyncio.run(main()) == "next"


def test_a_stream_has_the_events_as_they_happen_and_then_the_result() -> None:
    async def main() -> list[Event]:
        async with Agent(FakeModel("Hello.")) as agent:
            stream = agent.stream("Say hello")
            with pytest.raises(RuntimeError, match="the turn has not ended"):
                _ = stream.result
            events = [event async for event in stream]
            assert stream.result.text == "Hello."
            return events

    events = asyncio.run(main())
    assert [event_json(event)["type"] for event in events] == [
        "thread.started",
        "turn.started",
        *["message_delta"] * 3,
        "item.completed",
        "usage",
        "turn.completed",
    ]


async def followed(stream: EventStream, types: list[str]) -> None:
    async for event in stream:
        types.append(event_json(event)["type"])  # noqa: PERF401 - those before the error count


def test_a_stream_of_a_turn_that_fails_has_its_end_and_raises() -> None:
    types: list[str] = []

    async def main() -> None:
        stream = Agent(FakeModel()).stream("go")
        with pytest.raises(
            CodexError, match="the script of this FakeModel is at its end"
        ):
            await followed(stream, types)
        assert stream.result.error is not None

    asyncio.run(main())
    assert types[-2:] == ["error", "turn.failed"]


def test_leaving_a_stream_interrupts_its_turn() -> None:
    async def main() -> None:
        model = FakeModel(call("exec_command", cmd="sleep 60"), "next")
        agent = Agent(model, sandbox="danger-full-access")
        async for event in agent.stream("go"):
            if isinstance(event, ItemStarted) and isinstance(
                event.item, CommandExecution
            ):
                break
        # The next turn waits for the end of that one.
        assert (await agent.run("go on")).text == "next"

    asyncio.run(main())


def test_a_stream_that_was_left_has_a_result_behind_its_block() -> None:
    pause = Pause()

    async def main() -> None:
        agent = Agent(
            FakeModel([ev_created(), *ev_message("Hel"), pause, ev_completed()])
        )
        async with agent.stream("go") as stream:
            async for event in stream:
                if isinstance(event, MessageDelta):
                    break
        assert isinstance(stream.result.error, TurnAborted)

    asyncio.run(main())
    pause.until.set()


def test_a_turn_is_steered_and_interrupted() -> None:
    pause = Pause()
    model = FakeModel(
        [ev_created(), *ev_message("Looking."), pause, ev_completed()],
        "As you wish.",
        call("exec_command", cmd="sleep 60"),
    )

    async def main() -> None:
        async with Agent(model, sandbox="danger-full-access") as agent:
            assert not agent.steer("nobody hears it")
            running = asyncio.create_task(agent.run("go"))
            await asyncio.to_thread(pause.reached.wait, 30)
            with pytest.raises(UsageError, match="the prompt is empty"):
                agent.steer(" ")
            assert agent.steer("and quickly")
            pause.until.set()
            assert (await running).text == "As you wish."
            assert prompts(model)[-1] == "and quickly"
            async for event in (stream := agent.stream("sleep")):
                if isinstance(event, ItemStarted):
                    agent.interrupt()
                    break
            await stream.aclose()
            assert isinstance(stream.result.error, TurnAborted)

    asyncio.run(main())


def test_a_turn_that_is_interrupted_before_it_begins_is_aborted_too() -> None:
    async def main() -> None:
        async with Agent(FakeModel("fine")) as agent:
            running = asyncio.create_task(agent.run("go"))
            await asyncio.sleep(0)
            agent.interrupt()
            with pytest.raises(TurnAborted):
                await running
            assert (await agent.run("go on")).text == "fine"

    asyncio.run(main())


def opens_slowly(opening: asyncio.Event) -> Feature:
    @asynccontextmanager
    async def around_session() -> AsyncGenerator[None]:
        opening.set()
        await asyncio.get_running_loop().create_future()
        yield

    return lambda _: Extension(around_session=around_session)


def test_a_conversation_that_is_still_opening_can_be_closed() -> None:
    async def main() -> None:
        opening = asyncio.Event()
        agent = Agent(FakeModel(), extensions=[opens_slowly(opening)])
        running = asyncio.create_task(agent.run("go"))
        await opening.wait()
        async with asyncio.timeout(30):
            await agent.close()
            with pytest.raises(TurnAborted):
                await running

    asyncio.run(main())


def test_a_loop_may_end_while_a_conversation_opens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        opening = asyncio.Event()
        running = asyncio.create_task(
            Agent(FakeModel(), extensions=[opens_slowly(opening)]).run("go")
        )
        await opening.wait()
        assert not running.done()

    asyncio.run(main())
    gc.collect()
    assert caplog.messages == []


def test_a_second_turn_does_not_run_beside_the_first() -> None:
    pause = Pause()
    model = FakeModel([ev_created(), pause, *ev_message("done"), ev_completed()])

    async def main() -> None:
        agent = Agent(model)
        running = asyncio.create_task(agent.run("go"))
        await asyncio.to_thread(pause.reached.wait, 30)
        with pytest.raises(RuntimeError, match="a turn of this agent runs"):
            await agent.run("too")
        with pytest.raises(RuntimeError, match="a turn of this agent runs"):
            agent.fork()
        pause.until.set()
        await running

    asyncio.run(main())


def test_a_fork_goes_on_by_itself() -> None:
    model = FakeModel("one", "two", "three", check_prefix=False)
    agent = Agent(model)
    agent.run_sync("first")
    fork = agent.fork()
    agent.run_sync("second")
    assert fork.run_sync("other").text == "three"
    assert prompts(model)[-2:] == ["first", "other"]
    assert fork.thread_id != agent.thread_id


def test_a_conversation_is_resumed_by_its_id(tmp_path: Path) -> None:
    home = tmp_path / "own"
    first = Agent(FakeModel("one"), home=home)
    first.run_sync("first")
    first.close_sync()
    model = FakeModel("two")
    assert (
        Agent(model, home=home, resume=first.thread_id).run_sync("second").text == "two"
    )
    assert prompts(model)[-2:] == ["first", "second"]


def test_nothing_is_kept_of_an_ephemeral_conversation(tmp_path: Path) -> None:
    agent = Agent(FakeModel("one"), home=tmp_path / "own", ephemeral=True)
    agent.run_sync("first")
    agent.close_sync()
    assert list((tmp_path / "own").glob("**/*.jsonl")) == []


def test_images_go_along_and_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    model = FakeModel("A dot.")
    Agent(model).run_sync("What is it?", images=["a.png"])
    parts = model.requests[0].input[-1]["content"]
    assert any(part["type"] == "input_image" for part in parts)
    with pytest.raises(UsageError, match=r"there is no image '.*b\.png'"):
        Agent(FakeModel()).run_sync("And this?", images=["b.png"])


def test_a_file_that_is_no_image_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("three lines", encoding="utf-8")
    (tmp_path / "empty.png").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    reasons = {
        "notes.txt": "it is not a PNG, JPEG, GIF or WebP image",
        "empty.png": "it is not a PNG, JPEG, GIF or WebP image",
        "folder": "it is not a regular file",
        "pipe": "it is not a regular file",
    }
    model = FakeModel("fine")
    agent = Agent(model)
    for name, reason in reasons.items():
        for image in (name, tmp_path / name):
            with pytest.raises(UsageError) as caught:
                agent.run_sync("What is it?", images=["a.png", image])
            assert str(caught.value) == (
                f"the image {str(tmp_path / name)!r} cannot be sent: {reason}"
            )
    assert model.requests == []
    assert agent.run_sync("go", images=["a.png"]).text == "fine"


@pytest.mark.parametrize("images", [42, None, b"a.png", [42], [None], [b"a.png"]])
def test_images_that_are_no_paths_are_a_type_error(images: Any) -> None:
    model = FakeModel()
    with pytest.raises(TypeError, match=r"`images` (is a sequence of files|has)"):
        Agent(model).run_sync("look", images=images)
    assert model.requests == []


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"`home`: .*/file: File exists"):
        Agent(FakeModel("hi"), home=tmp_path / "file").run_sync("x")


@pytest.mark.parametrize("home", ["a\0b", "\ud800"])
def test_a_home_that_no_folder_can_be_is_told(home: str) -> None:
    with pytest.raises(ConfigError, match=r"`home`: '.*' cannot be a folder"):
        Agent(FakeModel("hi"), home=home).run_sync("x")


def test_mistakes_are_told_when_the_agent_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`cwd`: there is no folder 'nowhere'"):
        Agent(cwd="nowhere")
    with pytest.raises(
        ConfigError, match="config: `modle` is unknown; did you mean `model`"
    ):
        Agent(config={"modle": "x"})
    with pytest.raises(ConfigError, match="config: `model` "):
        Agent(config={"model": 1})
    with pytest.raises(ConfigError, match="config: `sandbox_mode` "):
        Agent(sandbox="none")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="the prompt is a NoneType"):
        Agent(FakeModel()).run_sync(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="the prompt is empty"):
        Agent(FakeModel()).run_sync("")


def test_an_agent_that_could_not_open_its_conversation_may_try_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "own").mkdir()
    config = tmp_path / "own" / "config.toml"
    config.write_text("model = [", encoding="utf-8")
    agent = Agent(FakeModel("fine"), home=tmp_path / "own")
    with pytest.raises(ConfigError):
        agent.run_sync("go")
    config.write_text("", encoding="utf-8")
    assert agent.run_sync("go").text == "fine"


def test_instructions_and_settings_reach_the_model() -> None:
    model = FakeModel("fine")
    Agent(
        model, instructions="Be terse.", config={"model_reasoning_effort": "high"}
    ).run_sync("go")
    body = model.requests[0].body
    assert "Be terse." in json.dumps(body)
    assert body["reasoning"]["effort"] == "high"


def test_a_fake_model_sees_nothing_of_the_user(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".codex"
    home.mkdir(parents=True)
    (home / "config.toml").write_text('model = "of-the-user"\n', encoding="utf-8")
    (home / "AGENTS.md").write_text("A rule of the user.\n", encoding="utf-8")
    model = FakeModel("fine")
    Agent(model).run_sync("go")
    assert "of-the-user" not in json.dumps(model.requests[0].body)
    assert "A rule of the user." not in json.dumps(model.requests[0].body)
    assert sorted(path.name for path in home.iterdir()) == ["AGENTS.md", "config.toml"]


def test_twenty_agents_share_a_loop_and_leave_the_process_as_it_was(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    numbers = [
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGCHLD,
        signal.SIGHUP,
        signal.SIGPIPE,
    ]
    before = (
        [signal.getsignal(number) for number in numbers],
        dict(os.environ),
        Path.cwd(),
    )

    async def one(number: int) -> str:
        async with Agent(
            FakeModel(call("exec_command", cmd=f"echo {number}"), f"answer {number}")
        ) as agent:
            result = await agent.run("go")
            command = next(
                item for item in result.items if isinstance(item, CommandExecution)
            )
            assert command.aggregated_output.splitlines()[-1] == str(number)
            return result.text

    async def main() -> list[str]:
        # asyncio.run itself handles SIGINT meanwhile.
        inside = signal.getsignal(signal.SIGINT)
        texts = await asyncio.gather(*map(one, range(20)))
        assert signal.getsignal(signal.SIGINT) is inside
        return texts

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(main()) == [f"answer {number}" for number in range(20)]
    after = (
        [signal.getsignal(number) for number in numbers],
        dict(os.environ),
        Path.cwd(),
    )
    assert before == after
    assert capsys.readouterr().out == ""
    assert caplog.messages == []


def ending(ended: Callable[[], object]) -> Feature:
    def feature(thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            try:
                yield
            finally:
                ended()

        return Extension(around_session=around_session)

    return feature


def test_an_agent_that_nobody_closes_ends_with_its_loop() -> None:
    ended = threading.Event()
    agent = Agent(FakeModel("Hello."), extensions=[ending(ended.set)])
    asyncio.run(agent.run("go"))
    assert ended.is_set()


def test_an_agent_that_nobody_has_any_more_ends() -> None:
    async def main() -> None:
        ended = asyncio.Event()
        await Agent(FakeModel("Hello."), extensions=[ending(ended.set)]).run("go")
        gc.collect()
        async with asyncio.timeout(30):
            await ended.wait()

    asyncio.run(main())
    ended = threading.Event()
    Agent(FakeModel("Hello."), extensions=[ending(ended.set)]).run_sync("go")
    gc.collect()
    assert ended.wait(30)


SCRIPT = """
import sys, warnings
from contextlib import asynccontextmanager
from codex_py import Agent, Extension
from codex_py.testing import FakeModel

def feature(thread):
    @asynccontextmanager
    async def around_session():
        try:
            yield
        finally:
            print("ended", flush=True)
    return Extension(around_session=around_session)

agent = Agent(FakeModel("Hello."), extensions=[feature])
print(agent.run_sync("go").text)
"""


def test_the_end_of_the_program_ends_its_conversations_without_a_word(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("Hello.\nended\n", "", 0)


INTERRUPTED = """
import signal, threading
from codex_py import Agent, ItemStarted, Extension
from codex_py.testing import FakeModel, call

def feature(thread):
    def sink(event):
        if isinstance(event, ItemStarted):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    return Extension(sink=sink)

model = FakeModel(call("exec_command", cmd="sleep 60"), "fine")
agent = Agent(model, extensions=[feature], sandbox="danger-full-access")
try:
    agent.run_sync("go")
except KeyboardInterrupt:
    print("interrupted")
print(agent.run_sync("go on").text)
print("aborted" in str(model.requests[-1].output("call_1")))
"""


def test_ctrl_c_interrupts_the_turn_of_the_sync_form() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", INTERRUPTED],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\nfine\nTrue\n", "")


def test_a_task_that_is_cancelled_interrupts_the_turn() -> None:
    pause = Pause()
    model = FakeModel([ev_created(), pause, ev_completed()], "fine")

    async def main() -> None:
        async with Agent(model) as agent:
            running = asyncio.create_task(agent.run("go"))
            await asyncio.to_thread(pause.reached.wait, 30)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            pause.until.set()
            assert (await agent.run("go on")).text == "fine"

    asyncio.run(main())


def test_no_home_is_needed(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    agent = Agent(
        FakeModel("fine"),
        home=tmp_path / "a" / "b",
        environment=environment,
        ephemeral=True,
    )
    assert agent.run_sync("go").text == "fine"


def test_output_of_the_agent_is_not_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    Agent(FakeModel("Hello.")).run_sync("go")
    assert written.getvalue() == ""


@pytest.mark.parametrize("images", ["picture.png", Path("picture.png")])
def test_a_single_image_in_place_of_a_list_is_a_type_error(images: Any) -> None:
    with (
        Agent(FakeModel("x")) as agent,
        pytest.raises(TypeError, match=r"images=\['picture.png'\]"),
    ):
        agent.run_sync("look", images=images)


def test_a_single_function_in_place_of_a_list_of_tools_is_a_type_error() -> None:
    tools: Any = len
    with pytest.raises(TypeError, match=r"tools=\[function\]"):
        Agent(FakeModel("x"), tools=tools)


def test_the_repr_names_model_folder_and_conversation_and_no_secret(
    tmp_path: Path,
) -> None:
    provider = {"name": "m", "base_url": "http://u:s3cret@127.0.0.1/v1", "env_key": "K"}
    named = Agent(
        "gpt-5.5",
        config={"model_provider": "m", "model_providers": {"m": provider}},
        environment={"K": "s3cret"},
        instructions="s3cret",
    )
    assert repr(named) == f"Agent('gpt-5.5', cwd={str(tmp_path)!r})"
    assert repr(Agent()) == f"Agent(cwd={str(tmp_path)!r})"
    with Agent(FakeModel("Hello.")) as agent:
        agent.run_sync("Hello?")
        assert repr(agent) == (
            f"Agent('FakeModel', cwd={str(tmp_path)!r}, thread_id={agent.thread_id!r})"
        )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"model": 5}, "`model` is a name, such as 'gpt-5.5', or a transport of httpx"),
        ({"model": ["gpt"]}, "not \\['gpt'\\]"),
        ({"model": FakeModel}, "`model` is a name"),
        ({"config": "x"}, "`config` is a mapping of settings, not 'x'"),
        ({"config": [("model", "x")]}, "`config` is a mapping of settings"),
        ({"config": 5}, "`config` is a mapping of settings, not 5"),
    ],
)
def test_an_argument_of_another_type_is_refused_when_the_agent_is_made(
    arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        Agent(**arguments)


@pytest.mark.parametrize("output_type", ["int", {"type": "x"}, 5])
def test_an_output_type_that_is_no_model_is_refused_before_the_turn(
    output_type: Any,
) -> None:
    model = FakeModel("one")
    agent = Agent(model)
    with pytest.raises(TypeError, match="`output_type` must be a type"):
        agent.run_sync("go", output_type=output_type)
    assert model.requests == []
    assert agent.run_sync("go").text == "one"


def test_a_stream_that_nobody_reads_has_no_result_and_says_why() -> None:
    async def main() -> None:
        async with Agent(FakeModel("one")) as agent:
            async with agent.stream("go") as stream:
                pass
            with pytest.raises(
                RuntimeError, match="it begins with `async for event in stream`"
            ):
                _ = stream.result

    asyncio.run(main())
