"""Calls that change files take turns across a session and its children."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.features.agents.agent_registry import taking_turns
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.tools import FunctionPayload, ToolCall, ToolOutput
from tests.support.tool_context import tool_context


class Fake:
    name = "fake"
    params = object

    def __init__(
        self, *, parallel: bool = False, changed: Sequence[Path] | None = None
    ) -> None:
        self.parallel = parallel
        self._changed = changed

    def changes(self, params: Any, cwd: Path) -> Sequence[Path] | None:
        return self._changed

    async def run(self, params: Any, context: Any) -> ToolOutput:
        return ToolOutput("")


class Running:
    """Calls of two sessions, each of which ends when it is told to."""

    def __init__(self) -> None:
        turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.started: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self._dispatches: list[Dispatch] = [
            taking_turns(turns, self._dispatch) for _ in range(2)
        ]

    async def _dispatch(self, use: ToolUse) -> ToolOutput:
        self.started.append(use.call.call_id)
        await self.ends[use.call.call_id].wait()
        return ToolOutput("")

    async def start(
        self, call_id: str, session: int, tool: Fake, cwd: Path
    ) -> "asyncio.Task[ToolOutput]":
        self.ends[call_id] = asyncio.Event()
        call = ToolCall("fake", call_id, FunctionPayload("{}"))
        use = ToolUse(call, tool, None, tool_context(cwd, lambda _: None))
        task = asyncio.ensure_future(self._dispatches[session](use))
        for _ in range(5):
            await asyncio.sleep(0)
        return task


def played(play: Callable[[Running], Any]) -> list[str]:
    async def main() -> list[str]:
        running = Running()
        async with asyncio.timeout(10):
            await play(running)
        return running.started

    return asyncio.run(main())


def test_a_call_waits_for_that_of_another_session(tmp_path: Path) -> None:
    async def play(running: Running) -> None:
        first = await running.start("a", 0, Fake(), tmp_path)
        second = await running.start("b", 1, Fake(), tmp_path)
        assert running.started == ["a"]
        running.ends["a"].set()
        await first
        running.ends["b"].set()
        await second

    assert played(play) == ["a", "b"]


@pytest.mark.parametrize("tool", [Fake(parallel=True), Fake(changed=())])
def test_a_call_that_changes_no_file_does_not_wait(tmp_path: Path, tool: Fake) -> None:
    async def play(running: Running) -> None:
        tasks = [
            await running.start("a", 0, Fake(), tmp_path),
            await running.start("b", 1, tool, tmp_path),
        ]
        assert running.started == ["a", "b"]
        for end in running.ends.values():
            end.set()
        await asyncio.gather(*tasks)

    played(play)


def test_a_call_in_another_folder_does_not_wait(tmp_path: Path) -> None:
    async def play(running: Running) -> None:
        await running.start("a", 0, Fake(), tmp_path)
        await running.start("b", 1, Fake(), tmp_path / "tree")
        assert running.started == ["a", "b"]

    played(play)


def test_a_call_that_is_cancelled_gives_up_its_turn(tmp_path: Path) -> None:
    async def play(running: Running) -> None:
        first = await running.start("a", 0, Fake(), tmp_path)
        waiting = await running.start("b", 1, Fake(), tmp_path)
        last = await running.start("c", 1, Fake(), tmp_path)
        waiting.cancel()
        first.cancel()
        await asyncio.wait([first, waiting])
        running.ends["c"].set()
        await last

    assert played(play) == ["a", "c"]
