"""`codex-py mcp add` and `remove`, and functions that all `codex-py mcp` commands share."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from codex_py.command_line.parser import CommandParser
from codex_py.command_line.subcommand import command_config, command_parser, required
from codex_py.config.config import Config
from codex_py.config.mcp import SERVER_NAME, put_server, remove_server
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, ConfigError, UsageError
from codex_py.protocol.addresses import url_problem
from codex_py.streams.standard import print_out
from codex_py.streams.terminal import printable

_USAGE: Final = "codex-py mcp add NAME (--url URL | -- COMMAND [ARGS])"
_OF_ADDRESS: Final = ("bearer_token_env_var", "oauth_client_id", "oauth_resource")
"""Options for a server at an address."""
_BEHIND_DASHES: Final = "The program of a server and its arguments follow `--`."
_HEADERS: Final = (
    "Use `--bearer-token-env-var VARIABLE`, or `http_headers` in config.toml."
)
_ELSEWHERE: Final = {
    "--transport": "Use `--url URL` for a server at an address.",
    "-t": "Use `--url URL` for a server at an address.",
    "--header": _HEADERS,
    "-H": _HEADERS,
    "-e": "Use `--env KEY=VALUE`.",
    "--scope": "A server for one project is a table of its .codex/config.toml.",
    "--command": _BEHIND_DASHES,
    "--args": _BEHIND_DASHES,
    "-y": _BEHIND_DASHES,
}
"""Options of `mcp add` in other agents."""


def run_add(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Write a server into the file. Returns the exit code."""
    parser = command_parser()
    parser.advise(_ELSEWHERE)
    parser.add_argument("--env", action="append", type=_variable)
    parser.add_argument("--url")
    for option in _OF_ADDRESS:
        parser.add_argument(f"--{option.replace('_', '-')}")
    # The name may come before or after options. The command follows as the next word or after `--`.
    at = parser.first_word(argv)
    has_name = at < len(argv) and argv[at] != "--"
    others = [*argv[:at], *argv[at + 1 :]]
    options, command = parser.parse_before_command(others)
    if not has_name:
        raise UsageError(f"say what to call it: {_USAGE}")
    name = argv[at]
    is_address = command[:1] and url_problem(command[0]) is None
    if is_address and options.url is None:
        meant = f"codex-py mcp add {name} --url {command[0]}"
        raise UsageError(f"an address needs --url: {meant}")
    table = _table(options, command)
    if not SERVER_NAME.fullmatch(name):
        # The words are Codex's.
        allowed = "use letters, numbers, '-', '_', ':', '@', '/', '.'"
        raise CodexError(f"invalid server name '{name}' ({allowed})", code="mcp")
    # Write nothing to a file that cannot be read back.
    command_config(options, environment)
    text = f"Added global MCP server '{name}'"
    if put_server(codex_home(environment), name, table):
        text += ", in place of the earlier one"
    text += ".\n"
    if options.url is not None and options.bearer_token_env_var is None:
        text += f"MCP server may or may not require login. Run `codex-py mcp login {name}` to login.\n"
    return print_out(text)


def run_remove(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove a server from the file. Returns the exit code."""
    name = parse_name(command_parser(), argv, "remove").name
    if remove_server(codex_home(environment), name):
        return print_out(f"Removed global MCP server '{name}'.\n")
    return print_out(f"No MCP server named '{printable(name)}' found.\n")


def _table(options: argparse.Namespace, command: Sequence[str]) -> dict[str, Any]:
    """The settings of the server, for the file. Raises a `UsageError` for a bad combination."""
    if options.url is None:
        return _command_table(options, command)
    if command:
        raise UsageError("--url and a command exclude each other")
    if options.env:
        raise UsageError("--env is for a server that is a command, not for --url")
    problem = url_problem(options.url)
    if problem is not None:
        raise UsageError(f"--url {problem}")
    table = {
        "url": options.url,
        "bearer_token_env_var": options.bearer_token_env_var,
        "oauth_resource": options.oauth_resource,
    }
    if options.oauth_client_id is not None:
        table["oauth"] = {"client_id": options.oauth_client_id}
    return {key: value for key, value in table.items() if value is not None}


def _command_table(
    options: argparse.Namespace, command: Sequence[str]
) -> dict[str, Any]:
    for option in _OF_ADDRESS:
        if getattr(options, option) is not None:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} is for a server at an address: --url")
    if not command:
        raise UsageError(f"say how to reach it: {_USAGE}")
    program, *args = command
    table: dict[str, Any] = {"command": program}
    if args:
        table["args"] = args
    if options.env:
        table["env"] = dict(options.env)
    return table


def _variable(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return name.strip(), value


def parse_name(
    parser: CommandParser,
    argv: Sequence[str],
    command: str,
) -> argparse.Namespace:
    """Parse options and a `name`. Raises a `UsageError` if it is missing, or an option is wrong."""
    parser.add_argument("name", nargs="?")
    options = parser.parse_args(list(argv))
    required(options.name, f"server: codex-py mcp {command} NAME")
    return options


def configured_server(
    parser: CommandParser,
    argv: Sequence[str],
    environment: Mapping[str, str],
    command: str,
) -> tuple[argparse.Namespace, str, Config]:
    """Parse the options and the name of a server, and read the configuration that has the server.

    Prints the warnings of the configuration. Returns the options, the name and the configuration.

    Raises:
        UsageError: the name is missing, or an option is wrong.
        ConfigError: the configuration cannot be used, or a requirement forbids the server.
        CodexError: the server is not configured.
    """
    options = parse_name(parser, argv, command)
    config = command_config(options, environment)
    if options.name not in config.mcp_servers:
        # The words are Codex's.
        raise CodexError(f"No MCP server named '{options.name}' found.", code="mcp")
    if command in {"login", "test"}:
        # These two work with a server that is switched off too.
        server = replace(config.mcp_servers[options.name], enabled=True)
        _, refusals = config.requirements.held_servers({options.name: server})
        if refusals:
            raise ConfigError(refusals[0])
    return options, options.name, config
