"""What the terminal shows in each situation, as it is sent to one of so many columns.

Kept in files by test_looks.py, and drawn by scripts/screens.
"""

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import print_formatted_text
from prompt_toolkit.styles import Style

from codex_py.frontends.tui.agents import AgentNews, working_rows
from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.cells.item import user_cell
from codex_py.frontends.tui.compose.completion import CommandName, Completion, command_source
from codex_py.frontends.tui.fitting import Fragments, joined
from codex_py.frontends.tui.overlay import Overlay
from codex_py.frontends.tui.reading import conversation_pages
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.status import Status
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.event_items import (
    AgentMessage,
    CommandExecution,
    FileChange,
    ReasoningSummary,
    TodoEntry,
    TodoList,
    UserMessage,
)
from codex_py.protocol.events import (
    CommandInBackground,
    CommandOutputDelta,
    ItemStarted,
    MessageDelta,
    ReasoningSummaryDelta,
    TurnCompleted,
    TurnStarted,
)
from codex_py.protocol.stream import Usage
from tests.frontends.tui.shown import Shown

WIDTHS: Final = (60, 80, 140)
THEMES: Final[Mapping[str, Theme]] = {
    name: Theme(color_system="truecolor", background=name) for name in ("dark", "light")
}
ROWS: Final = 30

PATCH: Final = """\
diff --git a/src/parser.py b/src/parser.py
--- a/src/parser.py
+++ b/src/parser.py
@@ -98,5 +98,6 @@ class Parser:
     def number(self, token: Token) -> float:
-        value = float(token.text)
+        value = float(token.text.replace("_", ""))
+        self.count += 1
         if value < 0:
             raise ParseError(f"a negative number: {token.text!r}")
         return value
diff --git a/tests/test_parser.py b/tests/test_parser.py
new file mode 100644
--- /dev/null
+++ b/tests/test_parser.py
@@ -0,0 +1,2 @@
+def test_underscores_are_left_out() -> None:
+    assert Parser("1_000").parse() == 1000.0  # 漢字
"""
ANSWER: Final = """\
## What changed

The parser reads `1_000` as a number; **negative ones** are refused, see [the manual](https://example.com/numbers).

```python
def number(token: Token) -> float:
    return float(token.text.replace("_", ""))  # a comment that is too long \
for narrow terminals and for wide ones, which is well above 140 columns
```

| file | change |
|------|--------|
| `src/parser.py` | reads underscores in numbers, counts what it has read, and says which number was refused |
| `tests/test_parser.py` | new |

- [x] the parser
- [ ] its documentation, of which **some"""


def prompt(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.transcript.print(user_cell("Let the parser read 1_000.\nKeep what it refuses."))
    return shown.text


def running(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    script = """cd src && FLAGS=-q pytest -x --tb=short tests/ | tee "$LOG" # all"""
    item = CommandExecution(id="1", command=f"/bin/bash -lc '{script}'", status="in_progress")
    output = "collected 3 items\n\x1b[32mtests/test_a.py .\x1b[0m\n\x1b[1;31mFAILED\x1b[0m x\n"
    shown.tell(ItemStarted(item), CommandOutputDelta("1", output))
    shown.time_s += 12
    return live(shown, theme)


def working(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    server = CommandExecution(id="1", command="/bin/bash -lc 'npm run dev -- --port 8000 --host'")
    tests = CommandExecution(id="2", command="/bin/bash -lc 'pytest -q'")
    steps = ("Read the parser", "Let it read underscores", "Write tests for all that it refuses")
    plan = [TodoEntry(text=f"{n}. {step}", completed=n < 2) for n, step in enumerate(steps * 4)]
    shown.tell(
        TurnStarted(), ItemStarted(server), CommandOutputDelta("1", "\x1b[32mready\x1b[0m\n")
    )
    shown.tell(CommandInBackground("1"), ItemStarted(TodoList(id="3", items=plan)))
    shown.complete(UserMessage(id="4", text="And the documentation?"))
    shown.tell(ItemStarted(tests), CommandOutputDelta("2", "....\n"))
    agents = {str(n): AgentNews("$ rg number", is_working=True) for n in range(5)}
    rows = working_rows(agents, {"0": "Anna (reviewer)", "1": "Bert"}, width)
    return shown.text + live(shown, theme) + drawn(rows, theme)


def menu(width: int, theme: Theme) -> str:
    """Commands that are offered."""
    names = [CommandName(f"command{n}", "what it is for, in a few words") for n in range(34)]
    buffer = Buffer(document=Document("/co", 3))
    offered = Completion(buffer, [command_source(lambda: names)], lambda: None)
    offered.update()
    offered.move(1)
    rows = drawn([offered.rows(width, 24)], theme)
    buffer.document = Document("/zzz", 4)
    offered.update()
    assert offered.is_shown
    return rows + drawn([offered.rows(width, 24)], theme)


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


def patch(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.complete(FileChange(id="1", changes=[], status="completed", diff=PATCH))
    return shown.text


def streaming(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    for start in range(0, len(ANSWER), 5):
        shown.tell(MessageDelta(ANSWER[start : start + 5]))
    return shown.text + live(shown, theme)


def question_for_command(width: int, theme: Theme) -> str:
    return question(
        ApprovalRequest(
            kind="command",
            summary="/bin/bash -lc 'rm -rf build && pip install --upgrade \"requests<3\"'",
            cwd=Path("/repo"),
            reason="`rm -rf` deletes without asking; outside of the sandbox: I need the newest one.",
            justification="I need the newest one.",
            prefix=("pip", "install"),
        ),
        width,
        theme,
    )


def question_for_patch(width: int, theme: Theme) -> str:
    request = ApprovalRequest(kind="patch", summary=PATCH, cwd=Path("/repo"))
    return question(request, width, theme)


def question(request: ApprovalRequest, width: int, theme: Theme) -> str:
    """The panel that asks whether a call may run."""
    shown = Shown(width, theme)
    screen = SimpleNamespace(theme=theme, width=width, height=ROWS)
    panels: list[Any] = []

    class Asked(Exception):
        pass

    async def ask(panel: Callable[[], Any], **_: object) -> None:
        panels.append(panel())
        raise Asked

    approver: Any = TerminalApprover(SimpleNamespace(ask=ask), shown.transcript, screen, None)  # pyright: ignore[reportArgumentType]
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))
    with set_app(Application[None](input=DummyInput(), output=output)):
        with suppress(Asked):
            asyncio.run(approver.review(request))
        fragments = panels[0].container.children[0].content.text()
    return drawn([fragments], theme)


def overlay(width: int, theme: Theme) -> str:
    """A conversation in the overlay, with a search, from its beginning."""
    items = [
        UserMessage(id="1", text="Let the parser read 1_000."),
        ReasoningSummary(id="2", text="**Looking around**\n\nWhere are numbers read?"),
        FileChange(id="3", diff=PATCH, changes=[], status="completed"),
        AgentMessage(id="4", text=ANSWER),
    ]

    async def shown() -> Fragments:
        renderer = Renderer(theme).whole()
        pages, _ = conversation_pages("The conversation", items, (), renderer)
        panel = Overlay(pages, renderer, lambda _theme, _columns: [])
        panel.changed = lambda: None
        panel.search("parser")
        return panel.text()

    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))
    with set_app(Application[None](input=DummyInput(), output=output)):
        return drawn([asyncio.run(shown())], theme)


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
        lines.append(Status(known=known, hint=hint).line(theme, width))
    return drawn(lines, theme)


def greeting(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.transcript.greet("gpt-5.5 high · changes files in this folder, asks before more")
    return "codex-py 0.1.0 in ~/repo\n" + shown.text


def end_of_turn(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.tell(TurnStarted(), ReasoningSummaryDelta("**Looking at the parser**\n\nIt", 0))
    shown.time_s += 4
    thought = "**Looking at the parser**\n\nIt reads numbers."
    shown.complete(ReasoningSummary(id="1", text=thought))
    shown.answer("Done.")
    shown.time_s += 8
    shown.tell(TurnCompleted(Usage(), diff=PATCH))
    return shown.text


def live(shown: Shown, theme: Theme) -> str:
    return drawn(shown.transcript.live(shown.width, ROWS), theme)


def drawn(rows: Sequence[Fragments], theme: Theme) -> str:
    """What prompt-toolkit sends of them, without what moves the cursor."""
    file = io.StringIO()
    output = Vt100_Output(file, lambda: Size(rows=ROWS, columns=500), enable_cpr=False)
    depth = ColorDepth.DEPTH_24_BIT if theme.color else ColorDepth.DEPTH_1_BIT
    style = Style.from_dict(theme.fragment_styles())
    print_formatted_text(
        FormattedText(joined(rows)),
        output=output,
        style=style,
        color_depth=depth,
        include_default_pygments_style=False,
    )
    return (
        file.getvalue()
        .replace("\r", "")
        .replace("\x1b[?7h", "")
        .replace("\x1b[0m\x1b[0m", "\x1b[0m")
    )


SITUATIONS: Final[Mapping[str, Callable[[int, Theme], str]]] = {
    "prompt": prompt,
    "running command": running,
    "working": working,
    "menu": menu,
    "failed command": failed,
    "patch of two files": patch,
    "question for a command": question_for_command,
    "question for a patch": question_for_patch,
    "streaming": streaming,
    "overlay": overlay,
    "status line": status_line,
    "greeting": greeting,
    "end of turn": end_of_turn,
}
