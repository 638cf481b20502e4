import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from codex_py import __version__
from codex_py.command_line.configuration import sandbox_summary
from codex_py.frontends.exec.human import HumanText, duration
from codex_py.protocol.approval import ApprovalPolicy, Denied, SandboxPolicy
from codex_py.protocol.event_items import (
    AgentMessage,
    Change,
    CommandExecution,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    TodoEntry,
    TodoList,
    WebSearch,
)
from codex_py.protocol.events import (
    CallDenied,
    Error,
    ErrorInfo,
    Event,
    ItemCompleted,
    ItemStarted,
    ItemUpdated,
    ThreadStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.stream import Usage
from codex_py.streams.standard import OutputStream
from codex_py.streams.terminal import Style
from tests.support.model import reconnecting

SETTINGS = TurnSettings(
    model="gpt-5.5",
    provider="mock",
    cwd=Path("/repo"),
    approval_policy=ApprovalPolicy.NEVER,
    sandbox_policy=SandboxPolicy(
        mode="workspace-write", writable_roots=(Path("/repo"),)
    ),
    context_window=1000,
)


def shown(
    events: Sequence[Event], *, color: bool = False, show_reasoning: bool = True
) -> str:
    ours, theirs = os.pipe()
    sink = HumanText(
        OutputStream(theirs), Style(color=color), show_reasoning=show_reasoning
    )
    sink.begin("0199", SETTINGS, "do it")
    header = os.read(ours, 4096)
    for event in events:
        sink(event)
    os.close(theirs)
    with open(ours, "rb") as file:  # noqa: PTH123 - a descriptor
        text = file.read()
    assert header.endswith(b"do it\n")
    return text.decode()


def test_the_header_comes_first_and_warnings_wait_for_it() -> None:
    ours, theirs = os.pipe()
    sink = HumanText(OutputStream(theirs), Style(color=False))
    sink(ThreadStarted("0199"))
    sink(ItemCompleted(ErrorItem(id="item_0", message="unknown model")))
    sink.begin("0199", SETTINGS, "do it\x1b[2J")
    os.close(theirs)
    with open(ours, encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        assert file.read() == (
            f"codex-py v{__version__}\n"
            "--------\n"
            "workdir: /repo\n"
            "model: gpt-5.5\n"
            "provider: mock\n"
            "approval: never\n"
            "sandbox: workspace-write [workdir, /tmp, $TMPDIR]\n"
            "reasoning effort: none\n"
            "reasoning summaries: none\n"
            "session id: 0199\n"
            "--------\n"
            "user\n"
            "do it␛[2J\n"
            "warning: unknown model\n"
        )


def command(number: int, text: str, **more: object) -> CommandExecution:
    return CommandExecution(id=f"item_{number}", command=text, cwd="/repo", **more)  # pyright: ignore[reportArgumentType]


def test_a_turn_is_laid_out_as_codex_does() -> None:
    patch = FileChange(
        id="item_4", changes=[Change(path="/repo/x", kind="add")], status="completed"
    )
    diff = "diff --git a/x b/x\n+a\n"
    assert shown(
        [
            TurnStarted(),
            ItemCompleted(ReasoningSummary(id="item_0", text="**Planning** stuff")),
            ItemCompleted(AgentMessage(id="item_1", text="I'll run it")),
            ItemStarted(command(2, "bash -lc 'exit 3'")),
            ItemCompleted(
                command(
                    2,
                    "bash -lc 'exit 3'",
                    exit_code=3,
                    aggregated_output="bad\n",
                    duration_ms=92,
                )
            ),
            ItemStarted(command(3, "true")),
            ItemCompleted(command(3, "true", exit_code=0, duration_ms=1500)),
            ItemStarted(patch),
            ItemCompleted(
                FileChange(
                    id="item_4", changes=patch.changes, status="completed", diff=diff
                )
            ),
            ItemCompleted(AgentMessage(id="item_5", text="All done.")),
            TurnCompleted(
                Usage(input_tokens=20_000, cached_input_tokens=7_000, output_tokens=340)
            ),
        ]
    ) == (
        "**Planning** stuff\n"
        "codex\n"
        "I'll run it\n"
        "exec\n"
        "bash -lc 'exit 3' in /repo\n"
        " exited 3 in 92ms:\n"
        "bad\n"
        "\n"
        "exec\n"
        "true in /repo\n"
        " succeeded in 1.50s:\n"
        "apply patch\n"
        "patch: completed\n"
        "/repo/x\n"
        "diff --git a/x b/x\n"
        "+a\n"
        "codex\n"
        "All done.\n"
        "tokens used\n"
        "13,340\n"
    )


def test_results_of_commands_side_by_side_name_their_command() -> None:
    assert shown(
        [
            ItemStarted(command(0, "a")),
            ItemStarted(command(1, "b")),
            ItemCompleted(command(0, "a", exit_code=0, aggregated_output="A\n")),
            ItemCompleted(command(1, "b", exit_code=0, aggregated_output="B\n")),
        ]
    ) == (
        "exec\na in /repo\n"
        "exec\nb in /repo\n"
        "exec\na in /repo\n succeeded:\nA\n\n"
        "exec\nb in /repo\n succeeded:\nB\n\n"
    )  # fmt: skip


def test_other_items_have_a_line_each() -> None:
    plan = TodoList(
        id="item_0",
        items=[
            TodoEntry(text="a", completed=True),
            TodoEntry(text="b", completed=False, in_progress=True),
            TodoEntry(text="c", completed=False),
        ],
        explanation="why",
    )
    call = McpToolCall(id="item_1", server="srv", tool="t", arguments={})
    failed = McpToolCall(
        id="item_1",
        server="srv",
        tool="t",
        arguments={},
        error={"message": "gone"},
        status="failed",
    )
    search = WebSearch(id="item_2", query="weather")
    assert shown(
        [
            ItemStarted(plan),
            ItemUpdated(plan),
            ItemCompleted(plan),
            ItemStarted(call),
            ItemCompleted(failed),
            ItemStarted(search),
            ItemCompleted(search),
        ]
    ) == (
        "why\n  ✓ a\n  → b\n  • c\n"
        "why\n  ✓ a\n  → b\n  • c\n"
        "mcp: srv/t started\n"
        "mcp: srv/t (failed): gone\n"
        "web search: weather\n"
    )  # fmt: skip


def test_the_reason_of_a_failure_is_told_once() -> None:
    assert (
        shown(
            [
                reconnecting("cut"),
                reconnecting("cut", attempt=2),
                reconnecting("slow\x07 down", wait_s=30.2, attempt=3),
                Error("no\x07pe", "model"),
                TurnFailed(ErrorInfo("no\x07pe", "model")),
            ]
        )
        == "ERROR: cut; trying again in 0.0 s (try 2)\n"
        "ERROR: slow␇ down; trying again in 30.2 s (try 4)\n"
        "ERROR: no␇pe\n"
    )


def test_a_denied_call_is_shown_with_the_reason() -> None:
    assert (
        shown([CallDenied("apply_patch", "blocked by \x1b[1mread-only sandbox")])
        == "denied: apply_patch: blocked by ␛[1mread-only sandbox\n"
    )


@pytest.mark.parametrize(
    ("denied", "line"),
    [
        (
            Denied(2, ("-s workspace-write",), ("the sandbox is read-only",)),
            "2 calls were refused: the sandbox is read-only. To allow them: -s workspace-write\n",
        ),
        (
            Denied(1, (), ("a rule forbids it",)),
            "1 call was refused: a rule forbids it\n",
        ),
        (
            Denied(3, ("a", "b"), ("x", "y")),
            "3 calls were refused: x; y. To allow them: a and b\n",
        ),
    ],
)
def test_the_last_line_sums_up_what_was_refused(denied: Denied, line: str) -> None:
    assert shown([TurnCompleted(Usage(), denied=denied)]) == f"tokens used\n0\n{line}"


def test_a_declined_command_is_named_and_its_reason_told_once() -> None:
    item = CommandExecution(id="item_0", command="rm -f x", cwd="/repo")
    declined = replace(item, aggregated_output="too dangerous", status="declined")
    events = [
        ItemStarted(item),
        ItemCompleted(declined),
        CallDenied("exec_command", "too dangerous"),
    ]
    assert (
        shown(events) == "exec\nrm -f x in /repo\ndenied: exec_command: too dangerous\n"
    )


def test_a_patch_that_failed_is_shown_with_the_reason_and_not_as_if_it_were_made() -> (
    None
):
    item = FileChange(
        id="item_0",
        changes=[Change(path="/repo/x", kind="update")],
        diff="diff --git a/x b/x\n",
    )
    error = {"code": "ENOSPC", "message": "No space left\x07"}
    assert (
        shown(
            [
                ItemStarted(item),
                ItemCompleted(replace(item, status="failed", error=error)),
            ]
        )
        == "apply patch\npatch: failed\n/repo/x\nNo space left␇\n"
    )


def test_an_interrupted_turn_says_so() -> None:
    assert (
        shown(
            [Error("stopped", "aborted"), TurnFailed(ErrorInfo("stopped", "aborted"))]
        )
        == "turn interrupted\n"
    )


def test_reasoning_can_be_hidden() -> None:
    event = ItemCompleted(ReasoningSummary(id="item_0", text="hm"))
    assert shown([event], show_reasoning=False) == ""


def test_colors_are_those_of_codex() -> None:
    assert shown(
        [
            ItemCompleted(ReasoningSummary(id="item_0", text="hm")),
            ItemStarted(command(1, "ls")),
            ItemCompleted(
                command(1, "ls", exit_code=0, aggregated_output="x\n", duration_ms=5)
            ),
        ],
        color=True,
    ) == (
        "\x1b[2mhm\x1b[0m\n"
        "\x1b[35m\x1b[3mexec\x1b[0m\x1b[0m\n"
        "\x1b[1mls\x1b[0m in /repo\n"
        "\x1b[32m succeeded in 5ms:\x1b[0m\n"
        "x\n"
        "\n"
    )


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (SandboxPolicy(), "read-only"),
        (SandboxPolicy(mode="danger-full-access"), "danger-full-access"),
        (
            SandboxPolicy(
                mode="workspace-write",
                writable_roots=(Path("/repo"), Path("/more")),
                network_access=True,
                exclude_slash_tmp=True,
            ),
            "workspace-write [workdir, $TMPDIR, /more] (network access enabled)",
        ),
    ],
)
def test_the_sandbox_is_summed_up_in_a_line(policy: SandboxPolicy, text: str) -> None:
    assert sandbox_summary(policy, Path("/repo")) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1.00s"),
        (59_999, "60.00s"),
        (125_000, "2m 05s"),
    ],
)
def test_durations_have_a_fitting_unit(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text
