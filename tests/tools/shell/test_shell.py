import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import command_report
from codex_py.tools.shell.shell import LocalShell, Shell, ShellCommand
from tests.support.lifeline import Lifeline
from tests.support.tool_calls import ToolCalls, tool_calls

_BASH = "/bin/bash"
# Rounded to one decimal, which is not written where it is 0.
_WALL = r"Wall time: \d+(\.[1-9])? seconds\n"


def _call(
    kind: type[Shell | ShellCommand | LocalShell],
    cwd: Path,
    *,
    structured: bool = False,
    **arguments: Any,
) -> tuple[ToolOutput, ToolCalls]:
    async def main() -> tuple[ToolOutput, ToolCalls]:
        async with tool_calls(cwd) as calls:
            tool = kind(calls.runner(), _BASH, structured=structured)
            return await calls.call(tool, **arguments), calls

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "command", "shown"),
    [
        (Shell, ["sh", "-c", "echo hi; exit 3"], "sh -c 'echo hi; exit 3'"),
        (Shell, "echo hi; exit 3", "/bin/bash -lc 'echo hi; exit 3'"),
        (ShellCommand, "echo hi; exit 3", "/bin/bash -lc 'echo hi; exit 3'"),
        (LocalShell, ["sh", "-c", "echo hi; exit 3"], "sh -c 'echo hi; exit 3'"),
    ],
)
def test_every_spelling_of_a_command_runs(
    kind: type[Shell | ShellCommand | LocalShell],
    command: Any,
    shown: str,
    tmp_path: Path,
) -> None:
    output, calls = _call(kind, tmp_path, command=command)
    assert re.fullmatch(f"Exit code: 3\n{_WALL}Output:\nhi\n", output.text)
    assert (output.success, output.error_code) == (False, None)
    (completed,) = calls.completed()
    assert (completed.command, completed.exit_code, completed.status) == (
        shown,
        3,
        "failed",
    )


def test_a_command_line_can_run_without_the_login_files(tmp_path: Path) -> None:
    _, calls = _call(ShellCommand, tmp_path, command="true", login=False)
    assert calls.started()[0].command == "/bin/bash -c true"


def test_the_structured_form_is_json(tmp_path: Path) -> None:
    output, _ = _call(Shell, tmp_path, structured=True, command=["echo", "é"])
    assert re.fullmatch(
        r'\{"output":"é\\n","metadata":\{"exit_code":0,"duration_seconds":\d+\.\d\}\}',
        output.text,
    )


@pytest.mark.parametrize(
    ("duration_s", "shown"),
    [(0.04, "0"), (0.05001, "0.1"), (0.6, "0.6"), (9.99, "10"), (3600, "3600")],
)
def test_wall_time_is_rounded(duration_s: float, shown: str) -> None:
    text = command_report(0, duration_s, "")
    assert text == f"Exit code: 0\nWall time: {shown} seconds\nOutput:\n"


def test_stdin_is_at_its_end(tmp_path: Path) -> None:
    output, _ = _call(Shell, tmp_path, command=["cat"])
    assert re.fullmatch(f"Exit code: 0\n{_WALL}Output:\n", output.text)


@pytest.mark.parametrize("time_out", [{"timeout_ms": 300}, {"timeout": 300}])
def test_a_time_out_kills_what_the_command_started(
    time_out: dict[str, Any], tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"trap '' TERM; echo begun; {lifeline.hold} sleep 1000 & sleep 1000"
        started = time.monotonic()
        output, calls = _call(ShellCommand, tmp_path, command=script, **time_out)
        assert time.monotonic() - started < 10
        lifeline.wait_until_up()
        lifeline.wait_until_dead()
    assert re.fullmatch(
        rf"Exit code: 124\n{_WALL}Output:\ncommand timed out after \d+ milliseconds\nbegun\n",
        output.text,
    )
    assert (output.success, output.error_code) == (False, None)
    (completed,) = calls.completed()
    assert (completed.exit_code, completed.status) == (124, "failed")


def test_a_structured_time_out_has_its_exit_code(tmp_path: Path) -> None:
    output, _ = _call(
        Shell, tmp_path, structured=True, command=["sleep", "1000"], timeout_ms=50
    )
    result = json.loads(output.text)
    assert result["metadata"]["exit_code"] == 124
    assert re.fullmatch(r"command timed out after \d+ milliseconds\n", result["output"])


def test_long_output_tells_its_lines(tmp_path: Path) -> None:
    output, _ = _call(Shell, tmp_path, command=["seq", "20000"])
    head, _, body = output.text.partition("Output:\n")
    assert re.fullmatch(f"Exit code: 0\n{_WALL}Total output lines: 20000\n", head)
    assert body.startswith("1\n2\n")
    assert "…17224 tokens truncated…" in body


def test_a_background_child_does_not_hold_up_the_result(tmp_path: Path) -> None:
    started = time.monotonic()
    output, _ = _call(ShellCommand, tmp_path, command="sleep 1000 & echo started")
    assert output.text.endswith("Output:\nstarted\n")
    assert time.monotonic() - started < 10


def test_an_empty_argv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"^command args are empty$"):
        _call(Shell, tmp_path, command=[])


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as failure:
        _call(Shell, tmp_path, command=["no-such-program"])
    assert (failure.value.code, str(failure.value)) == (
        "ENOENT",
        "cannot run 'no-such-program': No such file or directory",
    )


def test_a_cancelled_call_leaves_nothing_running(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> None:
        async with tool_calls(tmp_path) as calls:
            tool = ShellCommand(calls.runner(), _BASH)
            script = f"{lifeline.hold} sleep 1000 & sleep 1000"
            call = asyncio.ensure_future(calls.call(tool, command=script))
            await asyncio.to_thread(lifeline.wait_until_up)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert [item.status for item in calls.completed()] == ["failed"]
            lifeline.wait_until_dead()

    with Lifeline(tmp_path) as lifeline:
        asyncio.run(main(lifeline))
