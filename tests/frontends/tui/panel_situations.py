"""What stands in the composer's place, or below it: questions, lists, suggestions. See situations.py."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings

from codex_py.app.review.findings import Finding, ReviewReport
from codex_py.config.declared.settings import Settings
from codex_py.config.skills import Skill
from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.compose.completion import (
    CommandName,
    Completion,
    Source,
    Suggestion,
    command_source,
    skill_source,
)
from codex_py.frontends.tui.composer import Composer, composer_window
from codex_py.frontends.tui.findings import FindingList
from codex_py.frontends.tui.first_run import FirstPage
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Panel, TextField, field_of, yes_or_no
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.questions import TerminalElicitor, ask_user
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.mcp import Elicitation, UserQuestion
from tests.frontends.tui.drawing import (
    PATCH,
    Situation,
    asked,
    drawn,
    panel_text,
    screen_of,
    window_text,
)
from tests.frontends.tui.shown import Shown


def suggestions(width: int, theme: Theme) -> str:
    """Commands, skills and files that are offered, and nothing that fits."""
    names = [
        CommandName(f"command{n}", "what it is for, in a few words") for n in range(34)
    ]
    folder: Any = None
    skills = [
        Skill(name, "how it is done here, step by step, " * 3, Path("/s"), folder)
        for name in ("release", "review-a-change")
    ]
    files = [
        Suggestion(name, name)
        for name in ("src/parser.py", "tests/test_parser.py", "漢字.py")
    ]
    sources: Sequence[Source] = [
        command_source(lambda: names),
        skill_source(lambda: skills),
        Source(_AT, lambda _: files),
    ]
    buffer = Buffer()
    offered = Completion(buffer, sources, lambda: None)
    text = ""
    for typed in ("/co", "/zzz", "$re", "@par"):
        buffer.document = Document(typed, len(typed))
        offered.update()
        offered.move(1)
        text += drawn(offered.rows(width, 24), theme) + "\n"
    return text


def approvals(*requests: ApprovalRequest) -> Situation:
    def situation(width: int, theme: Theme) -> str:
        shown = Shown(width, theme)

        def question(request: ApprovalRequest) -> Callable[[], Panel[Any]]:
            screen = screen_of(width, theme)
            overlays: Any = None
            return asked(
                lambda panels: TerminalApprover(
                    panels, shown.transcript, screen, overlays
                ).review(request)
            )

        return panel_text(width, theme, *map(question, requests))

    return situation


def questions(width: int, theme: Theme) -> str:
    """Of the model, of MCP servers, and of the program."""
    options = (
        ("JSON", "for programs"),
        ("Text", "for people, with units and words " * 3),
    )
    asks = (
        UserQuestion("a", "Format", "Which format should the numbers have?", options),
        UserQuestion("b", "", "And where?", options),
    )
    form = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "of the ticket"}
        },
        "required": ["name"],
    }
    full = "Do you want the agent to have full access?"
    return panel_text(
        width,
        theme,
        asked(
            lambda panels: ask_user(panels, Elicitation("codex-py", "", questions=asks))
        ),
        asked(
            lambda panels: TerminalElicitor(panels).elicit(
                Elicitation("tickets", "New?", form)
            )
        ),
        asked(
            lambda panels: TerminalElicitor(panels).elicit(
                Elicitation("tickets", "Log in.", url="https://example.com/login")
            )
        ),
        lambda: TextField(
            [("bold", "What should be done instead?")], field=field_of("use make clean")
        ),
        lambda: yes_or_no(
            [("bold", full)], "Yes, give it full access", "No", by_letter=False
        ),
    )


def first_run(width: int, theme: Theme) -> str:
    """Where a server of this machine answers."""
    servers = {"ollama": {"model": "qwen3-coder:30b"}}
    return panel_text(width, theme, lambda: FirstPage(servers, field_of()))


def lists(width: int, theme: Theme) -> str:
    """Models, sessions with a preview, and prompts to go back to."""
    models = [
        MenuOption(
            f"gpt-{n}-codex{'-mini' * (n % 2)}",
            n,
            note=f"plain work, quick · ${n}.25 · 272k window",
        )
        for n in range(34)
    ]
    sessions = [
        MenuOption("Let the parser read 1_000", 1, note="2m ago · main"),
        MenuOption(
            "Why does tests/test_login.py fail on every second Monday of the month?",
            2,
            note="2026-11-02 · feature/numbers",
        ),
    ]

    prompts = [
        MenuOption(
            "Let the parser read 1_000", 1, note="Nov 27 18:02 · before the compaction"
        ),
        MenuOption("And now the tests", 2, note="09:15 · 2 files +14 \u22123"),
    ]

    async def preview(_: int) -> str:
        return "    \u203a Let the parser read 1_000.\n    • Done."

    return panel_text(
        width,
        theme,
        lambda: Picker("Model", models, selected=17),
        lambda: Picker(
            "Resume a session (this folder, last used, active)",
            sessions,
            preview=preview,
            selected=1,
        ),
        lambda: Picker("Go back to a prompt", prompts, selected=1),
        lambda: Picker("Nothing", list[MenuOption[int]]()),
    )


def findings(width: int, theme: Theme) -> str:
    body = "Numbers such as `1__000` pass. They are **refused** by the manual, and by every parser."
    found = [
        Finding(
            f"[P{n}] Two underscores in a row pass",
            body,
            n,
            0.9,
            "src/parser.py",
            99,
            100,
            True,
            str(n),
            code=_CODE,
        )
        for n in range(3)
    ]
    review = ReviewReport(tuple(found), "patch is incorrect", "Numbers need care.", 0.9)
    return panel_text(width, theme, lambda: FindingList(review, Path("/nowhere")))


def composer(width: int, theme: Theme) -> str:
    """Empty, with a folded paste and an image, with many lines, and with a command of the user's."""
    config: Any = SimpleNamespace(
        cwd=Path("/"),
        home=Path("/"),
        settings=Settings({"history": {"persistence": "none"}}),
    )

    async def rows() -> str:
        shown = ""
        for parts in (
            [],
            ["Read this ", "line\n" * 40, " and this ", Path("/repo/pic.png"), "."],
            ["\n".join(f"line {n} of a prompt" for n in range(30))],
            ["!git status"],
        ):
            written = Composer(config, lambda _: None, sources=(), changed=lambda: None)
            for part in parts:
                is_folded = isinstance(part, Path) or part.count("\n") > 30
                written.buffer.insert_text(
                    written.attachments.mark(part) if is_folded else str(part)
                )
            window = composer_window(written, screen_of(width, theme), KeyBindings())
            shown += window_text(width, theme, window)
        return shown

    return asyncio.run(rows())


_AT: Final = re.compile(r"@(\S*)\Z")
_CODE: Final = """\
    if "__" in text:
        raise ParseError(text)"""
PANELS: Final[Mapping[str, Situation]] = {
    "composer": composer,
    "suggestions": suggestions,
    "question for a command": approvals(
        ApprovalRequest(
            kind="command",
            summary="/bin/bash -lc 'rm -rf build && pip install --upgrade \"requests<3\"'",
            cwd=Path("/repo"),
            reason="`rm -rf` deletes without asking; outside of the sandbox: I need the newest one.",
            justification="I need the newest one.",
            prefix=("pip", "install"),
        ),
        ApprovalRequest(
            kind="command",
            summary="/bin/bash -lc 'curl -O https://example.com/numbers.json'",
            cwd=Path("/elsewhere"),
            reason="it failed in the sandbox, which has no network",
            agent="Anna",
        ),
    ),
    "question for a patch": approvals(
        ApprovalRequest(
            kind="patch", summary=PATCH, cwd=Path("/repo"), reason="src is read-only"
        )
    ),
    "question for a host": approvals(
        ApprovalRequest(
            kind="network",
            summary="files.example.com:443",
            cwd=Path("/repo"),
            reason="a command wants to reach files.example.com, which is not on the list of domains",
            prefix=("files.example.com",),
        )
    ),
    "question for a tool": approvals(
        ApprovalRequest(
            kind="mcp",
            summary='tickets/create {"title": "Numbers", "labels": ["a"]}',
            cwd=Path("/repo"),
        )
    ),
    "questions": questions,
    "first run": first_run,
    "lists": lists,
    "findings": findings,
}
