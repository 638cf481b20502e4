"""Hooks around calls and approvals.

Tests `app/features/hooks/calls.py`.
"""

import os
import sys
from typing import Any

import pytest

from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
)
from tests.support.hooks import DONE, command, group, note, run, says, specific
from tests.support.mcp import ODD_SERVER
from tests.support.program import Workplace

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n"


def test_a_refused_command_does_not_run_and_the_model_reads_why(
    place: Workplace,
) -> None:
    hooks = {
        "PreToolUse": [
            specific("PreToolUse", additionalContext="told all the same"),
            "echo ' not here ' >&2; exit 2",
        ],
        "PostToolUse": [note("post")],
    }
    hooked = run(place, hooks, [command("touch made"), DONE])
    assert not (place.cwd / "made").exists()
    blocked = "[ERROR:ApprovalDenied] Command blocked by PreToolUse hook: not here. Command: touch made"
    assert hooked.said()[-2:] == [
        ("developer", "told all the same"),
        ("output", blocked),
    ]
    assert hooked.given("post") == []
    assert [
        getattr(event, "item", None)
        for event in hooked.events
        if event.type == "item.started"
    ] == []
    assert hooked.progress == [
        ("PreToolUse", "running"),
        ("PreToolUse", "running"),
        *hooked.progress[2:],
    ]
    assert sorted(hooked.progress[2:]) == [
        ("PreToolUse", "blocked"),
        ("PreToolUse", "completed"),
    ]


def test_hooks_of_a_command_are_given_its_text_and_its_bare_output(
    place: Workplace,
) -> None:
    hooks = {"PreToolUse": [note("pre")], "PostToolUse": [note("post")]}
    hooked = run(place, hooks, [command("echo hi; exit 3"), DONE])
    (pre,), (post,) = hooked.given("pre"), hooked.given("post")
    transcript = pre["transcript_path"]
    assert transcript.startswith(str(place.home / "sessions"))
    assert pre == {
        "session_id": pre["session_id"],
        "transcript_path": transcript,
        "cwd": str(place.cwd),
        "hook_event_name": "PreToolUse",
        "turn_id": pre["turn_id"],
        "model": "gpt-5.5",
        "permission_mode": "bypassPermissions",
        "tool_name": "Bash",
        "tool_input": {"command": "echo hi; exit 3"},
        "tool_use_id": "c1",
    }
    assert post == {**pre, "hook_event_name": "PostToolUse", "tool_response": "hi\n"}


def test_a_command_that_goes_on_in_the_background_is_reported_when_it_ends(
    place: Workplace,
) -> None:
    hooks = {"PreToolUse": [note("pre")], "PostToolUse": [note("post")]}
    waiting = "cat go; echo ended"
    os.mkfifo(place.cwd / "go")

    def end(request: RecordedRequest) -> list[Any]:
        output: str = request.input[-1]["output"]
        session = int(output.partition("session ID ")[2].split()[0])
        (place.cwd / "go").write_text("now\n", encoding="utf-8")
        arguments = {"session_id": session, "chars": "", "yield_time_ms": 20_000}
        return [*ev_function_call("c2", "write_stdin", arguments), ev_completed()]

    hooked = run(place, hooks, [command(waiting, yield_time_ms=250), end, DONE])
    assert [given["tool_use_id"] for given in hooked.given("pre")] == ["c1"]
    (post,) = hooked.given("post")
    assert (post["tool_use_id"], post["tool_input"]) == ("c1", {"command": waiting})
    assert post["tool_response"].endswith("ended\n")


def test_a_command_is_reported_when_it_ends_although_writing_to_it_failed(
    place: Workplace,
) -> None:
    os.mkfifo(place.cwd / "go")

    def write(request: RecordedRequest, chars: str = "x") -> list[Any]:
        outputs: list[str] = [
            item["output"] for item in request.input if "output" in item
        ]
        session = int(outputs[0].partition("session ID ")[2].split()[0])
        arguments = {"session_id": session, "chars": chars, "yield_time_ms": 20_000}
        return [
            *ev_function_call(f"w{chars}", "write_stdin", arguments),
            ev_completed(),
        ]

    def end(request: RecordedRequest) -> list[Any]:
        assert "stdin is closed" in request.input[-1]["output"]
        (place.cwd / "go").write_text("now\n", encoding="utf-8")
        return write(request, "")

    replies = [command("cat go", yield_time_ms=250), write, end, DONE]
    hooked = run(place, {"PostToolUse": [note("post")]}, replies)
    (post,) = hooked.given("post")
    assert post["tool_use_id"] == "c1"
    assert post["tool_response"].endswith("now\n")


def _typing(chars: str, call_id: str) -> Any:
    def reply(request: RecordedRequest) -> list[Any]:
        outputs: list[str] = [
            item["output"] for item in request.input if "output" in item
        ]
        session = int(outputs[0].partition("session ID ")[2].split()[0])
        arguments = {"session_id": session, "chars": chars, "yield_time_ms": 300}
        return [*ev_function_call(call_id, "write_stdin", arguments), ev_completed()]

    return reply


def test_input_to_a_running_command_is_shown_to_the_hooks_of_commands(
    place: Workplace,
) -> None:
    guard = "grep -q '\"command\":\"git push' && { echo 'not without me' >&2; exit 2; }; true"
    hooks = {
        "PreToolUse": [group(note("pre"), "Bash"), group(guard, "Bash")],
        "PostToolUse": [note("post")],
    }
    shell = command("sh", tty=True, yield_time_ms=250)
    typed = ["git push\n", "touch made\n", "", "exit 3\n"]
    replies = [_typing(chars, f"w{number}") for number, chars in enumerate(typed)]
    poll = _typing("", "end")
    soon = {"background_terminal_max_timeout": 2_000}
    hooked = run(place, hooks, [shell, *replies, poll, DONE], flags=soon)
    seen = [
        (given["tool_use_id"], given["tool_input"]["command"])
        for given in hooked.given("pre")
    ]
    assert seen == [
        ("c1", "sh"),
        ("w0", "git push\n"),
        ("w1", "touch made\n"),
        ("w3", "exit 3\n"),
    ]
    outputs = [text for role, text in hooked.said() if role == "output"]
    blocked = "Command blocked by PreToolUse hook: not without me. Command: git push\n"
    assert outputs[1] == f"[ERROR:ApprovalDenied] {blocked}"
    # It was not typed, unlike the next one.
    assert "git" not in "".join(outputs[2:])
    assert (place.cwd / "made").exists()
    # The end of the command is that of the call which started it.
    assert [given["tool_use_id"] for given in hooked.given("post")] == ["c1"]


def test_a_hook_rewrites_what_is_typed(place: Workplace) -> None:
    rewrite = specific(
        "PreToolUse",
        permissionDecision="allow",
        updatedInput={"command": "touch other\n"},
    )
    hooks = {"PreToolUse": [f"if grep -q 'touch made'; then\n{rewrite}\nfi"]}
    shell = command("sh", tty=True, yield_time_ms=250)
    replies = [
        _typing("touch made\n", "w1"),
        _typing("exit\n", "w2"),
        _typing("", "w3"),
        DONE,
    ]
    run(place, hooks, [shell, *replies])
    assert sorted(path.name for path in place.cwd.iterdir()) == ["other"]


def test_the_last_rewrite_runs_and_the_history_keeps_the_call(place: Workplace) -> None:
    def rewrite(text: str) -> str:
        return specific(
            "PreToolUse", permissionDecision="allow", updatedInput={"command": text}
        )

    hooks = {
        "PreToolUse": [f"sleep 0.5; {rewrite('echo last')}", rewrite("echo first")],
        "PostToolUse": [note("post")],
    }
    hooked = run(place, hooks, [command("echo model"), DONE])
    assert hooked.said()[-1][1].endswith("last\n")
    assert '"echo model"' in str(
        [i for i in hooked.requests[-1] if i["type"] == "function_call"]
    )
    assert hooked.given("post")[0]["tool_input"] == {"command": "echo last"}


def test_a_hook_after_a_call_is_given_the_arguments_that_another_rewrote(
    place: Workplace,
) -> None:
    plan = {"plan": [{"step": "rewritten", "status": "pending"}]}
    rewrite = specific("PreToolUse", permissionDecision="allow", updatedInput=plan)
    hooks = {"PreToolUse": [note("pre"), rewrite], "PostToolUse": [note("post")]}
    written = {"plan": [{"step": "mine", "status": "completed"}]}
    reply = [*ev_function_call("c1", "update_plan", written), ev_completed()]
    hooked = run(place, hooks, [reply, DONE])
    (pre,), (post,) = hooked.given("pre"), hooked.given("post")
    assert (pre["tool_name"], pre["tool_input"]) == ("update_plan", written)
    assert post["tool_input"] == plan


def test_a_rewrite_that_does_not_fit_keeps_the_call_from_running(
    place: Workplace,
) -> None:
    answer = specific(
        "PreToolUse", permissionDecision="allow", updatedInput={"cmd": "true"}
    )
    hooked = run(place, {"PreToolUse": [answer]}, [command("touch made"), DONE])
    assert not (place.cwd / "made").exists()
    assert "`command` is missing" in hooked.said()[-1][1]


@pytest.mark.parametrize(
    "matcher", ["apply_patch", "Edit", "Write", "Edit|Bash", ".*patch"]
)
def test_a_patch_is_known_by_the_names_of_claude_code(
    place: Workplace, matcher: str
) -> None:
    hooks = {"PreToolUse": [group("echo no >&2; exit 2", matcher)]}
    reply = [*ev_custom_tool_call("c1", "apply_patch", PATCH), ev_completed()]
    hooked = run(place, hooks, [reply, DONE])
    assert not (place.cwd / "a.txt").exists()
    assert (
        hooked.said()[-1][1]
        == f"[ERROR:ApprovalDenied] Command blocked by PreToolUse hook: no. Command: {PATCH}"
    )


def test_a_patch_is_rewritten_and_its_hook_reads_the_whole_output(
    place: Workplace,
) -> None:
    updated = {"command": PATCH.replace("a.txt", "b.txt")}
    rewrite = specific("PreToolUse", permissionDecision="allow", updatedInput=updated)
    hooks = {"PreToolUse": [rewrite], "PostToolUse": [note("post")]}
    reply = [*ev_custom_tool_call("c1", "apply_patch", PATCH), ev_completed()]
    hooked = run(place, hooks, [reply, DONE])
    assert (place.cwd / "b.txt").exists()
    (post,) = hooked.given("post")
    assert post["tool_name"] == "apply_patch"
    assert post["tool_input"] == updated
    assert post["tool_response"] == hooked.said()[-1][1]


@pytest.mark.parametrize(
    "hook",
    [
        "echo replaced >&2; exit 2",
        says({"decision": "block", "reason": "replaced"}),
        says({"continue": False, "stopReason": "replaced"}),
    ],
)
def test_a_hook_after_a_call_replaces_its_output(place: Workplace, hook: str) -> None:
    context = specific("PostToolUse", additionalContext="and this")
    hooked = run(place, {"PostToolUse": [hook, context]}, [command("echo hi"), DONE])
    assert hooked.said()[-2:] == [("developer", "and this"), ("output", "replaced")]
    assert hooked.results[0].last_message == "done"


@pytest.mark.parametrize("decides", ["allow", "deny", "nothing"])
def test_permission_requests_are_answered_before_the_user_is_asked(
    place: Workplace, decides: str
) -> None:
    asked: list[ApprovalRequest] = []

    class User:
        async def review(self, request: ApprovalRequest) -> Review:
            asked.append(request)
            return Review(ReviewDecision.APPROVED)

    decision = {"behavior": decides, "message": "not today"}
    answer = (
        specific("PermissionRequest", decision=decision)
        if decides != "nothing"
        else "true"
    )
    hooked = run(
        place,
        {"PermissionRequest": [note("asked"), group(answer, "Bash")]},
        [
            command(
                "echo ran",
                sandbox_permissions="require_escalated",
                justification="I must",
            ),
            DONE,
        ],
        approver=User(),
        flags={"approval_policy": "on-request", "sandbox_mode": "read-only"},
    )
    assert len(asked) == (decides == "nothing")
    assert ("ran" in hooked.said()[-1][1].splitlines()) == (decides != "deny")
    assert ("not today" in hooked.said()[-1][1]) == (decides == "deny")
    (given,) = hooked.given("asked")
    assert (given["tool_name"], given["permission_mode"]) == ("Bash", "default")
    assert given["tool_input"]["command"] == "echo ran"
    assert "I must" in given["tool_input"]["description"]
    assert "tool_use_id" not in given


def test_calls_of_mcp_tools_have_the_full_name_whatever_the_model_writes(
    place: Workplace,
) -> None:
    hooks = {
        "PreToolUse": [group("echo no >&2; exit 2", "mcp__odd__two-words")],
        "PostToolUse": [group(note("post"), "mcp__odd__.*")],
    }
    first = [
        *ev_function_call("c1", "mcp__odd__echo", {"text": "hi"}),
        *ev_function_call("c2", "mcp__odd__two_words", {}, index=1),
        ev_completed(),
    ]
    hooked = run(place, hooks, [first, DONE], config=_ODD)
    (post,) = hooked.given("post")
    assert (post["tool_name"], post["tool_input"]) == ("mcp__odd__echo", {"text": "hi"})
    assert post["tool_response"] == {
        "content": [{"type": "text", "text": '{"text": "hi"}'}]
    }
    blocked = "[ERROR:ApprovalDenied] Tool call blocked by PreToolUse hook: no. Tool: mcp__odd__two-words"
    assert hooked.said()[-1] == ("output", blocked)


def test_the_arguments_of_an_mcp_tool_are_rewritten(place: Workplace) -> None:
    answer = specific(
        "PreToolUse", permissionDecision="allow", updatedInput={"text": "other"}
    )
    call = [*ev_function_call("c1", "mcp__odd__echo", {"text": "hi"}), ev_completed()]
    hooked = run(place, {"PreToolUse": [answer]}, [call, DONE], config=_ODD)
    assert "other" in str(hooked.said()[-1][1])


def test_a_tool_of_a_server_can_be_the_hook(place: Workplace) -> None:
    tool = {
        "type": "mcp_tool",
        "server": "odd",
        "tool": "echo",
        "input": {"decision": "block", "reason": "not ${tool_input.command}"},
    }
    hooked = run(
        place, {"PreToolUse": [tool]}, [command("touch made"), DONE], config=_ODD
    )
    blocked = "[ERROR:ApprovalDenied] Command blocked by PreToolUse hook: not touch made. Command: touch made"
    assert hooked.said()[-1] == ("output", blocked)
    assert not (place.cwd / "made").exists()


def test_a_hook_whose_server_is_missing_costs_a_warning(place: Workplace) -> None:
    tool = {"type": "mcp_tool", "server": "nope", "tool": "echo"}
    hooked = run(place, {"PreToolUse": [tool]}, [command("touch made"), DONE])
    assert (place.cwd / "made").exists()
    assert hooked.warnings == [
        "The PreToolUse hook 'nope/echo' needs the MCP server 'nope', which is not configured."
    ]


_ODD = f"""
[mcp_servers.odd]
command = {sys.executable!r}
args = [{str(ODD_SERVER)!r}, "two-words"]
default_tools_approval_mode = "approve"
"""
