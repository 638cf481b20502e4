"""A user who interrupts a turn does not wait for what it was doing."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.protocol.events import (
    CommandOutputDelta,
    Event,
    ItemCompleted,
    ItemStarted,
    MessageDelta,
    TurnFailed,
)
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_text_deltas,
)
from tests.support.program import Workplace
from tests.support.server import ScriptedServer
from tests.support.talk import talk

DEADLINE_S = 10.0
"""Tens of milliseconds are usual; a machine that is busy may take its time."""

STUBBORN = "echo up; trap '' TERM INT HUP; (sleep 600 & sleep 600)"
MANY_FILES = "".join(f"*** Add File: d{n}/f\n+x\n" for n in range(200))


def answers(event: Event) -> bool:
    return isinstance(event, MessageDelta)


def prints(event: Event) -> bool:
    return isinstance(event, CommandOutputDelta)


def begins(event: Event) -> bool:
    return isinstance(event, ItemStarted)


@pytest.mark.parametrize(
    ("script", "is_at_work"),
    [
        ([*ev_text_deltas(["a"]), Pause()], answers),
        (
            [
                *ev_function_call("c1", "exec_command", {"cmd": STUBBORN}),
                ev_completed(),
            ],
            prints,
        ),
        (
            [
                *ev_function_call("c1", "exec_command", {"cmd": STUBBORN, "tty": True}),
                Pause(),
            ],
            prints,
        ),
        (
            [
                *ev_function_call("c1", "shell", {"command": ["sh", "-c", STUBBORN]}),
                *ev_function_call(
                    "c2", "shell", {"command": ["sh", "-c", STUBBORN]}, index=1
                ),
                ev_completed(),
            ],
            prints,
        ),
        (
            [
                *ev_custom_tool_call(
                    "c1", "apply_patch", f"*** Begin Patch\n{MANY_FILES}*** End Patch"
                ),
                ev_completed(),
            ],
            begins,
        ),
    ],
    ids=["answer", "command", "terminal", "commands", "patch"],
)
def test_an_interrupted_turn_is_over_soon(
    place: Workplace, script: list[Any], is_at_work: Callable[[Event], bool]
) -> None:
    events: list[Event] = []
    at_work = asyncio.Event()

    def sink(event: Event) -> None:
        events.append(event)
        if is_at_work(event):
            at_work.set()

    async def work(session: Session) -> None:
        turn = asyncio.create_task(session.run_turn("go"))
        await asyncio.wait_for(at_work.wait(), 120)
        began = time.monotonic()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert time.monotonic() - began < DEADLINE_S
        assert isinstance(events[-1], TurnFailed)
        started = [event.item.id for event in events if isinstance(event, ItemStarted)]
        ended = [event.item.id for event in events if isinstance(event, ItemCompleted)]
        assert sorted(started) == sorted(ended)
        assert (await session.run_turn("again")).last_message == "done"

    with ScriptedServer([script, [*ev_message("done"), ev_completed()]]) as server:
        talk(place, server, work, sink=sink)
    # All of a patch, or nothing of it.
    assert len(list(place.cwd.glob("d*/f"))) in {0, 200}
