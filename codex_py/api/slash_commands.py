"""Slash commands of the terminal that a package adds.

The package names each command, without its slash, in its `pyproject.toml`:

    [project.entry-points."codex_py.slash_commands"]
    words = "codex_py_words:command"

The value is a `SlashCommand`, whose function gets the `Terminal` and the text after the name. It is
imported when the user types the command, or lists the commands with `/` or `/help`, and by nothing
else: what is slow to import belongs in the function. A command of the program itself and a prompt
of the user cannot be replaced.

`Terminal.conversation` returns a `Conversation`: what was said, which model answered, and the id of the
session. Its items are those of `items`. `find_session` of `api.session_files` finds its file.
"""

from codex_py.app.slash_commands import SlashCommand, Terminal
from codex_py.app.views.conversation import Conversation
from codex_py.errors import CodexError, UsageError
from codex_py.protocol import event_items as items

__all__ = [
    "CodexError",
    "Conversation",
    "SlashCommand",
    "Terminal",
    "UsageError",
    "items",
]
