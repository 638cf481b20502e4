"""What the commands of `codex-py mcp` share: their options, the configuration, and the server that is named."""

import argparse
from collections.abc import Mapping, Sequence

from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import CommandParser, UsageError
from codex_py.frontends.configuration import read_config, warn_of_config


def mcp_parser(*flags: str) -> CommandParser:
    parser = CommandParser(Arguments, only={"overrides"})
    for name in flags:
        parser.add_argument(name, action="store_true")
    return parser


def parse_name(parser: CommandParser, argv: Sequence[str], command: str) -> argparse.Namespace:
    """The options, with a `name`.

    Raises:
        UsageError: there is no name, or an option is wrong.
    """
    parser.add_argument("name", nargs="?")
    options = parser.parse_args(list(argv))
    if options.name is None:
        raise UsageError(f"say which server: codex-py mcp {command} NAME")
    return options


def mcp_config(options: argparse.Namespace, environment: Mapping[str, str]) -> Config:
    """Print the warnings of this folder's configuration, and return it. A server that the options name is in it.

    Raises:
        ConfigError: it cannot be used.
        CodexError: there is no such server.
    """
    config = read_config(Arguments(overrides=options.overrides or ()), environment)
    warn_of_config(config)
    name = getattr(options, "name", None)
    if name is not None and name not in config.mcp_servers:
        # The words are Codex's.
        raise CodexError(f"No MCP server named '{name}' found.", code="mcp")
    return config
