import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.core.history import History
from codex_py.core.session import Session, TurnSettings
from codex_py.core.turn import ItemHandlers
from codex_py.errors import ModelError
from codex_py.protocol.approval import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.events import Event, TurnCompleted, TurnFailed, TurnStarted
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.stream import Usage
from tests.support.model import ScriptedModel, completed, says

SETTINGS = TurnSettings(
    model="m",
    provider="p",
    cwd=Path("/repo"),
    approval_policy=ApprovalPolicy.NEVER,
    sandbox_policy=SandboxPolicy(),
    context_window=1000,
)


class FakeRecorder:
    def response_item(self, item: EncodedItem) -> None: ...
    def turn_context(self, payload: Mapping[str, Any]) -> None: ...
    def event_msg(self, payload: Mapping[str, Any]) -> None: ...


class FakeBudget:
    def next(self, error: ModelError) -> None:
        """Nothing is tried again."""


def test_a_signal_while_a_turn_is_tidied_up_still_gives_it_one_end() -> None:
    async def run() -> list[Event]:
        events: list[Event] = []
        tidying = asyncio.Event()

        async def end_turn(_: Session) -> None:
            # A command in the background is given a moment; the second time it is gone.
            if not tidying.is_set():
                tidying.set()
                await asyncio.Event().wait()

        def handlers(_: Session) -> ItemHandlers:
            async def dispatch(_: object) -> Any: ...

            return ItemHandlers(
                build_tool_call=lambda _: None,
                dispatch=dispatch,
                answer=lambda _call, _output: pytest.fail("nothing was called"),
                item_events=lambda _: [],
            )

        session = Session(
            thread_id="t",
            settings=SETTINGS,
            history=History(),
            usage=Usage(),
            model=ScriptedModel([says("hi"), completed()]),
            recorder=FakeRecorder(),
            load_handlers=handlers,
            retries=FakeBudget,
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
    assert (events[0], events[-1]) == (TurnStarted(), ends[0])
