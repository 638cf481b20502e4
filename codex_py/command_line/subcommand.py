"""Reads the command line and the configuration of small subcommands."""

import argparse
from collections.abc import Mapping

from codex_py.command_line.arguments import Arguments, Overrides
from codex_py.command_line.configuration import read_config, warn_of_config
from codex_py.command_line.parser import CommandParser
from codex_py.config.config import Config
from codex_py.errors import UsageError
from codex_py.protocol.frozen import frozen


@frozen
class ConfigOptions:
    """The options of a command that reads the configuration: `-c KEY=VALUE` and its like.

    A class with the options of such a command is a subclass of this one.
    """

    overrides: Overrides = ()


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
    options: argparse.Namespace | ConfigOptions,
    environment: Mapping[str, str],
    *,
    warns: bool = True,
) -> Config:
    """Read the configuration of the working folder.

    Args:
        options: the result of a `command_parser`, or a subclass of `ConfigOptions`.
        warns: print the warnings of the configuration; False if the command reports them itself.

    Raises:
        ConfigError: the configuration cannot be read, or has a mistake.
    """
    config = read_config(Arguments(overrides=options.overrides or ()), environment)
    if warns:
        warn_of_config(config)
    return config
