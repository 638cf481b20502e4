"""Reads the command line and the configuration of small subcommands, and prints their tables."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config, warn_of_config
from codex_py.command_line.parser import CommandParser
from codex_py.config.config import Config
from codex_py.errors import UsageError
from codex_py.streams.standard import print_out
from codex_py.streams.terminal import aligned, on_one_line


def command_parser(*names: str) -> CommandParser:
    """Return a parser for `-c` and the given names.

    A name that begins with `--`, such as `--json`, is a switch. Any other is an optional word of
    the command line, which is None if it is missing.
    """
    parser = CommandParser(Arguments, only={"overrides"})
    for name in names:
        if name.startswith("--"):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, nargs="?")
    return parser


def required(word: str | None, what: str) -> str:
    """Return a word of the command line. Raises a `UsageError` if it is None.

    Args:
        what: the end of the message, such as `server: codex-py mcp get NAME`.
    """
    if word is None:
        raise UsageError(f"say which {what}")
    return word


def command_config(
    options: argparse.Namespace, environment: Mapping[str, str], *, warns: bool = True
) -> Config:
    """Read the configuration of the working folder.

    Args:
        options: the result of a `command_parser`.
        warns: print the warnings of the configuration; False if the command reports them itself.
    """
    config = read_config(Arguments(overrides=options.overrides or ()), environment)
    if warns:
        warn_of_config(config)
    return config


def print_table(rows: Iterable[Sequence[str]]) -> int:
    """Print rows in columns, with each cell made safe for a terminal. Returns the exit code."""
    safe_rows = [[on_one_line(cell) for cell in row] for row in rows]
    lines = [f"{line.rstrip()}\n" for line in aligned(safe_rows)]
    return print_out("".join(lines))
