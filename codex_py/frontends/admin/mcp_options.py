"""What the commands of `codex-py mcp` have in common: how they read their words and the configuration."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.config.config import Config, load_config
from codex_py.frontends.arguments import CommandParser, add_overrides
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.terminal import printable

WITH_VALUE: Final = {
    *("-c", "--config", "--enable", "--disable", "--env", "--url", "--bearer-token-env-var"),
    *("--oauth-client-id", "--oauth-resource"),
}
"""Options that take the next word."""


def options_parser() -> CommandParser:
    parser = CommandParser()
    parser.add_argument("-h", "--help", action="store_true")
    add_overrides(parser)
    return parser


def read_config(
    options: argparse.Namespace, overrides: Sequence[str], environment: Mapping[str, str]
) -> Config:
    """The configuration of this folder; its warnings go to stderr.

    Raises:
        ConfigError: it can not be used.
    """
    config = load_config(
        cwd=Path.cwd(), environment=environment, overrides=[*overrides, *(options.overrides or ())]
    )
    for warning in config.warnings:
        OutputStream(2).write_text(f"Warning: {printable(warning)}\n")
    return config
