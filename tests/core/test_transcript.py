"""Tests `app/thread.py`, `core/history.py` and `protocol/prompts.py`."""

import json
from typing import Any

import pytest

from codex_py.app.thread import thread_items
from codex_py.protocol.event_items import (
    INTERRUPTED,
    AgentMessage,
    Change,
    CommandExecution,
    ContextCompaction,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    TodoEntry,
    TodoList,
    TurnTime,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.prompts import SUMMARY_OPENING
from tests.core.sessions import BASE, SETTINGS, context

RUNNING = "Process running with session ID 7\nOutput:\n"
PATCH = (
    "*** Begin Patch\n*** Update File: b\n-x\n+y\n*** Add File: a\n+a\n*** End Patch"
)


def item(kind: str, **fields: Any) -> EncodedItem:
    return EncodedItem(encode_json({"type": kind, **fields}))


def call(
    name: str, arguments: Any, output: Any, call_id: str = "c"
) -> list[EncodedItem]:
    return [
        item(
            "function_call", name=name, arguments=json.dumps(arguments), call_id=call_id
        ),
        item("function_call_output", call_id=call_id, output=output),
    ]


def user(text: str) -> EncodedItem:
    return message("user", [input_text(text)])


def test_a_history_is_shown_as_it_was_seen() -> None:
    image = [
        input_text('<image name=[Image #1] path="/a.png">'),
        {"type": "input_image", "image_url": "data:"},
        input_text("</image>"),
    ]
    steps = [
        {"step": "one", "status": "completed"},
        {"step": "two", "status": "in_progress"},
    ]
    history = [
        BASE,
        *context(SETTINGS),
        message("user", [*image, input_text("Look.")]),
        item("reasoning", summary=[{"type": "summary_text", "text": "**Looking**"}]),
        message("assistant", [{"type": "output_text", "text": "I look."}]),
        *call(
            "exec_command",
            {"cmd": "echo hi", "workdir": "sub"},
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\n"
            "Original token count: 1\nOutput:\nOutput:\nhi\n",
        ),
        item("custom_tool_call", name="apply_patch", input=PATCH, call_id="p"),
        item(
            "custom_tool_call_output",
            call_id="p",
            output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n",
        ),
        *call("update_plan", {"plan": steps, "explanation": "why"}, "Plan updated"),
        *call("mcp__docs__find_it", {"q": 1}, [input_text("found")]),
        item("web_search_call", action={"type": "search", "query": "weather"}),
        user("<turn_aborted>\n</turn_aborted>"),
        user(f"{SUMMARY_OPENING} and wrote\nnote"),
        user("Go on."),
    ]
    assert thread_items(history) == [
        UserMessage(id="history_0", text="Look.", images=("/a.png",)),
        ReasoningSummary(id="history_1", text="**Looking**"),
        AgentMessage(id="history_2", text="I look."),
        CommandExecution(
            id="history_3",
            command="/bin/bash -lc 'echo hi'",
            aggregated_output="Output:\nhi\n",
            exit_code=3,
            status="failed",
            cwd="sub",
            duration_ms=100,
        ),
        FileChange(
            id="history_4",
            changes=[Change(path="a", kind="add"), Change(path="b", kind="update")],
            status="completed",
            diff=PATCH,
        ),
        TodoList(
            id="history_5",
            items=[
                TodoEntry(text="one", completed=True),
                TodoEntry(text="two", completed=False, in_progress=True),
            ],
            explanation="why",
        ),
        McpToolCall(
            id="history_6",
            server="docs",
            tool="find_it",
            arguments={"q": 1},
            result={"content": [{"type": "text", "text": "found"}]},
            status="completed",
        ),
        WebSearch(
            id="history_7",
            query="weather",
            action={"type": "search", "query": "weather"},
        ),
        ContextCompaction(id="history_8", status="completed"),
        UserMessage(id="history_9", text="Go on."),
    ]


def test_a_refusal_is_shown_as_the_answer_that_it_was() -> None:
    refusal = message("assistant", [{"type": "refusal", "refusal": "I may not."}])
    assert thread_items([refusal]) == [AgentMessage(id="history_0", text="I may not.")]


def test_calls_that_failed_are_shown_as_they_were_live() -> None:
    local = {"type": "exec", "command": ["ls"], "timeout_ms": -1}
    history = [
        *call("exec_command", {"cmd": 5}, "[ERROR:InvalidArgs] bad `cmd`"),
        *call("nope", {}, "[ERROR:UnknownTool] unsupported call: nope"),
        item("local_shell_call", call_id="l", action=local),
        item(
            "function_call_output", call_id="l", output="[ERROR:InvalidArgs] bad time"
        ),
        *call("apply_patch", {"input": PATCH}, "[ERROR:PatchFailed] no fit"),
        *call("apply_patch", {"input": PATCH}, "[ERROR:SandboxDenied] read-only"),
        *call("apply_patch", {"input": PATCH}, "Exit code: 1\nOutput:\nNo space\n"),
        *call("shell", {"command": ["rm"]}, "[ERROR:ApprovalDenied] no rm"),
        *call("mcp__docs__find", {"q": 1}, "[ERROR:Timeout] too slow"),
        *call("view_image", {"path": "a.png"}, "[ERROR:InvalidArgs] no such name"),
        *call(
            "view_image",
            {"path": "b.png"},
            [{"type": "input_image", "image_url": "data:"}],
        ),
    ]
    changes = [Change(path="a", kind="add"), Change(path="b", kind="update")]

    def patch(number: int, status: Any, code: str, message: str) -> FileChange:
        return FileChange(
            id=f"history_{number}",
            changes=changes,
            status=status,
            diff=PATCH,
            error={"code": code, "message": message},
        )

    def error(
        number: int, tool: str, code: str, message: str, call_id: str = "c"
    ) -> ErrorItem:
        text = f"{tool} failed: {message}"
        return ErrorItem(
            id=f"history_{number}", message=text, tool=tool, call_id=call_id, code=code
        )

    assert thread_items(history) == [
        error(0, "exec_command", "InvalidArgs", "bad `cmd`"),
        error(1, "nope", "UnknownTool", "unsupported call: nope"),
        error(2, "local_shell", "InvalidArgs", "bad time", "l"),
        patch(3, "failed", "PatchFailed", "no fit"),
        patch(4, "failed", "SandboxDenied", "read-only"),
        patch(5, "failed", "PatchFailed", "No space"),
        CommandExecution(
            id="history_6", command="rm", aggregated_output="no rm", status="declined"
        ),
        McpToolCall(
            id="history_7",
            server="docs",
            tool="find",
            arguments={"q": 1},
            error={"message": "too slow"},
            status="failed",
        ),
        McpToolCall(
            id="history_8",
            server="codex",
            tool="view_image",
            arguments={"path": "a.png"},
            error={"message": "no such name"},
            status="failed",
        ),
        McpToolCall(
            id="history_9",
            server="codex",
            tool="view_image",
            arguments={"path": "b.png"},
            result={"content": [{"type": "text", "text": ""}]},
            status="completed",
        ),
    ]


@pytest.mark.parametrize(
    ("output", "code", "text"),
    [
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nhi\n", 0, "hi\n"),
        (
            '{"output":"hi\\n","metadata":{"exit_code":7,"duration_seconds":0.1}}',
            7,
            "hi\n",
        ),
        ("Process running with session ID 1\nOutput:\nhi", None, "hi"),
        (
            "Wall time: 1.4 seconds\naborted by user",
            None,
            "Wall time: 1.4 seconds\naborted by user",
        ),
        ("{", None, "{"),
    ],
)
def test_the_result_of_a_command_is_read_from_its_output(
    output: str, code: int | None, text: str
) -> None:
    for name, arguments in (
        ("shell", {"command": ["ls"]}),
        ("functions.shell", {"command": "ls"}),
    ):
        (shown,) = thread_items(call(name, arguments, output))
        assert isinstance(shown, CommandExecution)
        assert (shown.exit_code, shown.aggregated_output) == (code, text)
        goes_on = output.startswith("Process running")
        assert shown.status == ("completed" if code == 0 or goes_on else "failed")


def test_a_command_in_the_background_is_shown_with_its_end() -> None:
    history = [
        *call("exec_command", {"cmd": "make"}, f"{RUNNING}one\n", "a"),
        *call("write_stdin", {"session_id": 7}, f"{RUNNING}two\n", "b"),
        *call(
            "write_stdin",
            {"session_id": 7},
            "Process exited with code 2\nOutput:\nend\n",
            "c",
        ),
    ]
    (shown,) = thread_items(history)
    assert isinstance(shown, CommandExecution)
    assert shown.aggregated_output == "one\ntwo\nend\n"
    assert (shown.exit_code, shown.status) == (2, "failed")


def test_patches_are_shown_with_the_diffs_that_were_made_for_them() -> None:
    done = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n"
    patches = [
        item("custom_tool_call", name="apply_patch", input=PATCH, call_id=call_id)
        for call_id in ("p", "q")
    ]
    outputs = [
        item("custom_tool_call_output", call_id=call_id, output=done)
        for call_id in ("p", "q")
    ]
    facts = [item("patch_applied", diff=diff) for diff in ("first", "second")]
    history = [*patches, *facts, *outputs, *call("exec_command", {"cmd": "x"}, done)]
    history += [
        item("patch_applied", diff="third"),
        item("task_complete", duration_ms=1500),
    ]
    shown = thread_items(history)
    assert [s.diff for s in shown if isinstance(s, FileChange)] == [
        "first",
        "second",
        "third",
    ]
    assert shown[-1] == TurnTime(id="history_4", duration_ms=1500)


def test_a_turn_that_was_interrupted_says_so_again() -> None:
    aborted = item("turn_aborted", reason="interrupted")
    assert thread_items(
        [user("Go."), user("<turn_aborted>\n</turn_aborted>"), aborted]
    ) == [
        UserMessage(id="history_0", text="Go."),
        ErrorItem(id="history_1", message=INTERRUPTED, code="aborted"),
    ]


def test_a_command_that_the_user_has_run_is_shown_again() -> None:
    told = (
        "<user_shell_command>\n<command>\nls; false\n</command>\n<result>\nExit code: 1\n"
        "Duration: 0.2500 seconds\nOutput:\na.py\n\n</result>\n</user_shell_command>"
    )
    assert thread_items([user(told)]) == [
        CommandExecution(
            id="history_0",
            command="ls; false",
            aggregated_output="a.py\n",
            exit_code=1,
            status="failed",
            duration_ms=250,
            is_users=True,
        )
    ]


def test_unreadable_items_are_left_out_or_shown_without_details() -> None:
    odd = [
        item("news", text="x"),
        item("compaction", encrypted_content="opaque"),
        item("function_call", name="shell", arguments="[", call_id="a"),
        item("function_call_output", call_id="stray", output="x"),
        item("message", role="assistant", content=None),
        item("custom_tool_call", name="apply_patch", input="no patch", call_id="b"),
        *call("update_plan", {"plan": 7}, "x"),
    ]
    assert [shown.type for shown in thread_items(odd)] == [
        "context_compaction",
        "command_execution",
        "file_change",
        "todo_list",
    ]


def test_arguments_that_are_nested_without_end_are_shown_as_the_failure_they_were() -> (
    None
):
    deep = "[" * 100_000
    failure = "[ERROR:InvalidArgs] failed to parse function arguments: recursion limit exceeded"
    history = [
        item("function_call", name="exec_command", arguments=deep, call_id="c"),
        item("function_call_output", call_id="c", output=failure),
        *call("mcp__docs__find_it", {}, deep, "d"),
    ]
    shown = thread_items(history)
    assert [type(event) for event in shown] == [ErrorItem, McpToolCall]
