"""Agents that work side by side: their events are followed, and they end together."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from codex_py.app.attempts import Attempts
from codex_py.app.exec_process import ExecInvocation, ExecResult
from tests.support.git import git
from tests.support.hooks import DONE, command
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

OPTIONS = ("--skip-git-repo-check", "-s", "danger-full-access")


def agent(place: Workplace, cwd: Path) -> ExecInvocation:
    return ExecInvocation(OPTIONS, "go", cwd, environment(place.home))


def within(
    place: Workplace, work: Callable[[Attempts], Awaitable[ExecResult]]
) -> ExecResult:
    def warn(text: str) -> None:
        raise AssertionError(text)

    async def main() -> ExecResult:
        with closing(Attempts(place.home, environment(place.home), warn)) as attempts:
            return await work(attempts)

    return asyncio.run(main())


def test_the_events_of_an_agent_are_followed_as_whole_lines(
    place: Workplace, tmp_path: Path
) -> None:
    lines: list[bytes] = []
    with ScriptedServer([command("true"), DONE]) as server:
        place.configure(server)
        result = within(
            place,
            lambda attempts: attempts.run(
                agent(place, place.cwd), tmp_path, watch=lines.append
            ),
        )
    assert result.exit_code == 0
    assert b"".join(lines) == (tmp_path / "events.jsonl").read_bytes()
    assert json.loads(lines[-1])["type"] == "turn.completed"


def test_a_worktree_is_removed_with_what_the_agent_left(
    place: Workplace, tmp_path: Path
) -> None:
    git(place.cwd, "init", "-q")
    git(place.cwd, "commit", "-qm", "one", "--allow-empty")

    async def work(attempts: Attempts) -> ExecResult:
        opened = attempts.worktree(place.cwd, name="w", base="HEAD")
        async with opened as worktree:
            result = await attempts.run(agent(place, worktree.cwd), tmp_path)
            assert b"+text" in worktree.diff()
        return result

    with ScriptedServer([command("echo text > made"), DONE]) as server:
        place.configure(server)
        assert within(place, work).exit_code == 0
    assert not (place.cwd / "made").exists()
    assert list((place.home / "worktrees").iterdir()) == []


def test_all_agents_end_at_once(place: Workplace, tmp_path: Path) -> None:
    async def work(attempts: Attempts) -> ExecResult:
        def watch(line: bytes) -> None:
            if b'"command_execution"' in line:
                attempts.end_all()

        return await attempts.run(agent(place, place.cwd), tmp_path, watch=watch)

    with (
        Lifeline(tmp_path) as line,
        ScriptedServer([command(f"{line.hold} sleep 100")]) as server,
    ):
        place.configure(server)
        with pytest.raises(TimeoutError):
            within(place, work)
        line.wait_until_dead()


@pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")
def test_many_agents_are_forks_of_a_process_that_ends_with_them(
    place: Workplace, tmp_path: Path
) -> None:
    started: list[str] = []

    def read(line: bytes) -> None:
        event = json.loads(line)
        output = event.get("item", {}).get("aggregated_output", "")
        started.extend(re.findall(r"-m codex_py (\S+)", output))

    async def run_many(attempts: Attempts) -> ExecResult:
        one = agent(place, place.cwd)
        results: list[ExecResult] = []
        for number in range(20):
            folder = tmp_path / str(number)
            folder.mkdir()
            results.append(await attempts.run(one, folder, watch=read))
        assert {each.last_message for each in results} == {"done"}
        return results[-1]

    script = [command(r"tr '\0' ' ' </proc/$PPID/cmdline"), DONE]
    with ScriptedServer(script * 20) as server:
        place.configure(server)
        within(place, run_many)
    assert started[:6] == ["exec"] * 6
    # It is not ready at once.
    assert started[-1] == "--fork-server"
    assert set(started) == {"exec", "--fork-server"}
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    for child in children.read_text("utf-8").split():
        assert b"--fork-server" not in Path(f"/proc/{child}/cmdline").read_bytes()
