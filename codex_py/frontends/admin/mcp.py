"""`codex-py mcp`: the MCP servers of the configuration, as Codex's commands of these names have them.

What a command needs is loaded by it: `mcp list` is not to wait for what logs in.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.frontends.admin.mcp_options import WITH_VALUE, options_parser, read_config
from codex_py.frontends.arguments import CommandParser, UsageError, first_word, suggestion
from codex_py.frontends.help import MCP
from codex_py.frontends.streams import print_out
from codex_py.frontends.terminal import printable


def run_mcp(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Do what the words after `mcp` ask for; the exit code.

    Raises:
        CodexError: it can not be done.
    """
    at = first_word(argv, WITH_VALUE)
    options = options_parser().parse_args(list(argv[:at]))
    word, rest = (argv[at], argv[at + 1 :]) if at < len(argv) else ("", ())
    if options.help or word == "help" or list(rest[:1]) in (["-h"], ["--help"]):
        return print_out(MCP)
    if word not in _COMMANDS:
        names = ", ".join(_COMMANDS)
        if not word:
            raise UsageError(f"say what to do: codex-py mcp COMMAND, one of {names}")
        raise UsageError(f"unknown command `mcp {word}`.{suggestion(word, list(_COMMANDS))}")
    return _COMMANDS[word](rest, options.overrides or (), environment)


def _parse(parser: CommandParser, argv: Sequence[str], command: str) -> argparse.Namespace:
    """The options, with a `name`."""
    parser.add_argument("name", nargs="?")
    options = parser.parse_args(list(argv))
    if options.name is None:
        raise UsageError(f"say which server: codex-py mcp {command} NAME")
    return options


def _json_parser() -> CommandParser:
    parser = options_parser()
    parser.add_argument("--json", action="store_true")
    return parser


def _require(config: Config, name: str) -> None:
    if name not in config.mcp_servers:
        # The words are Codex's.
        raise CodexError(f"No MCP server named '{name}' found.", code="mcp")


def _add(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    from codex_py.frontends.admin.mcp_add import run_add  # noqa: PLC0415

    return run_add(argv, overrides, environment)


def _list(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    options = _json_parser().parse_args(list(argv))
    config = read_config(options, overrides, environment)
    from codex_py.frontends.admin.mcp_listing import listing  # noqa: PLC0415

    return print_out(listing(config, environment, json=options.json))


def _get(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    options = _parse(_json_parser(), argv, "get")
    config = read_config(options, overrides, environment)
    _require(config, options.name)
    from codex_py.frontends.admin.mcp_listing import details  # noqa: PLC0415

    return print_out(details(config, options.name, json=options.json))


def _remove(argv: Sequence[str], _overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    options = _parse(options_parser(), argv, "remove")
    from codex_py.config.mcp_edit import remove_server  # noqa: PLC0415

    if remove_server(codex_home(environment), options.name):
        return print_out(f"Removed global MCP server '{options.name}'.\n")
    return print_out(f"No MCP server named '{printable(options.name)}' found.\n")


def _login(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    parser = options_parser()
    parser.add_argument("--scopes")
    parser.add_argument("--no-browser", action="store_true")
    options = _parse(parser, argv, "login")
    config = read_config(options, overrides, environment)
    _require(config, options.name)
    from codex_py.frontends.admin.mcp_login import login  # noqa: PLC0415

    scopes = [scope.strip() for scope in (options.scopes or "").split(",") if scope.strip()]
    return login(config, options.name, environment, scopes, no_browser=options.no_browser)


def _logout(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    options = _parse(options_parser(), argv, "logout")
    config = read_config(options, overrides, environment)
    _require(config, options.name)
    from codex_py.app.mcp_login import log_out  # noqa: PLC0415

    if log_out(config, options.name):
        return print_out(f"Removed OAuth credentials for '{options.name}'.\n")
    return print_out(f"No OAuth credentials stored for '{options.name}'.\n")


def _test(argv: Sequence[str], overrides: Sequence[str], environment: Mapping[str, str]) -> int:
    options = _parse(_json_parser(), argv, "test")
    config = read_config(options, overrides, environment)
    _require(config, options.name)
    from codex_py.frontends.admin.mcp_trial import trial  # noqa: PLC0415

    return trial(config, options.name, environment, json=options.json)


_Command: TypeAlias = Callable[[Sequence[str], Sequence[str], Mapping[str, str]], int]
"""Takes the words behind it, the overrides before it, and the environment."""

_COMMANDS: Final[Mapping[str, _Command]] = {
    "add": _add,
    "list": _list,
    "get": _get,
    "remove": _remove,
    "test": _test,
    "login": _login,
    "logout": _logout,
}
