"""Command lines, as the rules for commands read them. Nothing is expanded, looked up or run.

`plain_commands` finds the commands that a command line runs, if that is certain.
"""

from codex_py.execpolicy.script import plain_commands

__all__ = ["plain_commands"]
