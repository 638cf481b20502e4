"""`run_exec`: one agent as a process, against a scripted server."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codex_py.app.exec_process import ExecInvocation, ExecResult, run_exec
from codex_py.process.guardian import Guardian
from codex_py.testing import Pause, ev_completed, ev_custom_tool_call
from tests.support.hooks import DONE, command
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment, jsonl
from tests.support.server import ScriptedServer

_OPTIONS = ("--skip-git-repo-check", "-s", "danger-full-access")
_ENVELOPE = "*** Begin Patch\n*** Add File: made\n+text\n*** End Patch"


def run(
    place: Workplace,
    *options: str,
    prompt: str = "go",
    timeout_s: float | None = None,
    grace_s: float = 5.0,
) -> ExecResult:
    made = ExecInvocation(
        [*_OPTIONS, *options],
        prompt,
        place.cwd,
        environment(place.home),
        timeout_s=timeout_s,
    )

    async def main() -> ExecResult:
        guardian = Guardian()
        try:
            return await run_exec(made, guardian, place.home, grace_s=grace_s)
        finally:
            guardian.close()

    return asyncio.run(main())


def test_the_result_has_what_the_events_say(place: Workplace) -> None:
    patch = [*ev_custom_tool_call("p", "apply_patch", _ENVELOPE), ev_completed()]
    with ScriptedServer([patch, DONE]) as server:
        place.configure(server)
        result = run(place, "--require-change", prompt="-- write\u00fc")
        prompt = server.requests[0].input[-1]["content"][0]["text"]
    assert prompt == "-- write\u00fc"
    assert (result.exit_code, result.signal, result.timed_out) == (0, None, False)
    assert (result.last_message, result.error) == ("done", None)
    assert result.diff is not None
    assert "+text" in result.diff
    assert result.usage is not None
    assert result.usage["output_tokens"] > 0
    assert result.gates is not None
    assert result.gates[0]["status"] == "passed"
    events = jsonl((place.home / "events.jsonl").read_bytes())
    assert events[0] == {"type": "thread.started", "thread_id": result.thread_id}
    assert events[-1]["type"] == "turn.completed"


def test_a_failed_turn_has_its_error(place: Workplace) -> None:
    with ScriptedServer() as server:
        place.configure(server)
        result = run(place)
    assert result.exit_code == 69
    assert result.error is not None
    assert result.error["http_status"] == 500


def test_a_failure_before_the_session_has_the_sentence(place: Workplace) -> None:
    result = run(place, "--no-such-option")
    assert (result.exit_code, result.thread_id) == (2, None)
    assert result.error is not None
    assert "--no-such-option" in result.error["message"]


def test_a_timeout_ends_the_agent_and_its_commands(
    place: Workplace, tmp_path: Path
) -> None:
    with (
        Lifeline(tmp_path) as line,
        ScriptedServer([command(line.hold + "sleep 60")]) as server,
    ):
        place.configure(server)
        result = run(place, timeout_s=3)
        line.wait_until_dead()
    assert (result.timed_out, result.exit_code) == (True, 143)


def test_an_agent_that_does_not_end_is_killed(place: Workplace) -> None:
    with ScriptedServer([command("kill -STOP $PPID; sleep 60")]) as server:
        place.configure(server)
        result = run(place, timeout_s=3, grace_s=0.1)
    assert (result.timed_out, result.signal) == (True, signal.SIGKILL)


_PARENT = """
import asyncio, json, os, signal, sys
from pathlib import Path
from codex_py.app.exec_process import ExecInvocation, run_exec
from codex_py.process.guardian import Guardian
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
home, cwd, *options = sys.argv[1:]
command = ExecInvocation(options, "go", Path(cwd), dict(os.environ))
asyncio.run(run_exec(command, Guardian(), Path(home)))
"""


def children(pid: int) -> Sequence[int]:
    return [
        int(found)
        for found in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("without_guardian", [False, True])
def test_a_killed_parent_takes_the_agent_along(
    place: Workplace, without_guardian: bool
) -> None:
    pause = Pause()
    with ScriptedServer([[pause, *DONE]]) as server:
        place.configure(server)
        parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT, place.home, place.cwd, *_OPTIONS],
            env=environment(place.home),
        )
        try:
            assert pause.reached.wait(60)
            guardian, agent = children(parent.pid)
            mask = (
                Path(f"/proc/{agent}/status").read_text("utf-8").split("SigBlk:\t")[1]
            )
            assert int(mask.split()[0], 16) & 1 << signal.SIGINT - 1 == 0
            held = os.pidfd_open(agent)
            if without_guardian:
                os.kill(guardian, signal.SIGKILL)
        finally:
            parent.kill()
            parent.wait()
        try:
            # A pidfd can be read when its process has ended.
            assert select.select([held], [], [], 1.0)[0]
        finally:
            os.close(held)
