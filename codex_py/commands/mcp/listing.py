"""`codex-py mcp list` and `get`, with the tables and the JSON of Codex 0.169, and `mcp test`, which
starts one server as a session would."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from codex_py.app.features.mcp import server_headers, started_servers
from codex_py.app.mcp_login import AuthStatus, auth_statuses
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.commands.mcp.mcp_command import configured_server
from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ExitCode
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.mcp import McpServerStatus
from codex_py.streams.plain_text import cut
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import aligned, on_one_line

_NONE: Final = "Try `codex-py mcp add my-tool -- my-command`."
_AUTH: Final[Mapping[AuthStatus, str]] = {
    "unsupported": "Unsupported",
    "not_logged_in": "Not logged in",
    "bearer_token": "Bearer token",
    "o_auth": "OAuth",
    "unknown": "Unknown",
}
_MASK: Final = "*****"
_LISTS: Final = ("enabled_tools", "disabled_tools")
_DESCRIPTION_CHARS = 100


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all servers, sorted by name. Returns the exit code.

    May ask servers at an address about logins, for up to 5 s.
    """
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment)
    servers = dict(sorted(config.mcp_servers.items()))
    if not servers and not options.json:
        return print_out(f"No MCP servers configured yet. {_NONE}\n")

    def headers(name: str) -> Mapping[str, str]:
        return server_headers(name, servers[name], environment, lambda _: None)

    statuses = asyncio.run(auth_statuses(config, headers))
    if options.json:
        found = [
            {**_settings(config, name), "auth_status": statuses[name]}
            for name in servers
        ]
        return print_json(found, indent=2, ensure_ascii=False)
    return _print_tables(servers, statuses)


def _print_tables(
    servers: Mapping[str, McpServerConfig], statuses: Mapping[str, AuthStatus]
) -> int:
    """Print a table of the servers that are commands, and one of those at addresses."""
    commands: list[Sequence[str]] = [
        ("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth")
    ]
    addresses: list[Sequence[str]] = [
        ("Name", "Url", "Bearer Token Env Var", "Status", "Auth")
    ]
    for name, server in servers.items():
        if server.command is not None:
            table = commands
            middle = (
                server.command,
                _words(server.args),
                _environment(server),
                server.cwd or "-",
            )
        else:
            table = addresses
            middle = (
                shown_url(server.url or ""),
                server.bearer_token_env_var or "-",
            )
        status = "enabled" if server.enabled else "disabled"
        row = (name, *middle, status, _AUTH[statuses[name]])
        table.append([on_one_line(cell) for cell in row])
    tables = [table for table in (commands, addresses) if len(table) > 1]
    # The last column is padded too, as it is in Codex.
    texts = ["\n".join(aligned(table)) + "\n" for table in tables]
    return print_out("\n".join(texts))


def run_get(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the settings of one server. Returns the exit code."""
    parser = command_parser("--json")
    options, name, config = configured_server(parser, argv, environment, "get")
    server = config.mcp_servers[name]
    given = raw(config.settings.mcp_servers[name])
    if options.json:
        found = _settings(config, name, *_LISTS)
        return print_json(found, indent=2, ensure_ascii=False)
    if not server.enabled:
        return print_out(f"{name} (disabled)\n")
    facts = {"enabled": "true"}
    for key in _LISTS:
        if key in given:
            facts[key] = ", ".join(given[key]) or "[]"
    facts |= _shown_transport(server, given)
    for key, seconds in _timeouts(server, given).items():
        if seconds is not None:
            facts[key] = f"{seconds:g}"
    mode = given.get("default_tools_approval_mode")
    if mode is not None:
        facts["default_tools_approval_mode"] = mode
    facts["remove"] = f"codex-py mcp remove {name}"
    text = f"{name}\n"
    for key, value in facts.items():
        text += f"  {key}: {on_one_line(value)}\n"
    return print_out(text)


def _shown_transport(
    server: McpServerConfig, given: Mapping[str, Any]
) -> dict[str, str]:
    """The settings about the way to a server, as text without secrets. `given`: all its
    settings."""
    if server.command is not None:
        return {
            "transport": "stdio",
            "command": server.command,
            "args": _words(server.args),
            "cwd": server.cwd or "-",
            "env": _environment(server),
        }
    hidden = [f"{key}={_MASK}" for key in sorted(server.http_headers)]
    variables = [
        f"{key}={value}" for key, value in sorted(server.env_http_headers.items())
    ]
    return {
        "transport": "streamable_http",
        "url": shown_url(server.url or ""),
        "bearer_token_env_var": server.bearer_token_env_var or "-",
        "http_headers": ", ".join(hidden) or "-",
        "env_http_headers": ", ".join(variables) or "-",
        "http_headers_helper": given.get("http_headers_helper") or "-",
    }


def _settings(
    config: Config,
    name: str,
    *lists: str,
) -> dict[str, Any]:
    """The settings of a server for `--json`. `lists`: the names of further settings to include."""
    server = config.mcp_servers[name]
    given = raw(config.settings.mcp_servers[name])
    transport: dict[str, Any]
    if server.command is not None:
        transport = {
            "type": "stdio",
            "command": server.command,
            "args": list(server.args),
            "env": _sorted(given.get("env")),
            "env_vars": given.get("env_vars", []),
            "cwd": server.cwd,
        }
    else:
        transport = {
            "type": "streamable_http",
            "url": server.url,
            "bearer_token_env_var": server.bearer_token_env_var,
            "http_headers": _sorted(given.get("http_headers")),
            "env_http_headers": _sorted(given.get("env_http_headers")),
            "http_headers_helper": given.get("http_headers_helper"),
        }
    return {
        "name": name,
        "enabled": server.enabled,
        "disabled_reason": None,
        "transport": transport,
        **{key: given.get(key) for key in lists},
        **_timeouts(server, given),
    }


def _timeouts(
    server: McpServerConfig, given: Mapping[str, Any]
) -> dict[str, float | None]:
    """The server's timeouts in seconds; None for a timeout that is not configured."""
    startup = None
    if "startup_timeout_sec" in given or "startup_timeout_ms" in given:
        startup = server.startup_timeout_s
    tool = None
    if "tool_timeout_sec" in given:
        tool = server.tool_timeout_s
    return {"startup_timeout_sec": startup, "tool_timeout_sec": tool}


def _sorted(table: Mapping[str, str] | None) -> dict[str, str] | None:
    if table is None:
        return None
    return dict(sorted(table.items()))


def _words(args: Sequence[str]) -> str:
    return " ".join(args) or "-"


def _environment(server: McpServerConfig) -> str:
    """The names of the server's variables. Their values may be secret."""
    names = (*sorted(server.env), *server.env_vars)
    return ", ".join(f"{name}={_MASK}" for name in names) or "-"


def run_test(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Try a server, even one that is switched off. Returns 0 if it is ready, else 1."""
    parser = command_parser("--json")
    options, name, config = configured_server(parser, argv, environment, "test")
    status, warnings = asyncio.run(_tried(config, name, environment))
    if status.error:
        # The error is printed separately.
        error = status.error
        warnings = [text for text in warnings if not text.startswith(error)]
    advice = _advice(config.mcp_servers[name], status, has_noise=bool(warnings))
    if status.state == "ready":
        code = ExitCode.DONE
    else:
        code = ExitCode.TURN_FAILED
    if options.json:
        return print_json(_facts(status, warnings, advice), indent=2) or code
    for warning in warnings:
        tell(f"Warning: {warning}")
    if status.error is None:
        return print_out(_report(status)) or code
    tell(f"Error: {status.error.rstrip()}")
    if advice:
        tell(advice)
    return code


async def _tried(
    config: Config,
    name: str,
    environment: Mapping[str, str],
) -> tuple[McpServerStatus, list[str]]:
    """Start and stop a server. Returns its status while it ran, and the warnings about it."""
    warnings: list[str] = []
    server = replace(config.mcp_servers[name], enabled=True)
    alone = replace(config, mcp_servers={name: server})
    async with started_servers(alone, environment, warnings.append) as servers:
        await servers.settled()
        (status,) = servers.statuses()
    return status, warnings


def _report(status: McpServerStatus) -> str:
    """Describe a server that is ready: its program, its times and its tools."""
    count = len(status.tools)
    tools = "1 tool" if count == 1 else f"{count} tools"
    connect_s = status.connect_s or 0
    list_s = status.list_s or 0
    lines = [
        f"{status.name}: ready, {tools}",
        f"  server: {on_one_line(status.software or '-')}",
        f"  protocol: {on_one_line(status.protocol_version or '-')}",
        f"  started in {connect_s:.2f} s, listed its tools in {list_s:.2f} s",
    ]
    rows = [
        (on_one_line(tool.name), _first_line(tool.description)) for tool in status.tools
    ]
    lines += [f"  {line}".rstrip() for line in aligned(rows)]
    return "\n".join(lines) + "\n"


def _facts(
    status: McpServerStatus,
    warnings: Sequence[str],
    advice: str | None,
) -> dict[str, Any]:
    tools = [
        {"name": tool.name, "description": tool.description} for tool in status.tools
    ]
    return {
        "name": status.name,
        "ready": status.state == "ready",
        "server": status.software,
        "protocol_version": status.protocol_version,
        "connect_sec": _rounded(status.connect_s),
        "list_sec": _rounded(status.list_s),
        "tools": tools,
        "warnings": list(warnings),
        "failure": status.failure,
        "error": status.error,
        "advice": advice,
    }


def _advice(
    server: McpServerConfig,
    status: McpServerStatus,
    *,
    has_noise: bool,
) -> str | None:
    """Advice about a failure; None if nothing failed, or if the error contains the advice."""
    command = shlex.join((server.command or "", *server.args))
    match status.failure:
        case "not_started":
            return (
                "Install it, or write its full path into `command`; it is looked for on PATH, and runs in the"
                " folder `cwd`."
            )
        case "exited":
            return (
                f"Run `{command}` yourself to see why. A server gets few variables: name others that it needs"
                " in `env_vars`."
            )
        case "timed_out" if has_noise:
            return "On stdout it may write nothing but messages; have it log to stderr."
        case "timed_out":
            return (
                "If it only needs longer, as the first run of `npx` or `uvx` does, raise `startup_timeout_sec`."
                " If it waits for input, it may be no MCP server over stdio."
            )
        case "refused" if server.bearer_token_env_var is not None:
            return f"Look at the token in the variable `{server.bearer_token_env_var}`."
        case "unreachable":
            return f"Look at `url`, and whether a server runs there: {shown_url(server.url or '')}"
        case "refused" | "protocol" | None:
            return None


def _rounded(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    return round(seconds, 3)


def _first_line(description: str) -> str:
    """The first line of a tool's description, of which no more than 100 characters are shown."""
    line = description.strip().partition("\n")[0]
    return cut(on_one_line(line), _DESCRIPTION_CHARS)
