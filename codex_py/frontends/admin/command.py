"""What the commands of this package share: `-c`, the configuration, and words that may be missing."""

import argparse
from collections.abc import Mapping

from codex_py.config.config import Config
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import CommandParser, UsageError
from codex_py.frontends.configuration import read_config, warn_of_config


def command_parser(*names: str) -> CommandParser:
    """A parser for `-c`, for switches (`--json`), and for words by their names, which are None where they are missing."""
    parser = CommandParser(Arguments, only={"overrides"})
    for name in names:
        if name.startswith("--"):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, nargs="?")
    return parser


def required(word: str | None, what: str) -> str:
    """Raises a `UsageError` if there is no word: `say which server: codex-py mcp get NAME`."""
    if word is None:
        raise UsageError(f"say which {what}")
    return word


def command_config(
    options: argparse.Namespace, environment: Mapping[str, str], *, warns: bool = True
) -> Config:
    """The configuration of this folder. Its warnings are printed, unless the command has its own form for them."""
    config = read_config(Arguments(overrides=options.overrides or ()), environment)
    if warns:
        warn_of_config(config)
    return config
