"""A list of domains through `exec`: what the model and the user are told of blocked hosts."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace
from tests.support.public_network import can_have_a_network, public_network, web_server
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.skipif(not can_have_a_network(), reason="takes root and `ip`")
DONE = [*ev_message("Done."), ev_completed()]
SCRIPT = "curl -s http://allowed.test/echo; curl -s http://other.test/ >/dev/null; echo went on"


@pytest.fixture
def world(tmp_path: Path) -> Generator[None]:
    folder = tmp_path / "world"
    folder.mkdir()
    with public_network(folder), web_server(folder, 80):
        yield


def run(
    place: Workplace, *options: str, **arguments: Any
) -> tuple[list[dict[str, Any]], str, int]:
    """The events, the output of the command as the model gets it, and the exit code. In a process that is started here:
    one that is forked from another would have another network."""
    call = ev_function_call("c", "exec_command", {"cmd": SCRIPT, **arguments})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        command = [
            sys.executable,
            "-m",
            "codex_py",
            "exec",
            "--json",
            "--skip-git-repo-check",
        ]
        done = subprocess.run(
            [*command, *options, "go"],
            cwd=place.cwd,
            env={
                **os.environ,
                "CODEX_HOME": str(place.home),
                "HOME": str(place.home),
                "MOCK_KEY": "k",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        outputs = [
            item["output"]
            for request in server.requests[1:2]
            for item in request.body["input"]
            if item["type"] == "function_call_output"
        ]
    assert done.returncode == 0, (done.stderr, done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return events, "".join(outputs), done.returncode


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_a_blocked_host_is_told_at_the_end_of_a_command_that_went_on(
    place: Workplace, mode: str
):
    events, output, code = run(place, "-s", mode, "--allow-domain", "allowed.test")
    assert "GET allowed.test 0\nwent on" in output
    line = "Network access was blocked: other.test, port 80: it is not on the list of allowed domains."
    assert output.splitlines()[-1] == line
    (ended,) = [event for event in events if event["type"] == "turn.completed"]
    assert ended["denied"] == {"calls": 1, "allow": ["`--allow-domain other.test`"]}
    (item,) = [
        event["item"]
        for event in events
        if event["type"] == "item.completed"
        and event["item"]["type"] == "command_execution"
    ]
    assert (item["status"], item["exit_code"]) == ("completed", 0)
    assert code == 0


@pytest.mark.usefixtures("world")
def test_a_run_that_can_be_suspended_is_not_by_a_blocked_host(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CODEX_PY_APPROVAL_KEY", "k" * 40)
    events, output, _ = run(
        place, "--allow-domain", "allowed.test", "--on-approval", "suspend"
    )
    assert output.splitlines()[-2:] == [
        "went on",
        "Network access was blocked: other.test, port 80: it is not on the list of allowed domains.",
    ]
    assert events[-1]["denied"] == {
        "calls": 1,
        "allow": ["`--allow-domain other.test`"],
    }


@pytest.mark.usefixtures("world")
def test_full_access_is_not_held_but_by_an_administrator(place: Workplace):
    _, output, _ = run(place, "--dangerously-bypass-approvals-and-sandbox")
    assert "blocked" not in output
    assert "GET allowed.test 0\nwent on" in output
