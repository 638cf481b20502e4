"""`codex-py mcp add`: a server for every session, from the words of a command line."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from codex_py.config.mcp import SERVER_NAME, url_problem
from codex_py.config.mcp_edit import put_server
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.frontends.admin.mcp_options import WITH_VALUE, options_parser, read_config
from codex_py.frontends.arguments import UsageError, first_word
from codex_py.frontends.streams import print_out

_USAGE: Final = "codex-py mcp add NAME (--url URL | -- COMMAND [ARGS])"


def run_add(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    """Write a server into the user's `config.toml`.

    Raises:
        CodexError: it can not be written as asked.
    """
    parser = options_parser()
    parser.add_argument("--env", action="append", type=_variable)
    parser.add_argument("--url")
    parser.add_argument("--bearer-token-env-var")
    parser.add_argument("--oauth-client-id")
    parser.add_argument("--oauth-resource")
    name_at = first_word(argv, WITH_VALUE)
    if name_at == len(argv) or argv[name_at] == "--":
        raise UsageError(f"say what to call it: {_USAGE}")
    name, rest = argv[name_at], argv[name_at + 1 :]
    command_at = first_word(rest, WITH_VALUE)
    options = parser.parse_args([*argv[:name_at], *rest[:command_at]])
    command = rest[command_at:]
    if command[:1] == ["--"]:
        command = command[1:]
    table = _table(options, command)
    if not SERVER_NAME.fullmatch(name):
        # The words are Codex's.
        allowed = "use letters, numbers, '-', '_', ':', '@', '/', '.'"
        raise CodexError(f"invalid server name '{name}' ({allowed})", code="mcp")
    # Nothing is written where it would not be read.
    read_config(options, overrides, environment)
    replaced = put_server(codex_home(environment), name, table)
    earlier = ", in place of the earlier one" if replaced else ""
    text = f"Added global MCP server '{name}'{earlier}.\n"
    if options.url is not None and options.bearer_token_env_var is None:
        text += (
            f"MCP server may or may not require login. Run `codex-py mcp login {name}` to login.\n"
        )
    return print_out(text)


def _table(options: argparse.Namespace, command: Sequence[str]) -> dict[str, Any]:
    """The server of the options, as `config.toml` has it."""
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
