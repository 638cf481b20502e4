"""The promises that a thread makes to its server.

Tests `app/served_thread.py` and `app/hosted.py`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from codex_py import (
    CodexError,
    Config,
    SessionOptions,
    TurnResult,
    load_config,
)
from codex_py.app.served_thread import ServedThread, ServedTurn
from codex_py.errors import ConfigError, TurnAborted, UsageError
from codex_py.protocol import events
from codex_py.protocol.approval import ApprovalRequest, Review
from codex_py.testing import (
    FakeModel,
    Pause,
    call,
    ev_completed,
    ev_created,
    ev_message,
)
from tests.app.test_json_rpc import in_a_loop
from tests.support.program import Workplace, environment

ENDS = events.TurnCompleted | events.TurnFailed


class RecordedThread(ServedThread):
    """A thread that records its events, and a notice about each turn."""

    def __init__(self, place: Workplace, model: FakeModel, **options: Any) -> None:
        options = {"transport": model, **options}
        super().__init__(SessionOptions(**options), environment(place.home))
        self.place = place
        self.settings: dict[str, Any] = {}
        self.events: list[events.Event] = []
        self.notices: list[str] = []

    def configuration(self) -> Config:
        variables = environment(self.place.home)
        return load_config(
            cwd=self.place.cwd, environment=variables, flags=self.settings
        )

    def show(self, event: events.Event) -> None:
        self.events.append(event)
        if isinstance(event, ENDS):
            self.tell(partial(self.notices.append, "turn ended"))

    def prompt(self, text: str) -> ServedTurn[TurnResult]:
        async def work() -> TurnResult:
            session = await self.ready()
            return await session.run_turn(text)

        return self.begin(work)

    def turns(self) -> list[str]:
        """The names of the first and the last events of the turns."""
        kinds = events.TurnStarted | ENDS
        return [type(each).__name__ for each in self.events if isinstance(each, kinds)]


@asynccontextmanager
async def served(
    place: Workplace, *replies: Any, **options: Any
) -> AsyncGenerator[RecordedThread]:
    thread = RecordedThread(place, FakeModel(*replies), **options)
    try:
        yield thread
    finally:
        await thread.close()


def answer_after(pause: Pause) -> list[Any]:
    return [ev_created(), pause, *ev_message("late"), ev_completed()]


async def reached(pause: Pause) -> None:
    assert await asyncio.to_thread(pause.reached.wait, 60)


@in_a_loop
async def test_turns_run_one_after_another_in_the_order_of_their_beginning(
    place: Workplace,
) -> None:
    async with served(place, "one", "two", "three") as thread:
        turns = [thread.prompt(text) for text in ("a", "b", "c")]
        results = [await turn.ended() for turn in turns]
        assert [each.last_message for each in results] == ["one", "two", "three"]
        assert thread.turns() == ["TurnStarted", "TurnCompleted"] * 3
        assert not thread.is_working


@in_a_loop
async def test_a_cancellation_ends_the_turns_so_far_and_no_later_one(
    place: Workplace,
) -> None:
    pause = Pause()
    async with served(place, answer_after(pause), "two") as thread:
        running = thread.prompt("a")
        waiting = thread.prompt("b")
        await reached(pause)
        thread.cancel()
        assert thread.is_working
        assert not thread.is_busy
        later = thread.prompt("c")
        assert thread.is_busy
        with pytest.raises(TurnAborted):
            await waiting.ended()
        error = (await running.ended()).error
        assert isinstance(error, TurnAborted)
        assert (await later.ended()).last_message == "two"
        # The turn that waited has no events.
        assert thread.turns() == [
            *("TurnStarted", "TurnFailed"),
            *("TurnStarted", "TurnCompleted"),
        ]
        pause.until.set()


@in_a_loop
async def test_a_turn_can_be_cancelled_before_its_task_has_begun(
    place: Workplace,
) -> None:
    async with served(place) as thread:
        turn = thread.prompt("a")
        thread.cancel()
        with pytest.raises(TurnAborted):
            await turn.ended()
        await thread.ended()
        assert thread.events == []
        assert not thread.is_open


@in_a_loop
async def test_a_wait_that_is_cancelled_ends_the_turn_first(place: Workplace) -> None:
    pause = Pause()
    async with served(place, answer_after(pause)) as thread:
        wait = asyncio.create_task(thread.prompt("a").ended())
        await reached(pause)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert thread.turns() == ["TurnStarted", "TurnFailed"]
        assert not thread.is_working
        pause.until.set()


@in_a_loop
async def test_a_wait_that_is_cancelled_twice_leaves_the_turn_to_its_end(
    place: Workplace,
) -> None:
    leave = asyncio.Event()
    async with served(place) as thread:

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await leave.wait()

        wait = asyncio.create_task(thread.begin(work).ended())
        for _ in range(3):
            await asyncio.sleep(0)
            wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert thread.is_working
        leave.set()
        await thread.ended()
        assert not thread.is_working


@in_a_loop
async def test_the_beginning_of_a_turn_can_be_waited_for(place: Workplace) -> None:
    pause = Pause()
    async with served(place, answer_after(pause)) as thread:
        turn = thread.prompt("a")
        turn_id = await turn.started()
        assert events.TurnStarted(turn_id) in thread.events
        assert thread.turns() == ["TurnStarted"]
        pause.until.set()
        assert (await turn.ended()).last_message == "late"


@in_a_loop
async def test_a_turn_that_cannot_begin_says_why(
    place: Workplace, capfd: pytest.CaptureFixture[str]
) -> None:
    async with served(place, "one") as thread:
        with pytest.raises(UsageError, match="the prompt is empty"):
            await thread.prompt(" ").started()
        thread.settings = {"sandbox_mode": "no such mode"}
        await thread.close()
        with pytest.raises(ConfigError, match="no such mode"):
            await thread.prompt("a").ended()
        turn = thread.prompt("a")
        turn.cancel()
        with pytest.raises(CodexError, match="closed before the turn began"):
            await turn.started()
        thread.settings = {}
        assert (await thread.prompt("a").ended()).last_message == "one"
    assert capfd.readouterr().err == ""


@in_a_loop
async def test_a_bug_goes_to_who_waits_and_else_to_standard_error(
    place: Workplace, capfd: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        raise KeyError("a bug")

    async def work_after_the_beginning() -> None:
        await (await thread.ready()).run_turn("a")
        raise KeyError("a late bug")

    async with served(place, "one", "two") as thread:
        with pytest.raises(KeyError):
            await thread.begin(work).ended()
        with pytest.raises(KeyError):
            await thread.begin(work).started()
        assert capfd.readouterr().err == ""
        thread.begin(work)
        await thread.ended()
        assert "KeyError: 'a bug'" in capfd.readouterr().err
        await thread.begin(work_after_the_beginning).started()
        await thread.ended()
        assert "KeyError: 'a late bug'" in capfd.readouterr().err
        assert (await thread.prompt("b").ended()).last_message == "two"


@in_a_loop
async def test_notices_wait_until_every_request_is_answered(place: Workplace) -> None:
    async with served(place, "one", "two") as thread:
        with thread.answering():
            with thread.answering():
                await thread.prompt("a").ended()
            thread.tell(partial(thread.notices.append, "more"))
            await asyncio.sleep(0)
            assert thread.notices == []
        # The answer is sent here.
        assert thread.notices == []
        await asyncio.sleep(0)
        assert thread.notices == ["turn ended", "more"]
        thread.tell(partial(thread.notices.append, "at once"))
        assert thread.notices[-1] == "at once"


@in_a_loop
async def test_a_closed_thread_goes_on_where_it_was(place: Workplace) -> None:
    async with served(place, "one", "two") as thread:
        await thread.prompt("a").ended()
        choices = replace(thread.session.settings.choices, model="another")
        thread.session.change(choices)
        await thread.close()
        await thread.close()
        assert not thread.is_open
        assert not thread.is_idle
        await thread.prompt("b").ended()
        assert thread.is_idle
        assert thread.session.settings.model == "another"
        prompts = [each.prompt.text for each in thread.session.past_prompts()]
        assert prompts == ["a", "b"]
        ids = [
            e.thread_id for e in thread.events if isinstance(e, events.ThreadStarted)
        ]
        assert ids == [thread.thread_id] * 2


@in_a_loop
async def test_a_thread_without_a_prompt_is_opened_again_under_its_id(
    place: Workplace,
) -> None:
    async with served(place, "one") as thread:
        first = (await thread.open()).thread_id
        assert not thread.is_idle
        await thread.close()
        session = await thread.ready()
        assert (session.thread_id, session.is_resumed) == (first, False)
        await thread.prompt("a").ended()
        await thread.close()
        assert (await thread.ready()).is_resumed


@in_a_loop
async def test_a_thread_without_a_file_is_not_idle(place: Workplace) -> None:
    async with served(place, "one", ephemeral=True) as thread:
        await thread.prompt("a").ended()
        assert thread.is_open
        assert not thread.is_idle


@in_a_loop
async def test_a_turn_waits_while_its_session_closes(place: Workplace) -> None:
    async with served(place, "one", "two") as thread:
        await thread.prompt("a").ended()

        async def close() -> None:
            async with thread.lock:
                await thread.close()

        closing = asyncio.create_task(close())
        await asyncio.sleep(0)
        assert thread.is_open
        assert thread.is_closing
        assert (await thread.prompt("b").ended()).last_message == "two"
        await closing


@in_a_loop
async def test_a_close_ends_the_turn_that_opens_the_session(place: Workplace) -> None:
    async with served(place, "one") as thread:
        turn = thread.prompt("a")
        await asyncio.sleep(0)
        await thread.close()
        with pytest.raises(TurnAborted):
            await turn.ended()
        assert not thread.is_open


@in_a_loop
async def test_input_that_a_cancelled_turn_did_not_send_reaches_no_other(
    place: Workplace,
) -> None:
    pause = Pause()
    async with served(place, answer_after(pause), "two") as thread:
        running = thread.prompt("a")
        await reached(pause)
        assert thread.session.steer("steered")
        thread.cancel()
        assert not thread.session.steer("too late")
        await running.ended()
        await thread.prompt("b").ended()
        prompts = [each.prompt.text for each in thread.session.past_prompts()]
        assert prompts == ["a", "b"]
        pause.until.set()


@in_a_loop
async def test_a_cancellation_withdraws_the_open_question(place: Workplace) -> None:
    asked = asyncio.Event()
    withdrawn = asyncio.Event()

    class Asking:
        async def review(self, request: ApprovalRequest) -> Review:
            asked.set()
            try:
                return await asyncio.get_running_loop().create_future()
            finally:
                withdrawn.set()

    script = call("exec_command", cmd="touch made")
    async with served(place, script) as thread:
        thread.settings = {"approval_policy": "untrusted"}
        thread.approver = Asking()
        turn = thread.prompt("a")
        await asked.wait()
        turn.cancel()
        turn.cancel()
        result = await turn.ended()
        assert isinstance(result.error, TurnAborted)
        assert withdrawn.is_set()
        assert not (place.cwd / "made").exists()
