"""The Python SDK of Codex, unmodified, drives this program, and the released Codex beside it.

`CODEX_PYTHON_SDK` is an environment with `openai-codex`, `CODEX_BINARY` the released Codex. Without them, tests
are skipped.
"""

import json
import os
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from tests.support.codex import CODEX
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

# Read now: the tests themselves run without the settings of whoever started them.
_SDK = os.environ.get("CODEX_PYTHON_SDK")
_DRIVER = Path(__file__).with_name("python_sdk_driver.py")
_PROGRAM = Path(sysconfig.get_path("scripts"), "codex-py")
_DEADLINE_S = 120.0
_PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+b\n*** End Patch"
_PLAN = {
    "explanation": "why",
    "plan": [
        {"step": "a", "status": "completed"},
        {"step": "b", "status": "in_progress"},
    ],
}
_OFTEN = {"thread/tokenUsage/updated", "turn/diff/updated"}

pytestmark = pytest.mark.skipif(_SDK is None, reason="CODEX_PYTHON_SDK is not set")


def response(*items: Sequence[Any]) -> list[Any]:
    return [ev_created(), *(event for item in items for event in item), ev_completed()]


def script(pause: Pause) -> list[Any]:
    return [
        response(
            ev_reasoning("**Looking**"),
            ev_function_call("c1", "exec_command", {"cmd": "echo hi; exit 3"}, index=1),
        ),
        response(
            ev_custom_tool_call("p1", "apply_patch", _PATCH),
            ev_function_call("u1", "update_plan", _PLAN, index=1),
        ),
        response(ev_message("Done.", pieces=2)),
        response(ev_message('{"a": 1}')),
        Reply(events=[ev_created(), *ev_message("I begin", pieces=2)[:3], pause]),
        [ev_created(), ev_failed("invalid_prompt", "not this one")],
        response(ev_message("in the fork")),
        response(ev_message("resumed")),
        response(ev_message("a summary")),
    ]


@pytest.fixture
def drive(place: Workplace) -> Callable[[str], dict[str, Any]]:
    def run(program: str) -> dict[str, Any]:
        assert _SDK is not None
        pause = Pause()
        (place.cwd / "a.txt").write_text("one\n", encoding="utf-8")
        (place.cwd / "b.txt").unlink(missing_ok=True)
        home = place.home / Path(program).name
        home.mkdir()
        # The released Codex gives items ids of its own, and a fork begins with another history.
        with ScriptedServer(
            script(pause), check_calls=False, check_prefix=False
        ) as server:
            Workplace(home, place.cwd).configure(server)
            with (home / "config.toml").open("a", encoding="utf-8") as config:
                config.write(
                    "[analytics]\nenabled = false\n[tools.update_plan]\nenabled = true\n"
                )
            done = subprocess.run(
                [Path(_SDK, "bin", "python"), _DRIVER, program, place.cwd],
                cwd=place.cwd,
                env={**environment(home), "HOME": str(place.home.parent)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                timeout=_DEADLINE_S,
                check=False,
            )
            pause.until.set()
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_sdk_runs_a_session(
    drive: Callable[[str], dict[str, Any]], place: Workplace
) -> None:
    said = drive(str(_PROGRAM))

    assert "not understood by the SDK" not in json.dumps(said)
    methods = [event[0] for event in said["first"]]
    assert (methods[0], methods[-1]) == ("turn/started", "turn/completed")
    completed = [event[1:] for event in said["first"] if event[0] == "item/completed"]
    assert completed == [
        ["userMessage", None],
        ["reasoning", None],
        ["commandExecution", "failed"],
        ["fileChange", "completed"],
        ["agentMessage", None],
    ]
    assert ["item/agentMessage/delta", "Don"] in said["first"]
    plan = ["turn/plan/updated", "why", [["a", "completed"], ["b", "inProgress"]]]
    assert plan in said["first"]
    diffs = [lines for method, *lines in said["first"] if method == "turn/diff/updated"]
    assert diffs[-1] == [
        [
            "--- a/a.txt",
            "+++ b/a.txt",
            "-one",
            "+two",
            "--- /dev/null",
            "+++ b/b.txt",
            "+b",
        ]
    ]
    assert said["second"] == ['{"a": 1}', "completed", ["userMessage", None]]
    assert said["interrupted"] == ["turn/completed", "interrupted", None]
    assert said["failed"] == "not this one"
    assert [turn[0] for turn in said["turns"]] == [
        "completed",
        "completed",
        "interrupted",
        "failed",
    ]
    assert said["turns"][0][1] == completed
    assert said["list"] == [["do it", "a name", True]]
    assert said["fork"] == [True, "in the fork"]
    assert (said["archived"], said["left"], said["both"]) == ([True], [True], 2)
    assert said["resumed"] == ["resumed", "a name"]
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "two\n"


@pytest.mark.skipif(CODEX is None, reason="CODEX_BINARY names no Codex")
def test_the_released_codex_says_the_same(
    drive: Callable[[str], dict[str, Any]],
) -> None:
    assert CODEX is not None
    # The released Codex goes by the shell of the account, and this program by $SHELL first.
    ours, theirs = (
        json.loads(json.dumps(drive(each)).replace("/bin/sh -lc", "/bin/bash -lc"))
        for each in (str(_PROGRAM), CODEX)
    )
    # Usage comes before, and not after, the item that it counts; a diff is repeated.
    for said in (ours, theirs):
        said["first"] = [event for event in said["first"] if event[0] not in _OFTEN]
    assert ours == theirs
