import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from codex_py.process.sessions import ProcessSessions
from tests.support.lifeline import Lifeline

_WAIT_S = 20.0
_REPO = Path(__file__).parents[2]

_AGENT = """
import asyncio, os, sys
from pathlib import Path
from codex_py.process.sessions import ProcessSessions

async def main():
    sessions = ProcessSessions()
    for script in sys.argv[1:]:
        process = sessions.spawn(["sh", "-c", script], cwd=Path("/"), environment=dict(os.environ))
        if script.endswith("exit 0"):
            await process.wait(120)
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def _kill_an_agent_that_runs(
    *scripts: str, lifeline: Lifeline, first: Callable[[int], None] | None = None
) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", _AGENT, *scripts], stdout=subprocess.PIPE, cwd=_REPO
    )
    with agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"started\n"
        lifeline.wait_until_up(len(scripts))
        assert lifeline.is_held()
        if first is not None:
            first(agent.pid)
        agent.kill()
    lifeline.wait_until_dead()


def test_commands_die_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        running = f"trap '' TERM HUP; {lifeline.hold} sleep 1000 & while :; do sleep 1000; done"
        _kill_an_agent_that_runs(running, running, lifeline=lifeline)


def test_background_processes_die_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        left = f"{lifeline.hold} sleep 1000 >/dev/null 2>&1 & exit 0"
        # Without the mark, only their group is left to find them by.
        unmarked = f"{lifeline.hold} env -i sleep 1000 >/dev/null 2>&1 & exit 0"
        _kill_an_agent_that_runs(left, unmarked, lifeline=lifeline)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_daemons_die_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        daemon = (
            f"setsid sh -c '{lifeline.hold} exec sleep 1000' >/dev/null 2>&1 & exit 0"
        )
        _kill_an_agent_that_runs(daemon, lifeline=lifeline)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_guardian_does_its_work_whatever_signals_it_got(
    number: int, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"{lifeline.hold} exec sleep 1000"
        _kill_an_agent_that_runs(
            script,
            lifeline=lifeline,
            first=lambda agent: _signal_guardian(agent, number),
        )


def test_a_guardian_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            for _ in range(3):
                process = sessions.spawn(
                    ["true"], cwd=tmp_path, environment=dict(os.environ)
                )
                assert await process.wait(_WAIT_S)
                await asyncio.to_thread(_signal_guardian, os.getpid(), signal.SIGKILL)

    asyncio.run(main())


def _signal_guardian(agent: int, number: int) -> None:
    """Signal the one child of an agent that is a guardian."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    ).stdout
    for line in listing.splitlines():
        pid, parent, args = line.split(maxsplit=2)
        if parent == str(agent) and "guardian" in args:
            os.kill(int(pid), number)
