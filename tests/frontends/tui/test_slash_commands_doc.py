"""docs/slash-commands.md lists the slash commands that the terminal has: their names, arguments, and when they run.

Tests `frontends/tui/commands/registry.py`.
"""

import re

from codex_py.app.slash_commands import own_slash_commands, slash_command
from codex_py.frontends.tui.commands.hooks import HOOKS
from codex_py.frontends.tui.commands.program import PROGRAM, PROMPTS
from codex_py.frontends.tui.commands.review import REVIEW
from codex_py.frontends.tui.commands.rewind import REWIND
from codex_py.frontends.tui.commands.sessions import SESSIONS
from codex_py.frontends.tui.commands.settings import SETTINGS
from codex_py.frontends.tui.commands.undoing import UNDOING
from tests.support.documents import DOCS

BUILT_IN = (
    *(*SETTINGS, *HOOKS, *UNDOING, *REWIND),
    *(*SESSIONS, *REVIEW, *PROMPTS, *PROGRAM),
)


def usage(name: str, argument: str) -> str:
    return f"/{name} {argument}".rstrip()


def test_the_page_lists_every_command_and_says_which_ones_wait() -> None:
    page = (DOCS / "slash-commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`/.*?)( \*)? \| \S", page, re.MULTILINE)
    listed = {
        shown.replace("\\|", "|"): not mark
        for cell, mark in rows
        for shown in re.findall(r"`(.+?)`", cell)
    }
    expected = {
        usage(name, each.argument): each.while_working
        for each in BUILT_IN
        for name in (each.name, *each.aliases)
    }
    for name in own_slash_commands():
        command = slash_command(name)
        assert command is not None
        expected[usage(name, command.argument)] = True
    assert listed == expected
