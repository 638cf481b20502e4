"""Also tests `core/response.py`, `core/retry.py`, `core/running_turn.py`,
`core/session_state.py`, `core/session_turn.py`, `core/thread_log.py` and
`protocol/response_order.py`.
"""

import asyncio
import gc
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from codex_py.core.compact import Compactor
from codex_py.core.retry import RetryBudget
from codex_py.core.running_turn import RunningTurn
from codex_py.core.session_state import SessionState
from codex_py.core.thread_log import ThreadLog, ThreadState
from codex_py.core.turn import Turn
from codex_py.errors import CodexError, ModelError, StreamError, TurnSuspended
from codex_py.protocol.combined import combined
from codex_py.protocol.event_items import AgentMessage, ErrorItem
from codex_py.protocol.events import Event, EventSink, ItemCompleted, MessageDelta
from codex_py.protocol.extension import TurnStart
from codex_py.protocol.items import FunctionCallOutput, Reasoning, ResponseItem
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.prompts import Note
from codex_py.protocol.response_order import HistoryPlace
from codex_py.protocol.stream import (
    OutputItemAdded,
    OutputTextDelta,
    PlanUse,
    Prompt,
    ResponseEvent,
    Retry,
    Usage,
)
from codex_py.protocol.tools import ToolCall
from tests.core.sessions import SETTINGS, FakeRecorder, FakeTools, Tool, echo
from tests.support.model import (
    ScriptedModel,
    Step,
    calls,
    completed,
    done,
    reconnecting,
    says,
)


class NotedLog(ThreadLog):
    """Notes what is recorded, beside what is shown."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        items = [message("user", [input_text("go")])]
        thread = ThreadState(id="thread", instructions="", items=items, model="m")
        super().__init__(thread, FakeRecorder(), lambda _: [])

    def record(self, item: ResponseItem | Note, place: HistoryPlace) -> None:
        call_id = getattr(item, "call_id", "")
        self._notes.append(f"record {call_id}{getattr(item, 'output', '')}")
        super().record(item, place)

    def leave_open(self, place: HistoryPlace) -> None:
        self._notes.append(f"leave open {place.position}")
        super().leave_open(place)


class FakeSession(SessionState):
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.said: list[str] = []
        """What was recorded and what was shown, in this order."""
        self.extension = combined([])
        super().__init__(NotedLog(self.said), SETTINGS, FakeTools(echo, 1000))

    def emit(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ItemCompleted):
            self.said.append(f"show {event.item.id}")

    def count(
        self, usage: Usage, last: Usage | None = None, plan: PlanUse | None = None
    ) -> None:
        assert plan is None
        self.log.count(usage, last)


class FakeBudget:
    def __init__(self, retries: int) -> None:
        self._left = retries

    def next(self, error: ModelError) -> Retry | None:
        self._left -= 1
        return Retry(1, 2, 0.0) if error.retryable and self._left >= 0 else None

    def renew(self) -> None:
        pass


async def play(
    *responses: Sequence[Step],
    tool: Tool = echo,
    retries: int = 0,
    max_responses: int = 10,
) -> tuple[FakeSession, ScriptedModel]:
    session = FakeSession()
    model = ScriptedModel(*responses)
    turn = make_turn(session, model, tool, FakeBudget(retries), max_responses)
    await turn.run()
    return session, model


class ShownTools(FakeTools):
    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> list[FunctionCallOutput]:
        try:
            return await super().dispatch(call, emit)
        finally:
            emit(ItemCompleted(ErrorItem(id=call.call_id, message="ended")))


class PlayedTurn:
    def __init__(self, session: FakeSession, retries: RetryBudget) -> None:
        self._session = session
        self._retries = retries

    async def run(self) -> None:
        session = self._session
        # In the task of the turn, which may be cancelled.
        running = RunningTurn(TurnStart("turn", None))
        session.running = running
        await Turn(session, running, Compactor(session), self._retries).run()


def make_turn(
    session: FakeSession,
    model: ScriptedModel,
    tool: Tool,
    retries: RetryBudget | None = None,
    max_responses: int = 10,
    *,
    shows_calls: bool = False,
) -> PlayedTurn:
    tools = ShownTools if shows_calls else FakeTools
    session.tools = tools(tool, 1000)
    session.model = model.stream
    session.settings = replace(SETTINGS, max_responses=max_responses)
    return PlayedTurn(session, retries or FakeBudget(0))


def outputs(sent: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [
        (i["call_id"], i["output"]) for i in sent if i["type"] == "function_call_output"
    ]


def test_a_turn_ends_with_the_first_response_that_calls_nothing() -> None:
    session, model = asyncio.run(
        play([calls("c1"), completed()], [says("all done"), completed()])
    )
    assert [item.get("type") for item in model.inputs[1]] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert outputs(model.inputs[1]) == [("c1", "output of c1")]
    assert session.log.usage == Usage(input_tokens=20, output_tokens=10)
    assert session.events == [ItemCompleted(AgentMessage(id="item_0", text="all done"))]


def test_an_output_is_recorded_before_its_call_is_shown_as_completed() -> None:
    async def run() -> list[str]:
        first_was_shown = asyncio.Event()

        class Watched(FakeSession):
            def emit(self, event: Event) -> None:
                super().emit(event)
                first_was_shown.set()

        async def tool(call: ToolCall) -> str:
            if call.call_id == "slow":
                await first_was_shown.wait()
            if call.call_id == "fails":
                raise CodexError("the end")
            if call.call_id == "long":
                await asyncio.Event().wait()
            return "!"

        session = Watched()
        model = ScriptedModel(
            [calls("slow"), calls("quick", index=1), completed()],
            [calls("long"), calls("fails", index=1), completed()],
        )
        with pytest.raises(CodexError, match="the end"):
            await make_turn(session, model, tool, shows_calls=True).run()
        return [re.sub("Wall.*\n", "", line, flags=re.DOTALL) for line in session.said]

    aborted = "[ERROR:Canceled] aborted: the end"
    assert asyncio.run(run()) == [
        *(
            "record slow",
            "record quick",
            "record quick!",
            "show quick",
            "record slow!",
            "show slow",
        ),
        *("record long", "record fails"),
        *(f"record long{aborted}", "show long", f"record fails{aborted}", "show fails"),
    ]


def test_outputs_follow_all_items_in_the_order_of_the_calls() -> None:
    async def run() -> ScriptedModel:
        slow_may_end = asyncio.Event()

        async def tool(call: ToolCall) -> str:
            if call.call_id == "slow":
                await slow_may_end.wait()
            else:
                slow_may_end.set()
            return call.call_id

        _, model = await play(
            [calls("slow"), calls("quick", index=1), says("working", 2), completed()],
            [completed()],
            tool=tool,
        )
        return model

    sent = asyncio.run(run()).inputs[1]
    assert [item["type"] for item in sent[1:]] == [
        "function_call",
        "function_call",
        "message",
        "function_call_output",
        "function_call_output",
    ]
    assert outputs(sent) == [("slow", "slow"), ("quick", "quick")]


def test_a_call_runs_before_the_stream_is_at_its_end() -> None:
    async def run() -> None:
        started = asyncio.Event()

        async def tool(_call: ToolCall) -> str:
            started.set()
            return "ran"

        async def call_has_started() -> None:
            await asyncio.wait_for(started.wait(), 5)

        await play(
            [calls("c1"), call_has_started, completed()], [completed()], tool=tool
        )

    asyncio.run(run())


def test_a_broken_stream_is_retried_with_the_call_and_its_output() -> None:
    ran: list[str] = []

    async def tool(call: ToolCall) -> str:
        ran.append(call.call_id)
        return "once"

    broken = StreamError("cut", started=True)
    session, model = asyncio.run(
        play(
            [says("before"), calls("c1", index=1), broken],
            # A server that plays the same response again must not make the call run again.
            [calls("c1"), completed()],
            [completed()],
            tool=tool,
            retries=1,
        )
    )
    assert ran == ["c1"]
    assert outputs(model.inputs[1]) == [("c1", "once")]
    assert model.inputs[2] == model.inputs[1]
    assert reconnecting("cut", "stream") in session.events


def test_each_retry_is_announced_with_its_cause_before_the_wait() -> None:
    refused = StreamError("refused", code="connection", status=503)
    session, _ = asyncio.run(play([refused], [says("hello"), completed()], retries=1))
    assert session.events == [
        reconnecting("refused", "connection", 503),
        ItemCompleted(AgentMessage(id="item_0", text="hello")),
    ]


def test_a_wait_before_a_retry_can_be_interrupted() -> None:
    async def run() -> list[Event]:
        class OneHour(FakeBudget):
            def next(self, error: ModelError) -> Retry:
                return Retry(1, 2, 3600.0)

        announced = asyncio.Event()

        class Watched(FakeSession):
            def emit(self, event: Event) -> None:
                super().emit(event)
                announced.set()

        session = Watched()
        model = ScriptedModel(
            [StreamError("slow down", code="rate_limited", status=429)]
        )
        made = make_turn(session, model, echo, OneHour(1))
        turn = asyncio.create_task(made.run())
        await asyncio.wait_for(announced.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return session.events

    assert asyncio.run(run()) == [
        reconnecting("slow down", "rate_limited", 429, wait_s=3600.0)
    ]


def test_a_request_that_succeeds_gives_the_next_one_a_full_allowance() -> None:
    cut = StreamError("cut", started=True)
    rounds = [[[cut], [cut], [calls(f"c{n}"), completed()]] for n in range(40)]
    session = FakeSession()
    model = ScriptedModel(*(part for each in rounds for part in each), [completed()])
    at_once = SimpleNamespace(attempt=1, maximum=2, delay_s=0.0)

    class Counted:
        left = 2

        def next(self, error: ModelError) -> Any:
            self.left -= 1
            return at_once if self.left >= 0 else None

        def renew(self) -> None:
            self.left = 2

    turn = make_turn(session, model, echo, Counted(), max_responses=41)
    asyncio.run(turn.run())
    assert len(outputs(model.inputs[-1])) == 40


def test_the_last_failure_is_raised_when_the_budget_is_spent() -> None:
    with pytest.raises(StreamError, match="second"):
        asyncio.run(play([StreamError("first")], [StreamError("second")], retries=1))


class Received:
    """What a response has brought so far."""


@pytest.mark.parametrize("began", [[], [says("half")], [calls("c1")]])
def test_what_a_broken_stream_brought_is_gone_before_the_next_request(
    began: list[Step],
) -> None:
    """Nothing may depend on the garbage collector, which seldom runs: a response can be large."""
    broken = [[*began, StreamError("cut")] for _ in range(3)]
    session = FakeSession()
    scripted = ScriptedModel(*broken, [completed()])
    turn = make_turn(session, scripted, echo, FakeBudget(3))
    received: WeakSet[Received] = WeakSet()
    kept: list[int] = []

    async def seen(
        events: AsyncIterator[ResponseEvent],
    ) -> AsyncGenerator[ResponseEvent]:
        mine = Received()
        received.add(mine)
        async for event in events:
            yield event

    @asynccontextmanager
    async def stream(prompt: Prompt) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        kept.append(len(received))
        async with scripted.stream(prompt) as events:
            yield seen(events)

    session.model = stream
    gc.disable()
    try:
        asyncio.run(turn.run())
    finally:
        gc.enable()
    assert kept == [0, 0, 0, 0]


def test_reasoning_that_a_broken_stream_left_alone_is_not_sent_back() -> None:
    thought = Reasoning(summary=[])
    _, model = asyncio.run(
        play(
            [done(0, thought), StreamError("cut", started=True)],
            [done(0, thought), says("hi", 1), completed()],
            retries=1,
        )
    )
    assert len(model.inputs[1]) == 1


def test_reasoning_that_an_interruption_left_alone_is_not_kept() -> None:
    async def run() -> FakeSession:
        thinking = asyncio.Event()

        async def forever() -> None:
            thinking.set()
            await asyncio.Event().wait()

        session = FakeSession()
        model = ScriptedModel([says("hi"), done(1, Reasoning(summary=[])), forever])
        turn = asyncio.create_task(make_turn(session, model, echo).run())
        await asyncio.wait_for(thinking.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return session

    session = asyncio.run(run())
    asked, said, interrupted = map(json.loads, session.items)
    assert (asked["role"], said["role"]) == ("user", "assistant")
    assert "<turn_aborted>" in interrupted["content"][0]["text"]


def test_reasoning_of_a_call_that_is_sent_again_is_not_kept_twice() -> None:
    response = [done(0, Reasoning(summary=[])), calls("c1", index=1)]
    _, model = asyncio.run(
        play(
            [*response, StreamError("cut", started=True)],
            [*response, completed()],
            [completed()],
            retries=1,
        )
    )
    assert model.inputs[2] == model.inputs[1]


def test_items_done_out_of_order_enter_history_in_the_order_of_the_response() -> None:
    announce = [OutputItemAdded()] * 3
    _, model = asyncio.run(
        play(
            [
                *announce,
                calls("b", index=1),
                calls("c", index=2),
                says("first", 0),
                completed(),
            ],
            [completed()],
        )
    )
    assert [i.get("call_id", i["type"]) for i in model.inputs[1][1:]] == [
        "message",
        "b",
        "c",
        "b",
        "c",
    ]


def test_a_second_call_of_the_same_id_is_answered_but_not_run() -> None:
    ran: list[str] = []

    async def tool(call: ToolCall) -> str:
        ran.append(call.call_id)
        return "ran"

    _, model = asyncio.run(
        play([calls("c1"), calls("c1", index=1), completed()], [completed()], tool=tool)
    )
    assert ran == ["c1"]
    assert [call_id for call_id, _ in outputs(model.inputs[1])] == ["c1", "c1"]
    assert "duplicate call_id 'c1'" in outputs(model.inputs[1])[1][1]


def test_the_same_id_in_a_later_response_is_a_new_call() -> None:
    ran: list[str] = []

    async def tool(call: ToolCall) -> str:
        ran.append(call.call_id)
        return "ran"

    asyncio.run(
        play(
            [calls("c1"), completed()],
            [calls("c1"), completed()],
            [completed()],
            tool=tool,
        )
    )
    assert ran == ["c1", "c1"]


def test_a_response_may_ask_for_another_request_without_a_call() -> None:
    _, model = asyncio.run(
        play(
            [says("more to come"), completed(end_turn=False)],
            [says("done"), completed()],
        )
    )
    assert len(model.inputs) == 2


def test_a_model_that_never_stops_calling_is_stopped() -> None:
    with pytest.raises(CodexError, match="stopped after 2 responses") as caught:
        asyncio.run(
            play(
                [calls("c1"), completed()],
                [calls("c2"), completed()],
                [calls("c3"), completed()],
                max_responses=2,
            )
        )
    assert caught.value.exit_code == 53


def test_a_cancelled_turn_leaves_every_call_with_an_output() -> None:
    async def run() -> list[tuple[str, str]]:
        hanging = asyncio.Event()

        async def tool(call: ToolCall) -> str:
            if call.call_id == "quick":
                return "done"
            hanging.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def forever() -> None:
            await asyncio.Event().wait()

        session = FakeSession()
        model = ScriptedModel([calls("quick"), calls("slow", index=1), forever])
        turn = asyncio.create_task(make_turn(session, model, tool).run())
        await asyncio.wait_for(hanging.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        model = ScriptedModel([completed()])
        await make_turn(session, model, tool).run()
        return outputs(model.inputs[0])

    (_, quick), (slow_id, slow) = asyncio.run(run())
    assert quick == "done"
    assert slow_id == "slow"
    assert slow.startswith("[ERROR:Canceled] Wall time: ")
    assert slow.endswith("aborted by user")


def test_a_tool_that_crashes_leaves_every_call_with_an_output() -> None:
    async def tool(call: ToolCall) -> str:
        if call.call_id == "bad":
            raise RuntimeError("a mistake of ours")
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> FakeSession:
        session = FakeSession()
        model = ScriptedModel([calls("bad"), calls("slow", index=1), completed()])
        with pytest.raises(RuntimeError, match="a mistake of ours"):
            await asyncio.wait_for(make_turn(session, model, tool).run(), 5)
        return session

    session = asyncio.run(run())
    answered = outputs([json.loads(item) for item in session.items])
    assert [call_id for call_id, _ in answered] == ["bad", "slow"]
    assert all(text.endswith("aborted: internal error") for _, text in answered)


SPENT = CodexError("the budget is spent", code="budget")


class WrappedModel(ScriptedModel):
    """Raises at one moment of its first response, in which a call runs."""

    def __init__(self, error: Exception, moment: str) -> None:
        super().__init__([calls("slow"), completed()])
        self._error = error
        self._moment = moment

    @asynccontextmanager
    async def stream(
        self, prompt: Prompt
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        if self._moment == "before":
            raise self._error
        async with super().stream(prompt) as events:
            yield self._raising(events)
        if self._moment == "after":
            raise self._error

    async def _raising(
        self, events: AsyncIterator[ResponseEvent]
    ) -> AsyncIterator[ResponseEvent]:
        async for event in events:
            yield event
            if self._moment == "during":
                raise self._error


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize(
    ("error", "aborted"),
    [
        (SPENT, "aborted: the budget is spent"),
        (KeyError("x"), "aborted: internal error"),
    ],
)
def test_an_error_of_a_model_wrapper_ends_the_turn_and_its_calls(
    moment: str, error: Exception, aborted: str
) -> None:
    async def tool(_: ToolCall) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> FakeSession:
        session = FakeSession()
        turn = make_turn(session, WrappedModel(error, moment), tool, FakeBudget(3))
        with pytest.raises(type(error)) as caught:
            await asyncio.wait_for(turn.run(), 5)
        assert caught.value is error
        assert (error.__context__, error.__cause__) == (None, None)
        return session

    answered = outputs([json.loads(item) for item in asyncio.run(run()).items])
    assert [call_id for call_id, _ in answered] == (
        [] if moment == "before" else ["slow"]
    )
    assert all(text.endswith(aborted) for _, text in answered)


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize(
    ("error", "aborted"),
    [
        (SPENT, "aborted: the budget is spent"),
        # Not the model's own: it is not tried again.
        (StreamError("a child was cut off"), "aborted: a child was cut off"),
        (KeyError("x"), "aborted: internal error"),
    ],
)
def test_an_error_of_a_call_ends_the_turn_and_the_other_calls(
    moment: str, error: Exception, aborted: str
) -> None:
    async def run() -> FakeSession:
        slow_runs, may_raise = asyncio.Event(), asyncio.Event()

        async def tool(call: ToolCall) -> str:
            if call.call_id == "bad":
                if moment != "before":
                    await may_raise.wait()
                raise error
            slow_runs.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def in_the_middle() -> None:
            await slow_runs.wait()
            if moment == "during":
                may_raise.set()
                await asyncio.Event().wait()

        async def at_the_end() -> None:
            may_raise.set()

        steps: list[Step] = [calls("slow"), calls("bad", index=1)]
        steps += [in_the_middle, completed(), at_the_end]
        session = FakeSession()
        turn = make_turn(session, ScriptedModel(steps), tool, FakeBudget(3))
        with pytest.raises(type(error)) as caught:
            await asyncio.wait_for(turn.run(), 5)
        assert caught.value is error
        return session

    answered = outputs([json.loads(item) for item in asyncio.run(run()).items])
    assert {call_id for call_id, _ in answered} >= {"bad"}
    assert all(text.endswith(aborted) for _, text in answered)


def test_a_cancellation_is_not_lost_if_a_call_answers_it_with_an_error() -> None:
    async def run() -> FakeSession:
        runs = asyncio.Event()

        async def tool(_: ToolCall) -> str:
            runs.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise SPENT
            raise AssertionError

        session = FakeSession()
        model = ScriptedModel([calls("c"), completed()])
        turn = asyncio.create_task(make_turn(session, model, tool).run())
        await asyncio.wait_for(runs.wait(), 5)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return session

    ((_, text),) = outputs([json.loads(item) for item in asyncio.run(run()).items])
    assert text.endswith("aborted by user")


def test_a_final_failure_stops_the_calls_that_still_run() -> None:
    async def run() -> FakeSession:
        async def tool(_call: ToolCall) -> str:
            await asyncio.Event().wait()
            raise AssertionError

        session = FakeSession()
        model = ScriptedModel([calls("c1"), ModelError("over quota")])
        with pytest.raises(ModelError, match="over quota"):
            await asyncio.wait_for(make_turn(session, model, tool).run(), 5)
        return session

    session = asyncio.run(run())
    assert b"aborted: the provider failed" in session.items[-1]


def test_text_is_passed_on_as_it_arrives() -> None:
    session, _ = asyncio.run(
        play([OutputTextDelta(0, "he"), OutputTextDelta(0, "llo"), completed()])
    )
    assert session.events == [MessageDelta("he"), MessageDelta("llo")]


def test_a_response_that_arrives_all_at_once_does_not_block_other_tasks() -> None:
    seen: list[str] = []

    class AtOnce(ScriptedModel):
        async def _play(self, steps: Sequence[Step]) -> AsyncIterator[ResponseEvent]:
            for step in steps:
                assert isinstance(step, ResponseEvent)
                yield step

    class Slow(FakeSession):
        def emit(self, event: Event) -> None:
            seen.append("shown")
            asyncio.get_running_loop().call_soon(seen.append, "key")
            time.sleep(0.01)

    async def run() -> None:
        steps = [*(OutputTextDelta(0, "x") for _ in range(5)), completed()]
        await make_turn(Slow(), AtOnce(steps), echo).run()

    asyncio.run(run())
    assert seen == ["shown", "key"] * 5


def test_a_suspended_turn_ends_when_the_other_calls_have_ended() -> None:
    begun = asyncio.Event()

    async def tool(call: ToolCall) -> str:
        if call.call_id == "c1":
            begun.set()
            raise TurnSuspended("it waits")
        await begun.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        return "worked to its end"

    session = FakeSession()
    model = ScriptedModel([calls("c1"), calls("c2", index=1), completed()])
    with pytest.raises(TurnSuspended, match="it waits"):
        asyncio.run(make_turn(session, model, tool).run())
    said = session.said
    worked = next(
        n for n, line in enumerate(said) if line.endswith("worked to its end")
    )
    assert said.index("leave open 0") < worked
    assert len(model.prompts) == 1
