"""`codex-py mcp add` and `remove`: the servers of the user's `config.toml`."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from codex_py.config.mcp import SERVER_NAME, put_server, remove_server, url_problem
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.frontends.admin.mcp_options import mcp_config, mcp_parser, parse_name
from codex_py.frontends.command_parser import UsageError
from codex_py.frontends.streams import print_out
from codex_py.frontends.terminal import printable

_USAGE: Final = "codex-py mcp add NAME (--url URL | -- COMMAND [ARGS])"


def run_add(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Write a server into the file; the exit code."""
    parser = mcp_parser()
    parser.add_argument("--env", action="append", type=_variable)
    parser.add_argument("--url")
    parser.add_argument("--bearer-token-env-var")
    parser.add_argument("--oauth-client-id")
    parser.add_argument("--oauth-resource")
    # The name may stand before or behind options; what follows the next word or `--` is the command.
    at = parser.first_word(argv)
    name = None if argv[at : at + 1] in ([], ["--"]) else argv[at]
    options, command = parser.parse_before_command([*argv[:at], *argv[at + 1 :]])
    if name is None:
        raise UsageError(f"say what to call it: {_USAGE}")
    table = _table(options, command)
    if not SERVER_NAME.fullmatch(name):
        # The words are Codex's.
        allowed = "use letters, numbers, '-', '_', ':', '@', '/', '.'"
        raise CodexError(f"invalid server name '{name}' ({allowed})", code="mcp")
    # Write nothing to a file that cannot be read back.
    mcp_config(options, environment)
    replaced = put_server(codex_home(environment), name, table)
    earlier = ", in place of the earlier one" if replaced else ""
    text = f"Added global MCP server '{name}'{earlier}.\n"
    if options.url is not None and options.bearer_token_env_var is None:
        text += (
            f"MCP server may or may not require login. Run `codex-py mcp login {name}` to login.\n"
        )
    return print_out(text)


def run_remove(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove a server from the file; the exit code."""
    name = parse_name(mcp_parser(), argv, "remove").name
    if remove_server(codex_home(environment), name):
        return print_out(f"Removed global MCP server '{name}'.\n")
    return print_out(f"No MCP server named '{printable(name)}' found.\n")


def _table(options: argparse.Namespace, command: Sequence[str]) -> dict[str, Any]:
    """The server that the options describe, as in `config.toml`."""
    if options.url is not None:
        return _table_of_address(options, command)
    for option in ("bearer_token_env_var", "oauth_client_id", "oauth_resource"):
        if getattr(options, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} is for a server at an address: --url")
    if not command:
        raise UsageError(f"say how to reach it: {_USAGE}")
    table: dict[str, Any] = {"command": command[0]}
    if command[1:]:
        table["args"] = list(command[1:])
    if options.env:
        table["env"] = dict(options.env)
    return table


def _table_of_address(options: argparse.Namespace, command: Sequence[str]) -> dict[str, Any]:
    if command:
        raise UsageError("--url and a command exclude each other")
    if options.env:
        raise UsageError("--env is for a server that is a command, not for --url")
    if (problem := url_problem(options.url)) is not None:
        raise UsageError(f"--url {problem}")
    table: dict[str, Any] = {"url": options.url}
    for key in ("bearer_token_env_var", "oauth_resource"):
        if (value := getattr(options, key)) is not None:
            table[key] = value
    if options.oauth_client_id is not None:
        table["oauth"] = {"client_id": options.oauth_client_id}
    return table


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return name.strip(), value
