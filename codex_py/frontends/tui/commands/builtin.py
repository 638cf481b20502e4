"""All commands of the terminal, in the order in which they are listed."""

from typing import Final

from codex_py.frontends.tui.commands.changes import CHANGES
from codex_py.frontends.tui.commands.mcp import MCP
from codex_py.frontends.tui.commands.program import PROGRAM
from codex_py.frontends.tui.commands.prompts import PROMPTS
from codex_py.frontends.tui.commands.sessions import SESSIONS
from codex_py.frontends.tui.commands.settings import SETTINGS

BUILTIN: Final = (*SETTINGS, *MCP, *CHANGES, *SESSIONS, *PROMPTS, *PROGRAM)
