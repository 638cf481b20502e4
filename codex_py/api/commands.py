"""Subcommands that a package adds, and what they are made of.

The package names each command in its `pyproject.toml`:

    [project.entry-points."codex_py.commands"]
    greet = "codex_py_greet:command"

The value is a `Command`. It is imported when the command line names it, and by nothing else. A
command of the program itself cannot be replaced.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codex_py.command_line.parser import (
    OneOf,
    count,
    flag,
    not_empty,
    option,
    suggestion,
    working_folder,
)
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.protocol.frozen import frozen
from codex_py.streams.standard import print_json, print_out, print_table, tell

__all__ = [
    "CodexError",
    "Command",
    "ExitCode",
    "OneOf",
    "UsageError",
    "count",
    "flag",
    "frozen",
    "not_empty",
    "option",
    "print_json",
    "print_out",
    "print_table",
    "suggestion",
    "tell",
    "working_folder",
]


@frozen
class Command:
    """A subcommand, or one member of a group of subcommands."""

    run: Callable[[Any, Mapping[str, str]], int] | None = None
    """Runs the command, and returns the exit code. It gets an instance of `options`, or the words
    behind the name if there is no such class, and the environment. A `CodexError` that it raises is
    printed as one sentence, and its exit code is used. None for a group."""
    help: str | Path = ""
    """The text of `--help`, in 80 columns, or the file with it. Completion offers the options that
    stand in it. A member of a group of the program may have none: its options stand in the help of
    the group."""
    options: type[Any] | None = None
    """A class whose fields declare the options in their annotations:
    `loud: Annotated[bool, flag("--loud")] = False`. `option()` without a name is a word. A field
    `literal_words: tuple[str, ...] = ()` gets the words after `--`."""
    members: Mapping[str, "Command"] = MappingProxyType({})
    """The commands of a group by name, for `codex-py NAME MEMBER`."""

    def help_text(self) -> str:
        """Return the text of `help`. It is empty if there is none."""
        if isinstance(self.help, Path):
            return self.help.read_text(encoding="utf-8")
        return self.help
