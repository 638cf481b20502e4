"""Also tests `core/session_turn.py`."""

import asyncio
from dataclasses import replace

import pytest

from codex_py.core.session import Session
from codex_py.errors import CodexError, ModelError, StreamError, TurnAborted
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.event_data import event_data
from codex_py.protocol.event_items import UserMessage
from codex_py.protocol.events import (
    Error,
    Event,
    ItemCompleted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    UsageReported,
)
from codex_py.protocol.prompts import PastPrompt, UserPrompt
from codex_py.protocol.stream import Usage
from codex_py.protocol.tools import ToolCall
from tests.core.sessions import FakeRecorder, make_session, user
from tests.support.model import ScriptedModel, calls, completed, says


def test_a_signal_while_a_turn_is_tidied_up_still_gives_it_one_end() -> None:
    async def run() -> list[Event]:
        events: list[Event] = []
        tidying = asyncio.Event()

        async def end_turn(_: Session) -> None:
            # A command in the background is given a moment; the second time it is gone.
            if not tidying.is_set():
                tidying.set()
                await asyncio.Event().wait()

        session = make_session(
            ScriptedModel([says("hi"), completed()]),
            end_turn=end_turn,
            sink=events.append,
        )
        turn = asyncio.create_task(session.run_turn("go"))
        await asyncio.wait_for(tidying.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return events

    events = asyncio.run(run())
    ends = [event for event in events if isinstance(event, TurnCompleted | TurnFailed)]
    assert [type(event) for event in ends] == [TurnFailed]
    assert (type(events[0]), events[-1]) == (TurnStarted, ends[0])


def test_a_steered_prompt_is_sent_after_the_outputs_of_the_calls() -> None:
    async def tool(_: ToolCall) -> str:
        assert session.steer("hurry")
        return "ok"

    model = ScriptedModel([calls("c1"), completed()], [says("done"), completed()])
    events: list[Event] = []
    recorder = FakeRecorder()
    session = make_session(model, tool=tool, sink=events.append, recorder=recorder)
    result = asyncio.run(session.run_turn("go"))
    assert (result.error, result.last_message) == (None, "done")
    assert model.inputs[1][-2]["type"] == "function_call_output"
    assert model.inputs[1][-1] == user("hurry")
    steered = ItemCompleted(UserMessage(id="live_0", text="hurry"))
    assert next(e for e in events if isinstance(e, ItemCompleted)) == steered
    assert event_data(steered) is None
    said = [
        line for line in recorder.of_type("event_msg") if line["type"] == "user_message"
    ]
    assert [line["message"] for line in said] == ["go", "hurry"]


def test_a_turn_that_would_be_over_goes_on_for_what_was_said_meanwhile() -> None:
    async def steer() -> None:
        assert session.steer("one more thing")
        assert session.steer("and another")

    model = ScriptedModel(
        [says("done"), steer, completed()], [says("that too"), completed()]
    )
    session = make_session(model)
    assert asyncio.run(session.run_turn("go")).last_message == "that too"
    assert model.inputs[1][-2:] == [user("one more thing"), user("and another")]


def test_a_steered_prompt_is_refused_when_no_request_follows() -> None:
    answers: list[bool] = []

    async def end_turn(session: Session) -> None:
        answers.append(session.steer("too late"))

    session = make_session(
        ScriptedModel([says("done"), completed()]), end_turn=end_turn
    )
    assert not session.steer("too early")
    asyncio.run(session.run_turn("go"))
    assert not session.steer("too late")
    assert (answers, session.take_unsent()) == ([False], [])


def test_a_steered_prompt_of_a_failed_turn_is_given_back() -> None:
    async def steer() -> None:
        assert session.steer("hello?")

    session = make_session(ScriptedModel([steer, ModelError("no")]))
    assert str(asyncio.run(session.run_turn("go")).error) == "no"
    assert session.take_unsent() == [UserPrompt("hello?")]
    assert session.take_unsent() == []


def test_a_turn_that_failed_is_tried_again_without_running_its_calls_twice() -> None:
    ran: list[str] = []

    async def tool(call: ToolCall) -> str:
        ran.append(call.call_id)
        return "ok"

    model = ScriptedModel(
        [calls("c1"), StreamError("cut", started=True)],
        [calls("c1"), completed()],
        [says("done"), completed()],
    )
    session = make_session(model, tool=tool)
    failed = asyncio.run(session.run_turn("go"))
    assert (str(failed.error), session.is_unfinished) == ("cut", True)
    result = asyncio.run(session.retry())
    assert (result.error, result.last_message, session.is_unfinished) == (
        None,
        "done",
        False,
    )
    assert ran == ["c1"]
    assert model.inputs[2] == model.inputs[1]
    with pytest.raises(CodexError, match="nothing to try again"):
        asyncio.run(session.retry())


def test_two_turns_at_once_are_a_mistake_of_the_caller() -> None:
    async def second() -> None:
        with pytest.raises(RuntimeError, match="a turn of this session is running"):
            await session.run_turn("too")
        with pytest.raises(RuntimeError):
            await session.compact()
        with pytest.raises(RuntimeError):
            session.rollback(1)

    events: list[Event] = []
    session = make_session(
        ScriptedModel([second, says("hi"), completed()]), sink=events.append
    )
    assert asyncio.run(session.run_turn("go")).error is None
    assert len([event for event in events if isinstance(event, TurnStarted)]) == 1
    assert not session.is_running


def test_an_interrupted_turn_ends_at_once_and_another_can_follow() -> None:
    async def run() -> ScriptedModel:
        working = asyncio.Event()

        async def tool(_: ToolCall) -> str:
            working.set()
            return await asyncio.get_running_loop().create_future()

        model = ScriptedModel(
            [says("I look"), calls("c1", index=1)], [says("hi"), completed()]
        )
        session = make_session(model, tool=tool)
        turn = asyncio.create_task(session.run_turn("go"))
        await asyncio.wait_for(working.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 2)
        assert not session.is_running
        await session.run_turn("again")
        return model

    *_, output, note, prompt = asyncio.run(run()).inputs[1]
    assert output["output"].endswith("aborted by user")
    assert note["content"][0]["text"].startswith("<turn_aborted>")
    assert prompt == user("again")


def test_code_that_runs_within_a_turn_can_end_it() -> None:
    async def run() -> ScriptedModel:
        session: Session

        async def tool(call: ToolCall) -> str:
            if call.call_id == "c1":
                await asyncio.sleep(0)
                session.abort()
                session.abort()
                return "no"
            return await asyncio.get_running_loop().create_future()

        events: list[Event] = []
        first = [calls("c1"), calls("c2", index=1), completed()]
        model = ScriptedModel(first, [says("hi"), completed()])
        session = make_session(model, tool=tool, sink=events.append)
        result = await asyncio.wait_for(session.run_turn("go"), 5)
        assert isinstance(result.error, TurnAborted)
        assert [type(event) for event in events[-2:]] == [Error, TurnFailed]
        session.abort()
        assert (await session.run_turn("again")).error is None
        return model

    *_, denied, other, note, prompt = asyncio.run(run()).inputs[1]
    assert denied["output"] == "no"
    assert other["output"].endswith("aborted by user")
    assert note["content"][0]["text"].startswith("<turn_aborted>")
    assert prompt == user("again")


def test_a_waiter_for_an_aborted_turn_can_still_be_cancelled() -> None:
    async def run() -> None:
        session: Session

        async def tool(_: ToolCall) -> str:
            session.abort()
            turn.cancel()
            return "no"

        session = make_session(ScriptedModel([calls("c1"), completed()]), tool=tool)
        turn = asyncio.create_task(session.run_turn("go"))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(turn, 5)

    asyncio.run(run())


def test_the_model_is_told_of_other_settings_with_the_next_prompt() -> None:
    model = ScriptedModel(*[[says("ok"), completed()]] * 3)
    recorder = FakeRecorder()
    session = make_session(model, recorder=recorder)
    asyncio.run(session.run_turn("one"))
    never = session.settings.choices
    # What is taken back before anyone says a word was never there.
    session.change(replace(never, approval_policy=ApprovalPolicy.UNTRUSTED))
    session.change(
        replace(
            never,
            model="n",
            approval_policy=ApprovalPolicy.ON_REQUEST,
            reasoning_effort="low",
        )
    )
    asyncio.run(session.run_turn("two"))
    asyncio.run(session.run_turn("three"))
    assert [prompt.model for prompt in model.prompts] == ["m", "n", "n"]
    switch, permissions, prompt = model.inputs[1][len(model.inputs[0]) + 1 :]
    assert (switch["role"], permissions["role"]) == ("developer", "developer")
    assert switch["content"][0]["text"].startswith("<model_switch>\n")
    assert (
        permissions["content"][0]["text"] == "<permissions instructions>\non-request\n"
    )
    assert prompt == user("two")
    assert model.inputs[2][len(model.inputs[1]) + 1 :] == [user("three")]
    contexts = recorder.of_type("turn_context")
    assert [(c["model"], c["effort"], c["approval_policy"]) for c in contexts] == [
        ("m", None, "never"),
        ("n", "low", "on-request"),
        ("n", "low", "on-request"),
    ]


def test_other_settings_hold_from_the_next_request_of_the_running_turn() -> None:
    async def tool(_: ToolCall) -> str:
        choices = replace(
            session.settings.choices, approval_policy=ApprovalPolicy.ON_REQUEST
        )
        session.change(replace(choices, model="n"))
        # What is taken back before the next request was never there.
        session.change(choices)
        return "ok"

    model = ScriptedModel([calls("c1"), completed()], *[[says("ok"), completed()]] * 2)
    recorder = FakeRecorder()
    session = make_session(model, tool=tool, recorder=recorder)
    asyncio.run(session.run_turn("one"))
    asyncio.run(session.run_turn("two"))
    assert [prompt.model for prompt in model.prompts] == ["m"] * 3
    told = model.inputs[1][len(model.inputs[0]) + 2 :]
    assert [each["content"][0]["text"] for each in told] == [
        "<permissions instructions>\non-request\n"
    ]
    assert model.inputs[2][len(model.inputs[1]) + 1 :] == [user("two")]
    policies = [each["approval_policy"] for each in recorder.of_type("turn_context")]
    assert policies == ["never", "on-request", "on-request"]


def test_a_resumed_thread_is_told_of_another_model_once() -> None:
    model = ScriptedModel(*[[says("ok"), completed()]] * 2)
    session = make_session(model, told_model="old")
    asyncio.run(session.run_turn("one"))
    asyncio.run(session.run_turn("two"))
    switches = [
        i
        for i in model.inputs[1]
        if i["content"][0]["text"].startswith("<model_switch>")
    ]
    assert len(switches) == 1


def test_going_back_to_a_prompt_forgets_it_and_what_came_of_it() -> None:
    model = ScriptedModel(
        [says("1"), completed(40_000)],
        [calls("c1"), completed()],
        [says("2"), completed(60_000, 0)],
        [says("3"), completed()],
        check_prefix=False,
    )
    events: list[Event] = []
    recorder = FakeRecorder()
    session = make_session(model, recorder=recorder, sink=events.append)
    for text in ("one", "two"):
        asyncio.run(session.run_turn(text))
    assert session.past_prompts() == [
        PastPrompt(UserPrompt("one"), 2),
        PastPrompt(UserPrompt("two"), 1),
    ]
    for turns in (0, 3):
        with pytest.raises(ValueError, match="2 turns can be taken back"):
            session.rollback(turns)
    assert session.rollback(1) == UserPrompt("two")
    assert recorder.lines[-1] == (
        "event_msg",
        {"type": "thread_rolled_back", "num_turns": 1},
    )
    assert isinstance(events[-1], UsageReported)
    assert 0 < events[-1].last.total_tokens < 60_000
    asyncio.run(session.run_turn("three"))
    before_two = len(model.inputs[1]) - 1
    assert model.inputs[3] == [*model.inputs[1][:before_two], user("three")]


def test_a_name_is_one_line_of_text() -> None:
    recorder = FakeRecorder()
    session = make_session(ScriptedModel(), recorder=recorder)
    session.rename("  my\n thread ")
    assert (session.name, recorder.lines) == ("my thread", [("name", "my thread")])
    with pytest.raises(CodexError, match="blank"):
        session.rename(" \n")


def test_the_room_that_is_left_is_counted_as_codex_counts_it() -> None:
    def left(used: int, window: int) -> int:
        return UsageReported(
            Usage(input_tokens=used), Usage(), window
        ).context_left_percent

    # What every thread begins with, some 12,000 tokens, does not count.
    assert [left(n, 112_000) for n in (0, 12_000, 37_000, 112_000, 200_000)] == [
        100,
        100,
        75,
        0,
        0,
    ]
    assert [left(n, 8_000) for n in (0, 4_000, 9_000)] == [100, 50, 0]
