"""Commands in terminals of somebody else, who may fail, leave, or never answer.

Also tests `protocol/terminals.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.process.hosted import HostedCommands
from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.terminals import TerminalState

LOST = ToolError("the terminal is lost", code="EditorFailed")


class FakeTerminal:
    """A terminal whose output and end the test sets."""

    def __init__(self) -> None:
        self.id = "term_1"
        self.output = ""
        self.is_truncated = False
        self.exit_code: int | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.done: list[str] = []
        self.answers_looks = True
        self.dies = True

    def end(self, code: int) -> None:
        self.exit_code = code
        if not self.ended.done():
            self.ended.set_result(code)

    async def wait(self) -> int:
        return await self.ended

    async def state(self) -> TerminalState:
        if not self.answers_looks:
            await asyncio.Event().wait()
        return TerminalState(self.output, self.is_truncated, self.exit_code)

    def kill(self) -> None:
        self.done.append("kill")
        if self.dies:
            self.end(137)

    def release(self) -> None:
        self.done.append("release")


class FakeTerminals:
    def __init__(self, terminal: FakeTerminal | None) -> None:
        self.terminal = terminal
        self.environment: Mapping[str, str] = {}
        self.was_withdrawn = False
        self.failure: ToolError | None = None

    async def open(
        self, argv: Sequence[str], *, environment: Mapping[str, str], **_: Any
    ) -> FakeTerminal:
        self.environment = environment
        if self.failure is not None:
            raise self.failure
        try:
            while self.terminal is None:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_withdrawn = True
            raise
        return self.terminal


Work = Callable[[FakeTerminal, Process, ProcessSessions], Awaitable[None]]


def with_command(work: Work, *, opens: bool = True) -> tuple[Process, FakeTerminals]:
    """Let the work have a command. In the end, the agent ends its commands."""

    async def main() -> tuple[Process, FakeTerminals]:
        sessions = ProcessSessions()
        terminal = FakeTerminal()
        terminals = FakeTerminals(terminal if opens else None)
        process = HostedCommands(sessions, terminals).spawn(
            ["make"], title="make", cwd=Path("/"), environment={"A": "1"}
        )
        try:
            await work(terminal, process, sessions)
        finally:
            await sessions.aclose()
        assert process.finished.is_set()
        assert not sessions.is_running
        return process, terminals

    return asyncio.run(main())


def text(process: Process) -> str:
    return process.all_output().text()


def test_the_output_and_the_exit_code_are_those_of_the_terminal() -> None:
    shown: list[str] = []

    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        process.on_terminal = shown.append
        terminal.output = "one\r\ntwo\r\n"
        terminal.end(3)
        assert await process.wait(10)

    process, terminals = with_command(work)
    assert (process.exit_code, text(process)) == (3, "one\ntwo\n")
    assert terminals.terminal is not None
    assert terminals.terminal.done == ["release"]
    assert shown == ["term_1"]
    # By this, the command is found however the agent ends.
    assert terminals.environment.keys() == {"A", "CODEX_PY_PROCESS"}


def test_a_wait_brings_the_output_that_is_new() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        seen: list[str] = []
        for output in (
            "one\n",
            "one\n",
            "one\ntwo\n",
            "o\nthree\n",
            "two\nthree\nfour\n",
        ):
            terminal.output = output
            assert not await process.wait(0)
            seen.append(process.take_output().text())
        terminal.end(0)
        assert await process.wait(10)
        missing = "[the editor did not keep what came between:]\no\nthree\n"
        assert seen[:3] == ["one\n", "", "two\n"]
        assert seen[3] == f"\n{missing}"

    with_command(work)


def test_output_that_lost_its_beginning_is_joined() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        terminal.output = "x" * 3000 + "a\n"
        await process.wait(0)
        process.take_output()
        terminal.output = "x" * 2500 + "a\nb\n"
        terminal.is_truncated = True
        await process.wait(0)
        assert process.take_output().text() == "b\n"

    with_command(work)


def test_an_end_that_only_the_output_tells_is_an_end() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        terminal.exit_code = 4
        assert await process.wait(0.01)
        assert terminal.done == ["release"]

    process, _ = with_command(work)
    assert process.exit_code == 4


def test_a_known_exit_code_counts_although_the_output_does_not_come() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        terminal.answers_looks = False
        terminal.end(0)
        assert await process.wait(0.01)
        assert terminal.done == ["release"]

    process, _ = with_command(work)
    assert process.exit_code == 0
    assert text(process) == "[the editor did not give the output in time]\n"


@pytest.mark.parametrize("dies", [True, False])
def test_a_stopped_command_is_finished_whatever_the_terminal_does(dies: bool) -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        terminal.output = "so far\n"
        assert not await process.wait(0.01)
        terminal.dies = dies
        terminal.answers_looks = False
        await process.stop(exit_code=124)
        assert process.finished.is_set()
        await asyncio.sleep(0)
        assert terminal.done == ["kill", "release"]

    process, _ = with_command(work)
    assert (process.exit_code, text(process)) == (124, "so far\n")


def test_a_command_without_a_terminal_yet_is_withdrawn() -> None:
    async def work(_: FakeTerminal, process: Process, __: ProcessSessions) -> None:
        assert not await process.wait(0.01)
        await process.stop()

    process, terminals = with_command(work, opens=False)
    assert process.exit_code == 137
    assert text(process) == "[the editor had not opened a terminal yet]\n"
    assert terminals.was_withdrawn


def test_the_end_of_the_agent_ends_commands_and_gives_terminals_back() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, sessions: ProcessSessions
    ) -> None:
        assert not await process.wait(0.01)
        assert sessions.is_running

    process, terminals = with_command(work)
    assert process.exit_code == 137
    assert terminals.terminal is not None
    assert terminals.terminal.done == ["kill", "release"]


def test_a_terminal_that_fails_is_the_end_of_its_command() -> None:
    async def work(
        terminal: FakeTerminal, process: Process, _: ProcessSessions
    ) -> None:
        terminal.ended.set_exception(LOST)
        assert await process.wait(10)
        assert terminal.done == ["kill", "release"]

    process, _ = with_command(work)
    assert (process.exit_code, text(process)) == (-1, "[the terminal is lost]\n")


def test_an_interrupt_ends_the_command() -> None:
    async def work(_: FakeTerminal, process: Process, __: ProcessSessions) -> None:
        await process.wait(0.01)
        assert not process.has_input
        process.interrupt()
        assert await process.wait(10)

    process, _ = with_command(work)
    assert process.exit_code == 137
