"""Subagents that end while something else goes on.

Tests `app/features/agents/child.py`.
"""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codex_py import Extension, Session, SessionOptions, Thread
from codex_py.app.features.agents.feature import SubAgents
from codex_py.protocol.events import AgentEvent, ThreadStarted
from codex_py.protocol.prompts import Note
from codex_py.testing import Pause, RecordedRequest, ev_completed, ev_function_call
from tests.app.test_agents import output, talk
from tests.support.agents import (
    NAMESPACE,
    AgentServer,
    calls,
    says,
    texts,
    to_first,
    waits,
)
from tests.support.program import Workplace


def resumed_twice(_: Any, ids: Sequence[str]) -> Any:
    both = [
        ev_function_call(
            f"r{n}", "resume_agent", {"id": ids[0]}, index=n, namespace=NAMESPACE
        )
        for n in range(2)
    ]
    return [*both[0], *both[1], ev_completed()]


def test_two_calls_at_once_open_one_session(place: Workplace) -> None:
    server = AgentServer(
        [
            calls("spawn_agent", message="x"),
            waits(),
            to_first("close_agent", "c2"),
            resumed_twice,
            says("done"),
        ],
        [says("one")],
    )
    told = talk(place, server)
    assert [output(server, f"r{n}") for n in range(2)] == [
        '{"status":"pending_init"}'
    ] * 2
    started = [
        event.event
        for event in told.events
        if isinstance(event, AgentEvent) and isinstance(event.event, ThreadStarted)
    ]
    assert started == [ThreadStarted(server.ids[0])] * 2


def test_a_message_that_was_not_read_does_not_go_on(place: Workplace) -> None:
    hold = Pause()

    def steered(_: Any, ids: list[str]) -> Any:
        assert hold.reached.wait(120)
        return calls("send_input", "s1", target=ids[0], message="hurry")

    server = AgentServer(
        [calls("spawn_agent", message="x"), steered, says("done")],
        [[hold, *says("late")]],
    )
    told = talk(place, server)
    assert told.warnings == [
        "Subagents were still at work when the turn ended, and were stopped: Ada."
    ]
    assert len(server.of_children()) == 1


def test_the_commands_of_a_subagent_that_has_answered_are_stopped_too(
    place: Workplace,
) -> None:
    hold = Pause()

    def child(request: RecordedRequest, _: Any) -> Any:
        if texts(request)[-1][1] == "inner":
            return [hold, *says("late")]
        return calls("spawn_agent", "g1", message="inner")

    async def work(session: Session) -> None:
        async def interrupt() -> None:
            await asyncio.to_thread(hold.reached.wait, 20)
            await asyncio.to_thread(answered.reached.wait, 20)
            session.abort()

        agents = session.feature(SubAgents)
        assert agents is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(interrupt())
            await session.run_turn("go")
            assert [child.state.status for child in agents.registry.open] == [
                *("completed", "interrupted"),
            ]

    answered = Pause()
    server = AgentServer(
        [calls("spawn_agent", message="outer"), waits(), [answered, *says("done")]],
        [child, says("from between")],
    )
    options = SessionOptions(keep_commands=True)
    talk(place, server, work, options=options, overrides=["agents.max_depth=2"])


def test_a_bug_in_one_is_told_and_the_others_are_closed(place: Workplace) -> None:
    hold, left_busy = Pause(), list[bool]()
    children: list[Any] = []

    def feature(thread: Thread) -> Extension:
        async def before_request() -> Sequence[Note]:
            if thread.parent is not None and thread.parent.nickname == "Ada":
                raise ValueError("a bug")
            return ()

        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            try:
                yield
            finally:
                if thread.parent is None:
                    left_busy.extend(child.is_busy for child in children)

        return Extension(before_request=before_request, around_session=around_session)

    async def work(session: Session) -> None:
        await session.run_turn("go")
        agents = session.feature(SubAgents)
        assert agents is not None
        children.extend(agents.registry.open)

    def waits_for_one(_: Any, ids: Sequence[str]) -> Any:
        assert hold.reached.wait(120)
        return calls("wait_agent", "w1", targets=ids[:1])

    server = AgentServer(
        [
            calls("spawn_agent", message="x"),
            calls("spawn_agent", "c2", message="y"),
            waits_for_one,
            says("done"),
        ],
        [[hold, *says("late")]],
    )
    options = SessionOptions(keep_commands=True)
    with pytest.raises(ValueError, match="a bug"):
        talk(place, server, work, options=options, extensions=[feature])
    assert "internal error: ValueError('a bug')" in output(server, "w1")
    assert left_busy == [False, False]


def test_a_closed_one_takes_no_memory(place: Workplace) -> None:
    threads: list[weakref.ref[Thread]] = []
    left: list[bool] = []

    def feature(thread: Thread) -> Extension:
        threads.append(weakref.ref(thread))
        return Extension()

    async def work(session: Session) -> None:
        await session.run_turn("go")
        gc.collect()
        left.extend(thread() is not None for thread in threads)

    server = AgentServer(
        [
            calls("spawn_agent", message="x"),
            waits(),
            to_first("close_agent", "c2"),
            says("done"),
        ],
        [calls("update_plan", "p", plan=[]), says("one")],
    )
    talk(place, server, work, extensions=[feature])
    assert left == [True, False]
