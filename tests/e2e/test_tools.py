"""What calls do to the machine, and what the model is told of them, through the real program.

Tests `app/session_tools.py` and `app/tool_parts.py`.
"""

import base64
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_local_shell_call,
    ev_message,
)
from tests.support.lifeline import Lifeline
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

Event = dict[str, Any]
DONE = [*ev_message("done"), ev_completed()]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
ADD = "*** Begin Patch\n*** Add File: {0}\n+text\n*** End Patch"


def answered(
    place: Workplace,
    *calls: list[Event],
    args: tuple[str, ...] = (),
    model: str = "gpt-5.5",
) -> tuple[Outcome, Any]:
    """Have the calls made in one response; the run, and the output of the last call."""
    events = [event for call in calls for event in call]
    with ScriptedServer([[*events, ev_completed()], DONE]) as server:
        outcome = place.run(server, "-m", model, *args, "go")
        assert (outcome.code, outcome.messages) == (0, ["done"])
        return outcome, server.requests[1].input[-1]["output"]


def run(
    place: Workplace, name: str, arguments: Any, *, model: str = "gpt-5.5"
) -> tuple[Outcome, Any]:
    return answered(place, ev_function_call("call_1", name, arguments), model=model)


def commands(outcome: Outcome) -> list[tuple[str, str, int | None]]:
    """Output, status and exit code of each command that was shown."""
    return [
        (item["aggregated_output"], item["status"], item["exit_code"])
        for item in outcome.items
        if item["type"] == "command_execution"
    ]


def report(output: str, state: str, tokens: int, text: str) -> None:
    """The result of `exec_command` and `write_stdin`, as Codex 0.98 and newer give it."""
    pattern = (
        r"Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\n"
        + re.escape(state)
        + rf"\nOriginal token count: {tokens}\nOutput:\n"
    )
    match = re.match(pattern, output)
    assert match, output[:300]
    assert output[match.end() :] == text


@pytest.mark.parametrize(
    ("cmd", "code", "printed"),
    [
        ("echo hi", 0, "hi\n"),
        ("exit 3", 3, ""),
        ("echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"),
        ("no-such-program-here", 127, None),
        ("kill -9 $$", 137, ""),
        ("kill -SEGV $$", 139, ""),
        ("cat; echo read", 0, "read\n"),
        ("read x || echo eof", 0, "eof\n"),
        ("printf 'a\\xff\\xfeb'", 0, "a\ufffd\ufffdb"),
        ("printf 'a\\000b\\033[31m'", 0, "a\0b\x1b[31m"),
        ("printf grüße", 0, "grüße"),
    ],
)
def test_a_command_is_answered_with_its_code_and_output(
    place: Workplace, cmd: str, code: int, printed: str | None
) -> None:
    outcome, output = run(place, "exec_command", {"cmd": cmd})
    ((shown, status, exit_code),) = commands(outcome)
    assert (status, exit_code) == ("completed" if code == 0 else "failed", code)
    size = len(printed.encode()) if printed is not None else len(shown)
    # Replacement characters are three bytes each, of one that was printed.
    size -= 2 * (printed or "").count("\ufffd")
    report(output, f"Process exited with code {code}", -(-size // 4), shown)
    assert printed in (None, shown)


def test_the_forms_of_the_classic_shells(place: Workplace) -> None:
    argv = {"command": ["sh", "-c", "echo hi; exit 3"]}
    pattern = r"Exit code: 3\nWall time: \d+(\.\d)? seconds\nOutput:\nhi\n"
    assert re.fullmatch(pattern, run(place, "shell", argv)[1])
    line = {"command": "echo hi; exit 3"}
    outcome, output = run(place, "shell_command", line)
    assert re.fullmatch(pattern, output)
    started = [
        e["item"]["command"] for e in outcome.events if e["type"] == "item.started"
    ]
    assert started == ["/bin/bash -lc 'echo hi; exit 3'"]
    assert re.fullmatch(pattern, run(place, "shell", line)[1])
    local = ev_local_shell_call("call_1", ["sh", "-c", "echo hi; exit 3"])
    assert re.fullmatch(pattern, answered(place, local)[1])


def test_a_model_without_freeform_patches_is_answered_with_json(
    place: Workplace,
) -> None:
    argv = {"command": ["sh", "-c", "echo hi; exit 3"]}
    _, output = run(place, "shell", argv, model="some-unknown-model")
    result = json.loads(output)
    assert result == {
        "output": "hi\n",
        "metadata": {
            "exit_code": 3,
            "duration_seconds": result["metadata"]["duration_seconds"],
        },
    }


@pytest.mark.parametrize("name", ["shell", "container.exec", "functions.shell"])
def test_a_shell_goes_by_several_names(place: Workplace, name: str) -> None:
    _, output = run(place, name, {"command": ["echo", "hi"]})
    assert output.endswith("\nOutput:\nhi\n")


def test_a_namespace_is_no_part_of_our_own_names(place: Workplace) -> None:
    call = ev_function_call(
        "call_1", "exec_command", {"cmd": "echo hi"}, namespace="functions"
    )
    assert answered(place, call)[1].endswith("\nhi\n")


def test_the_oldest_form_of_a_local_shell_call_is_answered_under_its_id(
    place: Workplace,
) -> None:
    call = ev_local_shell_call("call_1", ["echo", "hi"])
    for event in call:
        del event["item"]["call_id"]
    assert answered(place, call)[1].endswith("\nOutput:\nhi\n")


INVALID: dict[str, tuple[str, Any, str | None]] = {
    "no JSON": ("exec_command", "{cmd: 1}", "double quotes: line 1 column 2"),
    "cut JSON": (
        "exec_command",
        '{"cmd": "ec',
        "Unterminated string starting at: line 1 column 9",
    ),
    "no arguments": ("exec_command", "", "missing field `cmd`"),
    "missing field": ("exec_command", {}, "missing field `cmd`"),
    "wrong type": ("exec_command", {"cmd": 5}, "invalid value 5 for `cmd`"),
    "no object": ("exec_command", "[1]", "invalid value [1] for `arguments`"),
    "null": ("exec_command", "null", "invalid value null for `arguments`"),
    "wrong number": (
        "exec_command",
        {"cmd": "x", "yield_time_ms": "soon"},
        "`yield_time_ms`",
    ),
    "huge number": ("exec_command", {"cmd": "x", "yield_time_ms": 1e400}, "parse"),
    "argv of numbers": ("shell", {"command": [1]}, "`command"),
    "no argv": ("shell", {"command": []}, None),
    "a NUL in a path": (
        "shell_command",
        {"command": "pwd", "workdir": "a\0b"},
        "`workdir`",
    ),
    "negative time": ("shell", {"command": ["true"], "timeout_ms": -1}, "`timeout_ms`"),
    "bad plan": (
        "update_plan",
        {"plan": [{"step": "a", "status": "maybe"}]},
        "`plan.0.status`",
    ),
    "no path": ("view_image", {}, "missing field `path`"),
    "no session": ("write_stdin", {"chars": "x"}, "missing field `session_id`"),
    "deep": ("exec_command", '{"cmd":' + "[" * 50_000 + "]" * 50_000 + "}", "parse"),
}


@pytest.mark.parametrize(
    ("name", "arguments", "words"), INVALID.values(), ids=INVALID.keys()
)
def test_arguments_that_are_wrong_are_told_to_the_model(
    place: Workplace, name: str, arguments: Any, words: str | None
) -> None:
    outcome, output = run(place, name, arguments)
    start = "[ERROR:InvalidArgs] "
    start += (
        "command args are empty"
        if words is None
        else "failed to parse function arguments: "
    )
    assert output.startswith(start)
    assert (words or "") in output
    failed, _ = outcome.items
    assert failed == {
        "id": "item_0",
        "type": "error",
        "message": f"{name} failed: {output.removeprefix('[ERROR:InvalidArgs] ')}",
        "tool": name,
        "call_id": "call_1",
        "code": "InvalidArgs",
    }


def test_a_local_shell_call_can_be_wrong_too(place: Workplace) -> None:
    call = ev_local_shell_call("call_1", ["true"], timeout_ms=-1)
    _, output = answered(place, call)
    assert output.startswith("[ERROR:InvalidArgs] failed to parse function arguments: ")


def test_a_time_out_may_be_any_number(place: Workplace) -> None:
    _, output = run(place, "shell", {"command": ["echo", "hi"], "timeout_ms": 10**400})
    assert output.endswith("\nOutput:\nhi\n")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (ev_function_call("c", "no_such_tool", {}), "unsupported call: no_such_tool"),
        (ev_function_call("c", "", {}), "unsupported call: "),
        (
            ev_custom_tool_call("c", "no_such_tool", "x"),
            "unsupported custom tool call: no_such_tool",
        ),
        (
            ev_function_call("c", "mcp__srv__tool", {}),
            "unsupported call: mcp__srv__tool (no connected MCP server 'srv' has a tool 'tool')",
        ),
        (
            ev_function_call("c", "tool", {}, namespace="mcp__srv"),
            "unsupported call: mcp__srv__tool (no connected MCP server 'srv' has a tool 'tool')",
        ),
        (ev_function_call("c", "mcp__", {}), "unsupported call: mcp__"),
        (ev_function_call("c", "x" * 300, {}), "unsupported call: " + "x" * 300),
    ],
)
def test_a_tool_that_is_not_there_is_told_to_the_model(
    place: Workplace, call: list[Event], answer: str
) -> None:
    outcome, output = answered(place, call)
    assert output == f"[ERROR:UnknownTool] {answer}"
    failed, _ = outcome.items
    assert (failed["type"], failed["call_id"], failed["code"]) == (
        "error",
        "c",
        "UnknownTool",
    )
    assert failed["message"].endswith(f" failed: {answer}")


def test_a_time_out_kills_the_whole_group(place: Workplace, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        script = f"{line.hold} (setsid sleep 600 &) ; sleep 600 & echo begun; sleep 600"
        began = time.monotonic()
        outcome, output = run(
            place, "shell_command", {"command": script, "timeout_ms": 2000}
        )
        line.wait_until_dead()
        assert time.monotonic() - began < 40
    assert re.fullmatch(
        r"Exit code: 124\nWall time: [\d.]+ seconds\nOutput:\n"
        r"command timed out after \d+ milliseconds\nbegun\n",
        output,
    )
    assert commands(outcome) == [("begun\n", "failed", 124)]


def test_a_child_in_the_background_does_not_hold_the_answer_up(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        began = time.monotonic()
        _, output = run(
            place, "exec_command", {"cmd": f"{line.hold} sleep 600 & echo started"}
        )
        assert time.monotonic() - began < 40
        report(output, "Process exited with code 0", 2, "started\n")
        # It ends with the program.
        line.wait_until_dead()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("exec_command", {"cmd": "true", "workdir": "nowhere"}),
        ("shell_command", {"command": "true", "workdir": "/nowhere/at/all"}),
        ("shell", {"command": ["true"], "workdir": "file"}),
        ("shell", {"command": ["/no/such/program"]}),
        ("shell", {"command": ["a\0b"]}),
        ("exec_command", {"cmd": "echo a\0b"}),
        ("shell", {"command": ["echo", "x" * 3_000_000]}),
    ],
)
def test_a_command_that_cannot_start_is_a_failed_item(
    place: Workplace, name: str, arguments: Event
) -> None:
    (place.cwd / "file").write_text("", encoding="utf-8")
    outcome, output = run(place, name, arguments)
    ((shown, status, code),) = commands(outcome)
    assert (status, code) == ("failed", -1)
    assert output == f"[ERROR:{output[7 : output.index(']')]}] {shown}"


def test_much_output_is_cut_for_the_model_and_kept_within_bounds(
    place: Workplace,
) -> None:
    cmd = "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end"
    outcome, output = run(place, "exec_command", {"cmd": cmd})
    ((shown, status, code),) = commands(outcome)
    assert (status, code) == ("completed", 0)
    assert len(shown) < 1_100_000
    assert shown.endswith("x\nend\n")
    assert (
        "Original token count: 12500002\nOutput:\nWarning: truncated output" in output
    )
    assert len(output) < 41_000


def test_max_output_tokens_bounds_one_answer(place: Workplace) -> None:
    arguments = {"cmd": "seq 1000", "max_output_tokens": 10}
    _, output = run(place, "exec_command", arguments)
    cut = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10…964 tokens truncated…96\n997\n998\n999\n1000\n"
    warning = "Warning: truncated output (original token count: 974)\nTotal output lines: 1000\n\n"
    report(output, "Process exited with code 0", 974, warning + cut)


def test_calls_of_one_response_run_side_by_side(place: Workplace) -> None:
    calls = [
        ev_function_call(
            f"c{n}", "exec_command", {"cmd": f"sleep 0.5; echo {n}"}, index=n
        )
        for n in range(8)
    ]
    with ScriptedServer(
        [[e for call in calls for e in call] + [ev_completed()], DONE]
    ) as server:
        outcome = place.run(server)
        first, second = server.requests
    assert outcome.code == 0
    # One after another they would take four seconds.
    assert second.received_s - first.received_s < 3
    outputs = [item for item in second.input if item["type"] == "function_call_output"]
    assert [(o["call_id"], o["output"][-2:]) for o in outputs] == [
        (f"c{n}", f"{n}\n") for n in range(8)
    ]
    assert len({item["id"] for item in outcome.items}) == 9


def session_of(output: str) -> int:
    match = re.search(r"Process running with session ID (\d+)\n", output)
    assert match, output
    return int(match[1])


def typing(request: RecordedRequest, chars: str, yield_time_ms: int) -> Event:
    """Arguments of `write_stdin` for the session of the call `c1`."""
    number = session_of(request.output("c1"))
    return {"session_id": number, "chars": chars, "yield_time_ms": yield_time_ms}


def test_a_terminal_can_be_typed_into_over_several_calls(place: Workplace) -> None:
    start = {"cmd": "read a; echo got $a; tty -s && echo tty; read b", "tty": True}
    with ScriptedServer() as server:
        server.add(
            [
                *ev_function_call(
                    "c1", "exec_command", {**start, "yield_time_ms": 250}
                ),
                ev_completed(),
            ],
            lambda request: [
                *ev_function_call(
                    "c2",
                    "write_stdin",
                    typing(request, "word\n", 1000),
                ),
                ev_completed(),
            ],
            lambda request: [
                *ev_function_call(
                    "c3",
                    "write_stdin",
                    typing(request, "\u0003", 9000),
                ),
                ev_completed(),
            ],
            lambda request: [
                *ev_function_call(
                    "c4",
                    "write_stdin",
                    {"session_id": session_of(request.output("c1"))},
                ),
                ev_completed(),
            ],
            DONE,
        )
        outcome = place.run(server)
        last = server.requests[-1]
    assert outcome.code == 0
    number = session_of(last.output("c1"))
    report(last.output("c1"), f"Process running with session ID {number}", 0, "")
    text = "word\r\ngot word\r\ntty\r\n"
    report(last.output("c2"), f"Process running with session ID {number}", 6, text)
    report(last.output("c3"), "Process exited with code 130", 1, "^C")
    unknown = f"[ERROR:ESRCH] write_stdin failed: Unknown process id {number}"
    assert last.output("c4") == unknown
    ((shown, status, code),) = commands(outcome)
    assert (shown, status, code) == (f"{text}^C", "failed", 130)


def test_typing_needs_a_terminal(place: Workplace) -> None:
    with ScriptedServer() as server:
        start = {"cmd": "sleep 600", "yield_time_ms": 250}
        server.add(
            [*ev_function_call("c1", "exec_command", start), ev_completed()],
            lambda request: [
                *ev_function_call(
                    "c2",
                    "write_stdin",
                    {"session_id": session_of(request.output("c1")), "chars": "x"},
                ),
                ev_completed(),
            ],
            DONE,
        )
        outcome = place.run(server)
        output = server.requests[-1].output("c2")
    assert output == (
        "[ERROR:EPIPE] write_stdin failed: stdin is closed for this session;"
        " rerun exec_command with tty=true to keep stdin open"
    )
    # What still ran at the end of the turn was ended, and its item with it.
    ((_, status, code),) = commands(outcome)
    assert (status, code) == ("failed", 143)
    assert outcome.types[-2:] == ["item.completed", "turn.completed"]


def test_a_session_prints_on_between_calls(place: Workplace) -> None:
    cmd = "echo one; sleep 0.6; echo two"
    with ScriptedServer() as server:
        server.add(
            [
                *ev_function_call(
                    "c1", "exec_command", {"cmd": cmd, "yield_time_ms": 250}
                ),
                ev_completed(),
            ],
            lambda request: [
                *ev_function_call(
                    "c2",
                    "write_stdin",
                    {"session_id": session_of(request.output("c1"))},
                ),
                ev_completed(),
            ],
            DONE,
        )
        outcome = place.run(server)
        last = server.requests[-1]
    session_of(last.output("c1"))
    printed = [last.output(name).partition("Output:\n")[2] for name in ("c1", "c2")]
    # On a busy machine the first line can come late.
    assert "".join(printed) == "one\ntwo\n"
    assert commands(outcome) == [("one\ntwo\n", "completed", 0)]


PATCH_RESULT = (
    r"Exit code: 0\nWall time: \d(\.\d)? seconds\nOutput:\n"
    r"Success\. Updated the following files:\nA new\.txt\n"
)


def heredoc(patch: str) -> str:
    return f"apply_patch <<'EOF'\n{patch}\nEOF\n"


@pytest.mark.parametrize(
    "call",
    [
        ev_custom_tool_call("c", "apply_patch", ADD.format("new.txt")),
        ev_custom_tool_call("c", "apply_patch", heredoc(ADD.format("new.txt"))[12:]),
        ev_function_call("c", "apply_patch", {"input": ADD.format("new.txt")}),
        ev_function_call("c", "apply_patch", ADD.format("new.txt")),
        ev_function_call(
            "c", "shell", {"command": ["apply_patch", ADD.format("new.txt")]}
        ),
        ev_function_call(
            "c", "shell", {"command": ["bash", "-lc", heredoc(ADD.format("new.txt"))]}
        ),
        ev_function_call(
            "c", "shell_command", {"command": heredoc(ADD.format("new.txt"))}
        ),
        ev_local_shell_call("c", ["bash", "-lc", heredoc(ADD.format("new.txt"))]),
    ],
)
def test_a_patch_in_any_form_is_applied_as_one(
    place: Workplace, call: list[Event]
) -> None:
    outcome, output = answered(place, call)
    assert re.fullmatch(PATCH_RESULT, output)
    assert (place.cwd / "new.txt").read_text(encoding="utf-8") == "text\n"
    changes = [{"path": str(place.cwd / "new.txt"), "kind": "add"}]
    item = {
        "id": "item_0",
        "type": "file_change",
        "changes": changes,
        "status": "completed",
    }
    assert outcome.items[0] == item


def test_a_patch_given_to_exec_command_is_applied_where_it_says(
    place: Workplace,
) -> None:
    (place.cwd / "sub").mkdir()
    cmd = f"cd sub && {heredoc(ADD.format('new.txt'))}"
    _, output = run(place, "exec_command", {"cmd": cmd})
    assert re.fullmatch(
        r"Wall time: \d\.\d{4} seconds\nOutput:\n" + PATCH_RESULT, output
    )
    assert (place.cwd / "sub" / "new.txt").exists()


@pytest.mark.parametrize(
    "script", [ADD.format("f"), f"<<'EOF'\n{ADD.format('f')}\nEOF"]
)
@pytest.mark.parametrize(
    ("name", "key"),
    [("exec_command", "cmd"), ("shell_command", "command"), ("shell", "command")],
)
def test_a_patch_for_a_command_is_not_run(
    place: Workplace, name: str, key: str, script: str
) -> None:
    outcome, output = run(place, name, {key: script})
    # As Codex 0.169 says it, for all three.
    assert output == (
        "[ERROR:PatchFailed] apply_patch verification failed: patch detected without explicit call to"
        ' apply_patch. Rerun as ["apply_patch", "<patch>"]'
    )
    assert [item.get("code") for item in outcome.items] == ["PatchFailed", None]
    assert list(place.cwd.iterdir()) == []


def test_a_patch_in_a_command_that_does_not_fit_is_answered_as_by_the_tool(
    place: Workplace,
) -> None:
    patch = "*** Begin Patch\n*** Update File: f\n*** End Patch"
    _, by_command = run(place, "exec_command", {"cmd": heredoc(patch)})
    _, by_tool = answered(place, ev_custom_tool_call("c", "apply_patch", patch))
    assert by_command == by_tool


BROKEN_PATCHES = {
    "no fit": "*** Begin Patch\n*** Add File: a\n+a\n*** Update File: f\n@@\n-never\n+x\n*** End Patch",
    "no file": "*** Begin Patch\n*** Add File: a\n+a\n*** Delete File: none\n*** End Patch",
    "no end": "*** Begin Patch\n*** Add File: a\n+a",
    "no patch": "hello",
    "nothing": "",
    "empty": "*** Begin Patch\n*** End Patch",
    "below a file": "*** Begin Patch\n*** Add File: a\n+a\n*** Add File: f/g\n+x\n*** End Patch",
    "a folder": "*** Begin Patch\n*** Add File: a\n+a\n*** Delete File: d\n*** End Patch",
    "a NUL": "*** Begin Patch\n*** Add File: a\n+a\n*** Add File: b\0c\n+x\n*** End Patch",
    "a long name": f"*** Begin Patch\n*** Add File: a\n+a\n*** Add File: {'n' * 300}\n+x\n*** End Patch",
}


@pytest.mark.parametrize("patch", BROKEN_PATCHES.values(), ids=BROKEN_PATCHES.keys())
def test_a_patch_that_fails_leaves_the_tree_as_it_was(
    place: Workplace, patch: str
) -> None:
    (place.cwd / "f").write_text("line\n", encoding="utf-8")
    (place.cwd / "d").mkdir()
    outcome, output = answered(place, ev_custom_tool_call("c", "apply_patch", patch))
    tree = {path.name for path in place.cwd.rglob("*")}
    assert (tree, (place.cwd / "f").read_text(encoding="utf-8")) == (
        {"f", "d"},
        "line\n",
    )
    assert not output.startswith("Exit code: 0")
    assert all(item["status"] == "failed" for item in outcome.items if "status" in item)


@pytest.mark.parametrize(
    ("mode", "refusal"),
    [
        (
            "read-only",
            "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
        ),
        (
            "workspace-write",
            "patch rejected: writing outside of the project; rejected by user approval settings",
        ),
    ],
)
def test_the_sandbox_policy_holds_for_patches(
    place: Workplace, mode: str, refusal: str
) -> None:
    outside = place.home.parent / "new.txt" if mode == "workspace-write" else "new.txt"
    exempt = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    call = ev_custom_tool_call("c", "apply_patch", ADD.format(outside))
    outcome, output = answered(place, call, args=("-s", mode, *exempt))
    assert output.endswith(refusal)
    assert not (place.cwd / outside).exists()
    # The types of the SDK have no `declined` for a patch.
    declined = {"code": "SandboxDenied", "message": refusal}
    assert [
        (item["type"], item.get("status"), item.get("error")) for item in outcome.items
    ] == [
        ("file_change", "failed", declined),
        ("agent_message", None, None),
    ]


def test_the_workspace_may_be_patched(place: Workplace) -> None:
    call = ev_custom_tool_call("c", "apply_patch", ADD.format("new.txt"))
    answered(place, call, args=("-s", "workspace-write"))
    assert (place.cwd / "new.txt").exists()


def test_patches_take_turns(place: Workplace) -> None:
    (place.cwd / "f").write_text("0\n", encoding="utf-8")
    calls = [
        ev_custom_tool_call(
            f"c{n}",
            "apply_patch",
            f"*** Begin Patch\n*** Update File: f\n@@\n-{n}\n+{n + 1}\n*** End Patch",
            index=n,
        )
        for n in range(5)
    ]
    outcome, _ = answered(place, *calls)
    assert (place.cwd / "f").read_text(encoding="utf-8") == "5\n"
    assert outcome.events[-1]["diff"] == (
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-0\n+5\n"
    )


def test_a_turn_that_fails_says_what_it_has_patched(place: Workplace) -> None:
    call = ev_custom_tool_call("c", "apply_patch", ADD.format("new.txt"))
    with ScriptedServer(
        [[*call, ev_completed()], [ev_failed("invalid_prompt", "no")]]
    ) as server:
        outcome = place.run(server, "go")
    last = outcome.events[-1]
    assert (last["type"], list(last)) == ("turn.failed", ["type", "error", "diff"])
    assert last["diff"].endswith("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+text\n")


def test_a_turn_that_changes_nothing_has_no_diff(place: Workplace) -> None:
    outcome, _ = run(place, "exec_command", {"cmd": "echo x >f; rm f"})
    assert list(outcome.events[-1]) == ["type", "usage"]


def test_a_plan_is_one_item(place: Workplace) -> None:
    def plan(number: int, first: str, second: str) -> list[Event]:
        steps = [{"step": "a", "status": first}, {"step": "b", "status": second}]
        return ev_function_call(
            f"c{number}", "update_plan", {"plan": steps}, index=number
        )

    outcome, output = answered(
        place, plan(0, "in_progress", "pending"), plan(1, "completed", "completed")
    )
    assert output == "Plan updated"
    shown = [
        (e["type"], [step["completed"] for step in e["item"]["items"]])
        for e in outcome.events
        if e.get("item", {}).get("type") == "todo_list"
    ]
    assert shown == [
        ("item.started", [False, False]),
        ("item.updated", [True, True]),
        ("item.completed", [True, True]),
    ]
    assert outcome.types[-2:] == ["item.completed", "turn.completed"]


def test_an_image_is_shown_to_the_model(place: Workplace) -> None:
    (place.cwd / "a.png").write_bytes(PNG)
    outcome, output = run(place, "view_image", {"path": "a.png"})
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert [(part["type"], part["image_url"]) for part in output] == [
        ("input_image", url)
    ]
    size = {"type": "text", "text": f"{len(PNG)} bytes"}
    assert outcome.items[0] == {
        "id": "item_0",
        "type": "mcp_tool_call",
        "server": "codex",
        "tool": "view_image",
        "arguments": {"path": str(place.cwd / "a.png")},
        "result": {"content": [size], "structured_content": None},
        "error": None,
        "status": "completed",
    }


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "none.png",
            "unable to locate image at `{cwd}/none.png`: No such file or directory",
        ),
        ("text", "unable to process image: invalid or unsupported image data"),
        (".", "image path `{cwd}` is not a file: it is a folder"),
        ("/dev/zero", "image path `/dev/zero` is not a file: it is a device"),
        ("fifo", "image path `{cwd}/fifo` is not a file: it is a named pipe"),
        ("a\0b", "unable to locate image at"),
    ],
)
def test_an_image_that_is_none_is_told_to_the_model(
    place: Workplace, path: str, words: str
) -> None:
    (place.cwd / "text").write_text("no image", encoding="utf-8")
    os.mkfifo(place.cwd / "fifo")
    _, output = run(place, "view_image", {"path": path})
    assert words.format(cwd=place.cwd) in output


def test_a_command_cannot_ask_for_more_than_it_may(place: Workplace) -> None:
    arguments = {"cmd": "echo hi", "sandbox_permissions": "require_escalated"}
    outcome, output = run(place, "exec_command", arguments)
    assert output.startswith(
        "[ERROR:ApprovalDenied] approval policy is Never; reject command"
    )
    assert outcome.items[0] == {
        "id": "item_0",
        "type": "command_execution",
        "command": "/bin/bash -lc 'echo hi'",
        "aggregated_output": output.removeprefix("[ERROR:ApprovalDenied] "),
        "exit_code": None,
        "status": "declined",
    }


def test_a_command_sees_neither_our_key_nor_our_interpreter(place: Workplace) -> None:
    with ScriptedServer(
        [
            [
                *ev_function_call(
                    "c", "exec_command", {"cmd": "env; ls /proc/self/fd"}
                ),
                ev_completed(),
            ],
            DONE,
        ]
    ) as server:
        env = {"OPENAI_API_KEY": "sk-other", "MINE": "kept"}
        place.run(server, env=env)
        output = server.requests[1].output("c")
    assert "MINE=kept\n" in output
    assert "sk-" not in output
    assert "PYTHON" not in output
    # Nothing but the three standard descriptors, and that of the folder which `ls` reads.
    assert output.endswith("\n0\n1\n2\n3\n")


def test_a_denied_call_can_be_made_to_fail_the_run(place: Workplace) -> None:
    denied = [
        *ev_custom_tool_call("c", "apply_patch", ADD.format("new.txt")),
        ev_completed(),
    ]
    done = [*ev_message("I may not."), ev_completed()]
    with ScriptedServer([denied, done, denied, done, done]) as server:
        assert place.run(server, "-s", "read-only", "go").code == 0
        outcome = place.run(server, "-s", "read-only", "--fail-on", "denied", "go")
        assert (outcome.code, outcome.messages) == (5, ["I may not."])
        assert (
            place.run(server, "-s", "read-only", "--fail-on", "denied", "go").code == 0
        )


@pytest.mark.parametrize("name", ["exec_command", "shell_command", "shell"])
def test_no_profile_is_read_where_login_shells_are_not_allowed(
    place: Workplace, name: str
) -> None:
    (place.home.parent / ".bash_profile").write_text(
        "export OF=profile\n", encoding="utf-8"
    )
    key = "cmd" if name == "exec_command" else "command"
    script = "echo [$OF]"
    free = answered(place, ev_function_call("c", name, {key: script}))[0]
    assert [shown[0] for shown in commands(free)] == ["[profile]\n"]
    setting = ("-c", "allow_login_shell=false")
    held = answered(place, ev_function_call("c", name, {key: script}), args=setting)[0]
    assert [shown[0] for shown in commands(held)] == ["[]\n"]


@pytest.mark.parametrize("name", ["exec_command", "shell_command"])
def test_a_login_shell_that_is_not_allowed_is_refused(
    place: Workplace, name: str
) -> None:
    key = "cmd" if name == "exec_command" else "command"
    model = "gpt-5.5" if name == "exec_command" else "gpt-5"
    call = ev_function_call("c", name, {key: "true", "login": True})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        outcome = place.run(server, "-m", model, "-c", "allow_login_shell=false", "go")
        assert (
            "login shell is disabled by config"
            in server.requests[1].input[-1]["output"]
        )
        offered = {
            tool["name"]: tool
            for tool in server.requests[0].body["tools"]
            if "name" in tool
        }
    assert outcome.code == 0
    assert "login" not in json.dumps(offered.get(name, {}).get("parameters", {}))
