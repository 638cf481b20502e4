"""Also tests `tools/shell/command.py`."""

import asyncio
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import (
    CommandInBackground,
    CommandOutputDelta,
    Event,
    ItemCompleted,
    ItemStarted,
)
from codex_py.protocol.tools import ToolOutput
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.shell.exec_command import ExecCommand, WriteStdin
from codex_py.tools.shell.shell import Shell
from tests.sandbox.local_backends import BACKENDS
from tests.support.lifeline import Lifeline
from tests.support.tool_calls import EchoSandbox, ToolCalls, tool_calls

_BASH = "/bin/bash"
_SESSION = re.compile(r"Process running with session ID (\d+)\n")


def _call(cwd: Path, **arguments: Any) -> tuple[ToolOutput, ToolCalls]:
    async def main() -> tuple[ToolOutput, ToolCalls]:
        async with tool_calls(cwd) as calls:
            return await calls.call(
                ExecCommand(calls.runner(), _BASH), **arguments
            ), calls

    return asyncio.run(main())


def _failure(cwd: Path, **arguments: Any) -> tuple[ToolError, ToolCalls]:
    async def main() -> tuple[ToolError, ToolCalls]:
        async with tool_calls(cwd) as calls:
            with pytest.raises(ToolError) as failure:
                await calls.call(ExecCommand(calls.runner(), _BASH), **arguments)
            return failure.value, calls

    return asyncio.run(main())


def _body(output: ToolOutput) -> str:
    return output.text.partition("\nOutput:\n")[2]


def _session_id(output: ToolOutput) -> int:
    match = _SESSION.search(output.text)
    assert match is not None, output.text
    return int(match[1])


def test_the_result_has_the_header_of_codex(tmp_path: Path) -> None:
    output, _ = _call(tmp_path, cmd="echo hi; echo err >&2; exit 3")
    assert re.fullmatch(
        r"Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess exited with code 3\n"
        r"Original token count: 2\nOutput:\nhi\nerr\n",
        output.text,
    )
    assert (output.success, output.error_code) == (False, None)


def test_no_output_still_has_its_heading(tmp_path: Path) -> None:
    output, _ = _call(tmp_path, cmd="kill -9 $$")
    assert output.text.endswith(
        "Process exited with code 137\nOriginal token count: 0\nOutput:\n"
    )


def test_a_command_is_an_item_that_starts_and_ends(tmp_path: Path) -> None:
    _, calls = _call(tmp_path, cmd="echo hi; exit 2")
    started = CommandExecution(
        id="item_0", command="/bin/bash -lc 'echo hi; exit 2'", cwd=str(tmp_path)
    )
    assert calls.started() == [started]
    (completed,) = calls.completed()
    assert completed == replace(
        started,
        aggregated_output="hi\n",
        exit_code=2,
        status="failed",
        duration_ms=completed.duration_ms,
    )


def test_workdir_is_relative_to_the_turn(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert _body(_call(tmp_path, cmd="pwd", workdir="sub")[0]) == f"{tmp_path}/sub\n"
    assert _body(_call(tmp_path, cmd="pwd", workdir="/")[0]) == "/\n"


def test_nulls_and_unknown_arguments_are_as_good_as_absent(tmp_path: Path) -> None:
    output, _ = _call(
        tmp_path, cmd="echo hi", workdir=None, tty=None, login=None, mood="good"
    )
    assert _body(output) == "hi\n"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"login": False}, "/bin/bash -c 'echo $0'"),
        ({"shell": "/bin/sh"}, "/bin/sh -lc 'echo $0'"),
        ({"shell": "no-such-shell"}, "/bin/sh -lc 'echo $0'"),
        ({"shell": "./sh"}, "/bin/sh -lc 'echo $0'"),
        ({"shell": "/tmp/x/sh"}, "/bin/sh -lc 'echo $0'"),
        ({"shell": "/tmp/x/bash"}, "/bin/bash -lc 'echo $0'"),
        ({"shell": "cat"}, "/bin/sh -lc 'echo $0'"),
    ],
)
def test_the_shell_can_be_chosen(
    arguments: dict[str, Any], command: str, tmp_path: Path
) -> None:
    output, calls = _call(tmp_path, cmd="echo $0", **arguments)
    assert calls.started()[0].command == command
    assert _body(output) == f"{command.split()[0]}\n"


def test_long_output_is_cut_for_the_model_alone(tmp_path: Path) -> None:
    output, calls = _call(tmp_path, cmd="seq 20000", max_output_tokens=100)
    text = "".join(f"{number}\n" for number in range(1, 20001))
    assert "\nOriginal token count: 27224\n" in output.text
    assert _body(output) == (
        "Warning: truncated output (original token count: 27224)\n"
        "Total output lines: 20000\n\n"
        f"{text[:200]}…27124 tokens truncated…{text[-200:]}"
    )
    assert calls.completed()[0].aggregated_output == text


def test_the_limit_of_the_turn_cannot_be_raised(tmp_path: Path) -> None:
    output, _ = _call(tmp_path, cmd="seq 20000", max_output_tokens=10**9)
    assert "…17224 tokens truncated…" in output.text


def test_of_very_long_output_a_mebibyte_is_kept(tmp_path: Path) -> None:
    output, calls = _call(tmp_path, cmd="yes | head -c 5000000")
    assert "\nOriginal token count: 1250000\n" in output.text
    assert "Total output lines: 2500000\n" in output.text
    aggregated = calls.completed()[0].aggregated_output
    assert "\n... 3951424 bytes (1975712 lines) omitted ...\n" in aggregated
    assert len(aggregated) < (1 << 20) + 100


def test_a_command_that_goes_on_is_polled_until_its_end(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            tool, stdin = ExecCommand(calls.runner(), _BASH), WriteStdin(calls.sessions)
            first = await calls.call(
                tool, cmd="echo one; read x <go; echo two", yield_time_ms=1
            )
            assert (first.success, calls.completed()) == (True, [])
            go.write_text("\n", encoding="utf-8")
            session_id = _session_id(first)
            second = await calls.call(stdin, session_id=session_id)
            assert "\nProcess exited with code 0\n" in second.text
            assert _body(first) + _body(second) == "one\ntwo\n"
            (completed,) = calls.completed()
            assert (completed.aggregated_output, completed.status) == (
                "one\ntwo\n",
                "completed",
            )
            with pytest.raises(ToolError) as gone:
                await calls.call(stdin, session_id=session_id)
            assert (
                str(gone.value)
                == f"write_stdin failed: Unknown process id {session_id}"
            )

    asyncio.run(main())


@pytest.mark.parametrize("tool", [ExecCommand, Shell])
def test_a_command_that_is_let_go_goes_on_as_a_session(
    tool: Any, tmp_path: Path
) -> None:
    line = "echo begun; read -r x <fifo; echo over"

    async def main() -> None:
        os.mkfifo(tmp_path / "fifo")
        async with tool_calls(tmp_path) as calls:

            def let_go(event: Event) -> None:
                if isinstance(event, CommandOutputDelta):
                    assert calls.sessions.let_go() == 1

            calls.on_event = let_go
            arguments = {"cmd": line, "yield_time_ms": 30_000}
            if tool is Shell:
                arguments = {"command": line, "timeout_ms": 30_000}
            output = await calls.call(tool(calls.runner(), _BASH), **arguments)
            assert _body(output) == "begun\n"
            assert [type(event) for event in calls.events[-1:]] == [CommandInBackground]
            # Nobody waits for it any more.
            assert calls.sessions.let_go() == 0
            (tmp_path / "fifo").write_text("x\n", encoding="utf-8")
            write = WriteStdin(calls.sessions)
            last = await calls.call(write, session_id=_session_id(output))
            assert (_body(last), last.success) == ("over\n", True)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_output_is_shown_live_while_the_command_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def main() -> list[Event]:
        async with tool_calls(tmp_path) as calls:
            shown = asyncio.Event()
            calls.on_event = lambda event: (
                shown.set() if isinstance(event, CommandOutputDelta) else None
            )
            tool = ExecCommand(calls.runner(), _BASH)
            call = asyncio.ensure_future(calls.call(tool, cmd="echo early; read x <go"))
            await asyncio.wait_for(shown.wait(), 20)
            go.write_text("\n", encoding="utf-8")
            await call
            return calls.events

    started, delta, completed = asyncio.run(main())
    assert isinstance(started, ItemStarted)
    assert delta == CommandOutputDelta("item_0", "early\n")
    assert isinstance(completed, ItemCompleted)


def test_the_last_output_follows_what_was_shown_live(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def main() -> list[Event]:
        async with tool_calls(tmp_path) as calls:
            shown = asyncio.Event()
            calls.on_event = lambda event: (
                shown.set() if isinstance(event, CommandOutputDelta) else None
            )
            tool = ExecCommand(calls.runner(), _BASH)
            line = "echo early; read x <go; echo late"
            call = asyncio.ensure_future(calls.call(tool, cmd=line))
            await asyncio.wait_for(shown.wait(), 20)
            go.write_text("\n", encoding="utf-8")
            await call
            return calls.events

    started, *deltas, completed = asyncio.run(main())
    assert isinstance(started, ItemStarted)
    assert deltas == [
        CommandOutputDelta("item_0", "early\n"),
        CommandOutputDelta("item_0", "late\n"),
    ]
    assert isinstance(completed, ItemCompleted)


def test_text_cannot_be_written_without_a_terminal(tmp_path: Path) -> None:
    async def main() -> str:
        async with tool_calls(tmp_path) as calls:
            tool, stdin = ExecCommand(calls.runner(), _BASH), WriteStdin(calls.sessions)
            output = await calls.call(tool, cmd="sleep 1000", yield_time_ms=1)
            with pytest.raises(ToolError) as failure:
                await calls.call(stdin, session_id=_session_id(output), chars="x\n")
            return str(failure.value)

    assert asyncio.run(main()) == (
        "write_stdin failed: stdin is closed for this session;"
        " rerun exec_command with tty=true to keep stdin open"
    )


async def _start_up(
    calls: ToolCalls, script: str, sandbox: PlatformSandbox | None = None
) -> int:
    """Start a command that prints `up`; the id of its session."""
    up = asyncio.Event()
    calls.on_event = lambda event: (
        up.set()
        if isinstance(event, CommandOutputDelta) and "up" in event.delta
        else None
    )
    tool = ExecCommand(calls.runner(sandbox), _BASH)
    output = await calls.call(tool, cmd=script, login=False, yield_time_ms=1)
    async with asyncio.timeout(60):
        await up.wait()
    return _session_id(output)


@pytest.mark.parametrize(
    "backend", [None, *BACKENDS], ids=lambda backend: getattr(backend, "name", "none")
)
@pytest.mark.parametrize(
    ("script", "chars", "code", "said"),
    [
        ("echo up; exec sleep 1000", "\x03", 130, ""),
        ("echo up; sleep 1000; echo over", "\x03", 130, ""),
        ("trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done", "\x03", 5, "caught"),
        ("trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done", "q\n\x03", 5, "caught"),
        ("echo up; sleep 1000 | cat", "\x03\x03\n", 130, ""),
        ("python3 -c 'import time; print(\"up\", flush=True); time.sleep(1000)'", "\x03", 130, "KeyboardInterrupt"),
    ],
)  # fmt: skip
def test_a_command_without_a_terminal_is_interrupted(
    tmp_path: Path,
    backend: Backend | None,
    script: str,
    chars: str,
    code: int,
    said: str,
) -> None:
    async def main() -> str:
        async with tool_calls(tmp_path) as calls:
            backends = [] if backend is None else [backend]
            sandbox = (
                PlatformSandbox(dict(os.environ), backends=backends)
                if backends
                else None
            )
            session_id = await _start_up(calls, script, sandbox)
            stdin = WriteStdin(calls.sessions)
            output = await calls.call(
                stdin, session_id=session_id, chars=chars, yield_time_ms=30_000
            )
            if sandbox is not None:
                sandbox.release()
            return output.text

    text = asyncio.run(main())
    if getattr(backend, "name", "") == "bwrap":
        # Its monitor dies of the signal too, and takes the command with it.
        code, said = 130, ""
    assert f"\nProcess exited with code {code}\n" in text
    assert said in text


def test_a_command_that_ignores_the_interrupt_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            session_id = await _start_up(calls, "trap '' INT; echo up; sleep 1000")
            stdin = WriteStdin(calls.sessions)
            output = await calls.call(
                stdin, session_id=session_id, chars="\x03", yield_time_ms=300
            )
            assert _session_id(output) == session_id

    asyncio.run(main())


@pytest.mark.parametrize("chars", ["\x03y", "y", "\x04", "\x1c", "\n"])
def test_input_beside_an_interrupt_is_refused_without_a_terminal(
    tmp_path: Path, chars: str
) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            session_id = await _start_up(calls, "echo up; sleep 1000")
            stdin = WriteStdin(calls.sessions)
            with pytest.raises(ToolError, match="stdin is closed"):
                await calls.call(stdin, session_id=session_id, chars=chars)
            output = await calls.call(stdin, session_id=session_id, chars="\x03")
            assert "\nProcess exited with code 130\n" in output.text

    asyncio.run(main())


def test_an_interrupt_of_a_command_that_has_ended_tells_its_own_exit_code(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            session_id = await _start_up(calls, "echo up; sleep 1; exit 4")
            process = calls.sessions.find(session_id)
            assert process is not None
            assert await process.wait(60)
            stdin = WriteStdin(calls.sessions)
            output = await calls.call(stdin, session_id=session_id, chars="\x03")
            assert "\nProcess exited with code 4\n" in output.text

    asyncio.run(main())


def test_python_can_be_used_interactively(tmp_path: Path) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            tool, stdin = ExecCommand(calls.runner(), _BASH), WriteStdin(calls.sessions)
            output = await calls.call(
                tool, cmd="exec python3 -q", tty=True, yield_time_ms=1
            )
            session_id = _session_id(output)
            printed = _body(output)
            for line, answer in [("6 * 7\n", "42\r\n"), ("'a' + 'b'\n", "'ab'\r\n")]:
                output = await calls.call(stdin, session_id=session_id, chars=line)
                printed += _body(output)
                while answer not in printed:
                    output = await calls.call(stdin, session_id=session_id, chars="\n")
                    printed += _body(output)
            output = await calls.call(
                stdin, session_id=session_id, chars="\x04", yield_time_ms=20_000
            )
            assert "\nProcess exited with code 0\n" in output.text

    asyncio.run(main())


def test_a_terminal_echoes_and_interrupts(tmp_path: Path) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            tool, stdin = ExecCommand(calls.runner(), _BASH), WriteStdin(calls.sessions)
            output = await calls.call(tool, cmd="exec cat", tty=True, yield_time_ms=1)
            session_id = _session_id(output)
            printed = _body(output)
            chars = "hé\n"
            while printed.count("hé\r\n") < 2:
                output = await calls.call(stdin, session_id=session_id, chars=chars)
                printed += _body(output)
                # Unlike a call that writes nothing, one that does is short.
                chars = "\n"
            assert printed.startswith("hé\r\nhé\r\n")
            ended = await calls.call(
                stdin, session_id=session_id, chars="\x03", yield_time_ms=20_000
            )
            assert "\nProcess exited with code 130\n" in ended.text
            assert [item.exit_code for item in calls.completed()] == [130]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("chars", "asked_ms", "max_poll_ms", "wait_ms"),
    [("", 1, 300, 300), ("", 10**9, 400, 400), ("\n", 1, 300_000, 250)],
)
def test_the_wait_of_a_call_is_bounded(
    chars: str, asked_ms: int, max_poll_ms: int, wait_ms: int, tmp_path: Path
) -> None:
    async def main() -> float:
        async with tool_calls(tmp_path) as calls:
            tool = ExecCommand(calls.runner(), _BASH)
            stdin = WriteStdin(calls.sessions, max_poll_ms=max_poll_ms)
            output = await calls.call(
                tool, cmd="exec sleep 1000", tty=True, yield_time_ms=-5
            )
            output = await calls.call(
                stdin,
                session_id=_session_id(output),
                chars=chars,
                yield_time_ms=asked_ms,
            )
            match = re.search(r"Wall time: (\S+) seconds", output.text)
            assert match is not None
            return float(match[1]) * 1000

    assert wait_ms - 5 <= asyncio.run(main()) < wait_ms + 2_000


def test_a_cancelled_call_leaves_nothing_running(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> ToolCalls:
        async with tool_calls(tmp_path) as calls:
            tool = ExecCommand(calls.runner(), _BASH)
            script = f"{lifeline.hold} sleep 1000 & sleep 1000"
            call = asyncio.ensure_future(calls.call(tool, cmd=script))
            await asyncio.to_thread(lifeline.wait_until_up)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            # Completed by now, and not at the end of the session.
            assert [item.exit_code for item in calls.completed()] == [137]
            lifeline.wait_until_dead()
            return calls

    with Lifeline(tmp_path) as lifeline:
        asyncio.run(main(lifeline))


def test_items_of_commands_that_outlive_their_call_are_completed(
    tmp_path: Path,
) -> None:
    async def main(lifeline: Lifeline) -> ToolCalls:
        async with tool_calls(tmp_path) as calls:
            tool = ExecCommand(calls.runner(), _BASH)
            script = f"echo up; {lifeline.hold} exec sleep 1000"
            output = await calls.call(tool, cmd=script, yield_time_ms=1)
            assert _session_id(output)
            lifeline.wait_until_up()
            assert calls.completed() == []
        return calls

    with Lifeline(tmp_path) as lifeline:
        (completed,) = asyncio.run(main(lifeline)).completed()
    assert (completed.aggregated_output, completed.exit_code, completed.status) == (
        "up\n",
        143,
        "failed",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (
            {"cmd": "true", "workdir": "gone"},
            "ENOENT",
            "working directory '{cwd}/gone': No such file",
        ),
        (
            {"cmd": "true", "workdir": "file"},
            "ENOTDIR",
            "working directory '{cwd}/file': Not a dir",
        ),
        (
            {"cmd": "x" * 3_000_000},
            "E2BIG",
            "cannot run '/bin/bash': Argument list too long",
        ),
        ({"cmd": "a\0b"}, "EINVAL", "cannot run the command: embedded null byte"),
    ],
)
@pytest.mark.parametrize("tty", [False, True])
def test_a_command_that_cannot_start_says_why(
    arguments: dict[str, Any], code: str, text: str, tty: bool, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    failure, calls = _failure(tmp_path, tty=tty, **arguments)
    assert failure.code == code
    assert str(failure).startswith(text.format(cwd=tmp_path))
    (completed,) = calls.completed()
    assert (completed.exit_code, completed.status, completed.aggregated_output) == (
        -1,
        "failed",
        str(failure),
    )


def test_a_patch_is_applied_and_not_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            calls.sandbox_policy = SandboxPolicy(mode="danger-full-access")
            tool = ExecCommand(calls.runner(), _BASH)
            text = "*** Begin Patch\n*** Add File: x\n+x\n*** End Patch\n"
            output = await calls.call(
                tool, cmd=f"cd sub && apply_patch <<'EOF'\n{text}EOF\n", workdir="deep"
            )
            assert (tmp_path / "deep" / "sub" / "x").read_bytes() == b"x\n"
            header = (
                r"Wall time: \d\.\d{4} seconds\nOutput:\nExit code: 0\nWall time: \d"
            )
            assert re.match(header, output.text)
            assert (output.success, output.error_code) == (True, None)
            assert calls.started() == []

    asyncio.run(main())


def test_commands_run_in_the_sandbox_and_are_shown_without_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with tool_calls(tmp_path) as calls:
            tool = ExecCommand(calls.runner(EchoSandbox()), _BASH)
            output = await calls.call(tool, cmd="pwd")
            assert _body(output) == f"read-only {tmp_path} /bin/bash -lc pwd\n"
            assert calls.started()[0].command == "/bin/bash -lc pwd"

    asyncio.run(main())


def test_arguments_must_have_their_types() -> None:
    with pytest.raises(ValueError, match="cmd"):
        ExecCommand.params.model_validate_json(json.dumps({"cmd": 5}))
