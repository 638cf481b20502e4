"""What the terminal shows in each situation, as it is sent to one of so many columns.

Kept in files by test_looks.py, and drawn by scripts/screens. Questions and lists are in panel_situations.py.
"""

import asyncio
import io
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.text import Text

from codex_py.frontends.tui.agents import AgentNews, working_rows
from codex_py.frontends.tui.cells.item import user_cell
from codex_py.frontends.tui.cells.patch import diff_cells
from codex_py.frontends.tui.composer import Outbox, Submission
from codex_py.frontends.tui.first_frame import BEGINNING
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.keys import SHORTCUTS
from codex_py.frontends.tui.overlay import Overlay, Pages, table
from codex_py.frontends.tui.page import live_rows
from codex_py.frontends.tui.reading import conversation_pages
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.status import Status
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.approval import DENIALS
from codex_py.protocol.event_items import (
    AgentMessage,
    AgentState,
    Change,
    CollabToolCall,
    CommandExecution,
    ContextCompaction,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    TurnTime,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.events import (
    CallDenied,
    CommandInBackground,
    CommandOutputDelta,
    ErrorInfo,
    ItemStarted,
    McpToolCallProgress,
    MessageDelta,
    ReasoningSummaryDelta,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.plans import CLOSING, OPENING
from codex_py.protocol.stream import Usage
from tests.frontends.tui.command_situations import COMMANDS
from tests.frontends.tui.drawing import (
    ANSWER,
    KEYMAP,
    PATCH,
    ROWS,
    THEMES,
    WIDTHS,
    Situation,
    drawn,
    live,
    screen_of,
)
from tests.frontends.tui.panel_situations import PANELS
from tests.frontends.tui.shown import Shown

__all__ = ["ANSWER", "SITUATIONS", "THEMES", "WIDTHS"]


def prompt(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.transcript.print(
        user_cell("Let the parser read 1_000.\nKeep what it refuses.")
    )
    return shown.text


def running(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    script = """cd src && FLAGS=-q pytest -x --tb=short tests/ | tee "$LOG" # all"""
    item = CommandExecution(
        id="1", command=f"/bin/bash -lc '{script}'", status="in_progress"
    )
    output = "collected 3 items\n\x1b[32mtests/test_a.py .\x1b[0m\n\x1b[1;31mFAILED\x1b[0m x\n"
    shown.tell(ItemStarted(item), CommandOutputDelta("1", output))
    shown.time_s += 12
    return live(shown, theme)


def working(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    server = CommandExecution(
        id="1", command="/bin/bash -lc 'npm run dev -- --port 8000 --host'"
    )
    tests = CommandExecution(id="2", command="/bin/bash -lc 'pytest -q'")
    steps = (
        "Read the parser",
        "Let it read underscores",
        "Write tests for all that it refuses",
    )
    plan = [
        TodoEntry(text=f"{n}. {step}", completed=n < 2)
        for n, step in enumerate(steps * 4)
    ]
    shown.tell(
        TurnStarted(),
        ItemStarted(server),
        CommandOutputDelta("1", "\x1b[32mready\x1b[0m\n"),
    )
    shown.tell(CommandInBackground("1"), ItemStarted(TodoList(id="3", items=plan)))
    shown.complete(UserMessage(id="4", text="And the documentation?"))
    shown.tell(ItemStarted(tests), CommandOutputDelta("2", "....\n"))
    agents = {str(n): AgentNews("$ rg number", is_working=True) for n in range(5)}
    rows = working_rows(agents, {"0": "Anna (reviewer)", "1": "Bert"}, width)
    return shown.text + live(shown, theme) + drawn(rows, theme)


def thinking(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    thought = "**Looking at the parser**\n\nIt reads numbers with `float`, which takes underscores."
    shown.tell(TurnStarted(), ReasoningSummaryDelta(thought, 0))
    shown.tell(ReasoningSummaryDelta("**Planning the change**\n\nWhat is **refu", 1))
    heading = shown.transcript.heading
    now = _NOW
    states = [
        Status(working_since=now - 3.5, heard_at=now, thought=heading),
        Status(working_since=now - 125.5, heard_at=now - 60.5),
        Status(
            working_since=now - 9.5,
            heard_at=now,
            is_calling=True,
            commands={"1": ("a", 0)},
        ),
        Status(working_since=now - 9.5, is_asking=True, questions=2, asked=1),
        Status(
            working_since=now - 9.5,
            announced="Approve: pip install requests",
            questions=2,
        ),
        Status(working_since=now - 9.5, waiting_for=lambda: ["docs", "tickets"]),
        Status(
            working_since=now - 9.5, hooks=[("hook: PreToolUse", now - 2)], heard_at=now
        ),
        Status(commands={"1": ("a", 0)}, agents=2),
    ]
    for state in states[:3]:
        state.known["turn-usage"] = "12.3k tokens, $0.012"
    return live(shown, theme) + drawn(_working(states, width, theme), theme)


def queue(width: int, theme: Theme) -> str:
    """What waits to be sent, below a command that runs."""
    shown = Shown(width, theme)
    shown.tell(
        TurnStarted(), ItemStarted(CommandExecution(id="1", command="pytest -q"))
    )
    ui: Any = SimpleNamespace(
        screen=screen_of(width, theme),
        outbox=Outbox(
            steered=[Submission("And the documentation?")],
            queue=[
                Submission("Then release it. " * 9, queued=True),
                Submission("/review"),
            ],
        ),
        session_half=shown.transcript,
        keymap=KEYMAP,
        status=Status(working_since=_NOW - 9, heard_at=_NOW, is_calling=True),
        panels=SimpleNamespace(top=None),
    )
    with patch("time.monotonic", lambda: _NOW):
        return drawn(live_rows(ui), theme)


def retries(width: int, theme: Theme) -> str:
    now = _NOW
    causes = (
        "unexpected status 500 Internal Server Error: Something went wrong at the provider",
        "unexpected status 429 Too Many Requests: Rate limit reached for gpt-5.5",
        "stream disconnected before completion: the connection was refused",
    )
    states = [
        Status(working_since=now - 52.5, reconnecting=(cause, 7, now + wait_s))
        for cause, wait_s in zip(causes, (3.5, 19.5, -1), strict=True)
    ]
    shown = Shown(width, theme)
    shown.tell(TurnStarted(), MessageDelta("The parser\n\nreads"))
    refused = (
        "unexpected status 401 Unauthorized: Incorrect API key provided, "
        "url: https://api.example.com/v1/responses (key from environment variable API_KEY)"
    )
    again = "Enter on an empty prompt, or /retry, tries again."
    shown.tell(TurnFailed(ErrorInfo(f"{refused}\n{again}", code="http_401")))
    shown.tell(TurnStarted(), TurnFailed(ErrorInfo("aborted", code="aborted")))
    return drawn(_working(states, width, theme), theme) + shown.text


def _working(states: Sequence[Status], width: int, theme: Theme) -> list[Fragments]:
    with patch("time.monotonic", lambda: _NOW):
        return [each.working(width) for each in states]


def commands(width: int, theme: Theme) -> str:
    """Those that are over."""
    shown = Shown(width, theme)

    def ran(command: str, **fields: Any) -> CommandExecution:
        fields = {"status": "completed", "exit_code": 0, "duration_ms": 1240, **fields}
        return CommandExecution(id="1", command=f"/bin/bash -lc '{command}'", **fields)

    script = (
        "cat > x.py <<E\n"
        + "\n".join(f"print({n})" for n in range(30))
        + "\nE\npython3 x.py"
    )
    declined = ran(
        "rm -rf build", status="declined", exit_code=None, aggregated_output="no"
    )
    shown.tell(TurnStarted())
    shown.complete(
        ran("true"),
        ran("cat src/parser.py"),
        ran("head -40 src/lexer.py"),
        ran("cat src/parser.py"),
        ran("ls tests"),
        ran("rg number src"),
        ran(
            "git log --oneline | head -40",
            aggregated_output="\n".join(map(str, range(40))),
        ),
        ran(script, aggregated_output="x" * 500),
        ran("sleep 100", status="failed", exit_code=130, was_stopped=True),
        ran("npm run dev", status="failed", exit_code=None),
    )
    shown.complete(
        ran("ls src", aggregated_output="parser.py", is_users=True), declined
    )
    shown.tell(
        CallDenied("exec_command", "exec command rejected by user: use make clean")
    )
    shown.tell(CallDenied("apply_patch", "patches are refused in Plan mode"))
    return shown.text


def failed(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    output = (
        "tests/test_a.py \x1b[32m.\x1b[31mF\x1b[0m\n"
        "\x1b[1mE   assert \x1b[0;36m1\x1b[0m == 2\x1b]0;title\x07\x1b[2J\n"
        "\x1b[31mFAILED\x1b[0m tests/test_a.py::test_b\n"
    )
    shown.complete(
        CommandExecution(
            id="1",
            command="/bin/bash -lc 'pytest -q tests/test_a.py'",
            status="failed",
            exit_code=1,
            duration_ms=1240,
            aggregated_output=output,
        )
    )
    return shown.text


def patched(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.complete(FileChange(id="1", changes=[], status="completed", diff=PATCH))
    return shown.text


def patches(width: int, theme: Theme) -> str:
    """One file, many, one that is being written, and those that were not made."""
    shown = Shown(width, theme)
    one = PATCH.partition("diff --git a/tests")[0]
    renamed = "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py\n"
    deleted = "diff --git a/c.py b/c.py\ndeleted file mode 100644\n--- a/c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-c = 1\n"
    new = "".join(
        f"diff --git a/new{n}.py b/new{n}.py\nnew file mode 100644\n--- /dev/null\n+++ b/new{n}.py\n@@ -0,0 +1,30 @@\n"
        + "".join(f"+x{line} = {line}\n" for line in range(30))
        for n in range(8)
    )
    for diff in (one, one + renamed + deleted, new):
        shown.complete(FileChange(id="1", changes=[], status="completed", diff=diff))
    changes = [Change(path="/repo/src/parser.py", kind="update")]
    error = {
        "code": "PatchFailed",
        "message": "Failed to find expected lines in src/parser.py:\n    value = 1",
    }
    refused = {"code": next(iter(DENIALS)), "message": "patch rejected by user"}
    shown.complete(FileChange(id="1", changes=changes, status="failed", error=error))
    shown.complete(FileChange(id="1", changes=changes, status="failed", error=refused))
    shown.tell(ItemStarted(FileChange(id="2", changes=changes)))
    return shown.text + live(shown, theme)


def calls(width: int, theme: Theme) -> str:
    """Of MCP servers, about agents, in the web, of pictures and of questions."""
    shown = Shown(width, theme)
    found = {
        "content": [{"type": "text", "text": "\n".join(f"hit {n}" for n in range(9))}]
    }
    asked = {"questions": [{"id": "a", "question": "Which format?"}]}
    given = {
        "content": [
            {"type": "text", "text": '{"answers": {"a": {"answers": ["JSON"]}}}'}
        ]
    }
    why = "request_user_input is unavailable in Default mode"
    refused = {"content": [{"type": "text", "text": why}]}
    names = {"id": "Anna"}
    shown.complete(
        McpToolCall(
            id="1", server="docs", tool="search", arguments={"query": "numbers"}, result=found,
            status="completed",
        ),
        McpToolCall(
            id="2", server="docs", tool="read", arguments={}, error={"message": "no such page"},
            status="failed",
        ),
        McpToolCall(
            id="3", server="codex", tool="view_image", arguments={"path": "pic.png"},
            status="completed",
        ),
        McpToolCall(
            id="4", server="codex", tool="request_user_input", arguments=asked, result=given,
            status="completed",
        ),
        McpToolCall(
            id="4", server="codex", tool="request_user_input", arguments=asked, result=refused,
            status="failed",
        ),
        WebSearch(id="5", query="underscores in numbers"),
        CollabToolCall(
            id="6", tool="spawn_agent", sender_thread_id="x", receiver_thread_ids=["id"],
            prompt="Read the tests.", status="completed", names=names,
        ),
        CollabToolCall(
            id="7", tool="wait", sender_thread_id="x", receiver_thread_ids=["id"], names=names,
            agents_states={"id": AgentState("completed", "They pass.")}, status="completed",
        ),
    )  # fmt: skip
    call = McpToolCall(
        id="8", server="docs", tool="search", arguments={"query": "more"}
    )
    shown.tell(ItemStarted(call), McpToolCallProgress("8", "2/4 pages"))
    return shown.text + live(shown, theme)


def plans(width: int, theme: Theme) -> str:
    """A plan that is followed, and one that is proposed in Plan mode."""
    shown = Shown(width, theme)
    steps = [TodoEntry(text="Read the parser", completed=True)]
    steps += [
        TodoEntry(text="Let it read underscores", completed=False, in_progress=True)
    ]
    steps += [
        TodoEntry(text="Write tests for all that it refuses " * 3, completed=False)
    ]
    shown.complete(TodoList(id="1", items=steps, explanation="The tests come last."))
    shown.answer(
        f"Here it is.\n\n{OPENING}\n# Numbers\n\n1. Read\n2. Write\n\n```sh\nls\n```\n{CLOSING}\n"
    )
    status = Status(known={"model-with-reasoning": "gpt-5.5", "mode": "Plan mode"})
    return shown.text + drawn([status.line(width)], theme)


def replayed(width: int, theme: Theme) -> str:
    """An earlier conversation, the notices around it, and its compaction."""
    shown = Shown(width, theme)
    shown.transcript.separate(
        "New session; the one before is 0199a213-81c0-7800-8aa1-bbab2a035a53"
    )
    items: list[ThreadItem] = [
        UserMessage(
            id="1", text="Let the parser read 1_000.", images=["/repo/pic.png"]
        ),
        ReasoningSummary(id="2", text="**Looking around**\n\nWhere?"),
        FileChange(id="3", diff=PATCH, changes=[], status="completed"),
        AgentMessage(id="4", text="Done."),
        TurnTime(id="5", duration_ms=63_000),
        ErrorItem(
            id="6", message="The model is another one than the session had: gpt-5.5"
        ),
    ]
    shown.transcript.replay(items)
    for status in ("completed", "failed"):
        shown.complete(ContextCompaction(id="7", status=status))
    shown.transcript.notice("Undid 1 turn: src/parser.py, tests/test_parser.py")
    shown.transcript.notice(
        "3 files are not brought back: they were changed since", "warning"
    )
    shown.tell(ItemStarted(ContextCompaction(id="8")))
    return shown.text + live(shown, theme)


def wide(width: int, theme: Theme) -> str:
    """Characters of two columns, of several code points, tabs, and a line without end."""
    text = (
        "日本語のテキストです。この行は長いので、折り返される必要があります。CJK: 漢字かな交じり文。\n\n"
        "| 名前 | 値 |\n|---|---|\n| 漢字の列が長いときの折り返しはどうなりますか | ✅ |\n| b | 2 |\n\n"
        "1. 👩‍💻 first with **太字**\n2. ✅ second\n\n> 引用 quoted\n\n```\n\ttab\n"
        + "x" * 200
        + "\n```\n"
    )
    shown = Shown(width, theme)
    shown.answer(text)
    printed = f"{'y' * 500}\n\t漢字\ta\tb\r\nlast"
    shown.complete(
        CommandExecution(
            id="1", command="/bin/bash -lc 'cat wide'", status="completed", exit_code=0,
            aggregated_output=printed,
        )
    )  # fmt: skip
    return shown.text


def streaming(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    for start in range(0, len(ANSWER), 5):
        shown.tell(MessageDelta(ANSWER[start : start + 5]))
    return shown.text + live(shown, theme)


def overlay(width: int, theme: Theme) -> str:
    """A conversation with a search, the keys, the changes of the folder, and a paste."""
    items = [
        UserMessage(id="1", text="Let the parser read 1_000."),
        ReasoningSummary(id="2", text="**Looking around**\n\nWhere are numbers read?"),
        FileChange(id="3", diff=PATCH, changes=[], status="completed"),
        AgentMessage(id="4", text=ANSWER),
    ]
    renderer = Renderer(theme).whole()
    conversation, _ = conversation_pages("The conversation", items, None, renderer)
    diff, paste = Pages("Changes"), Pages("Pasted")
    for cell in diff_cells(PATCH):
        diff.add(cell)
    paste.add(Text("\n".join(f"{n} of many lines" for n in range(40))), space=False)
    question = Status(announced="Approve: pip install requests", questions=2)

    async def shown(pages: Pages, status: Status, searched: str = "") -> Fragments:
        panel = Overlay(pages, renderer, status.working)
        panel.changed, panel.named = lambda: None, KEYMAP.named
        if searched:
            panel.search(searched)
        return panel.text()

    named = KEYMAP.named
    keys = [(named(keys, all=True), told) for keys, told in SHORTCUTS]
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))
    with set_app(Application[None](input=DummyInput(), output=output)):
        rows = [
            asyncio.run(each)
            for each in (
                shown(conversation, Status(), "parser"),
                shown(table("Keys", keys), Status()),
                shown(diff, Status()),
                shown(paste, question),
            )
        ]
    return drawn(rows, theme)


def status_line(width: int, theme: Theme) -> str:
    lines: list[Fragments] = []
    for left, permissions, hint in (
        (64, "workspace-write", "/ commands, @ files, ? keys"),
        (19, "read-only", ""),
        (4, "danger-full-access", ""),
    ):
        known = {
            "model-with-reasoning": "gpt-5.5 high",
            "current-dir": "~/repo",
            "git-branch": "main",
            "permissions": permissions,
            "context-remaining": f"{left}% left",
            "turn-usage": "12.3k tokens, $0.012",
        }
        lines.append(Status(known=known, hint=hint).line(width))
    return drawn(lines, theme)


def greeting(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.transcript.greet(
        "gpt-5.5 high · changes files in this folder, asks before more", BEGINNING
    )
    return "codex-py 0.1.0 in ~/repo\n" + shown.text


def end_of_turn(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.tell(
        TurnStarted(), ReasoningSummaryDelta("**Looking at the parser**\n\nIt", 0)
    )
    shown.time_s += 4
    thought = "**Looking at the parser**\n\nIt reads numbers."
    shown.complete(ReasoningSummary(id="1", text=thought))
    shown.answer("Done.")
    shown.time_s += 8
    shown.tell(TurnCompleted(Usage(), diff=PATCH))
    return shown.text


_NOW: Final = 6_000.0

SITUATIONS: Final[Mapping[str, Situation]] = {
    "prompt": prompt,
    "thinking": thinking,
    "queue": queue,
    "retries": retries,
    "running command": running,
    "working": working,
    "commands": commands,
    "failed command": failed,
    "patch of two files": patched,
    "patches": patches,
    "calls": calls,
    "plans": plans,
    "streaming": streaming,
    "wide characters": wide,
    "replayed": replayed,
    "overlay": overlay,
    "status line": status_line,
    "greeting": greeting,
    "end of turn": end_of_turn,
    **PANELS,
    **COMMANDS,
}
