"""Reads and writes `[mcp_servers.NAME]`, the MCP servers of a session. LIGHT."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.check import dotted, problems
from codex_py.config.declared.section import is_set
from codex_py.config.declared.tools import InheritedVariable, McpServer
from codex_py.config.edit import set_in_config
from codex_py.errors import ConfigError
from codex_py.protocol.addresses import url_problem
from codex_py.protocol.frozen import frozen

ApprovalMode: TypeAlias = Literal["auto", "prompt", "writes", "approve"]
"""The policy for asking the user about a call: `auto` follows the policies and the tool's hints,
`prompt` always asks, `writes` asks unless the tool only reads, `approve` never asks."""

StoreKind: TypeAlias = Literal["auto", "file", "keyring"]
"""The store of logins. `auto`: the system's keyring if the Python package `keyring` is installed
and works, else a file."""

DEFAULT_STARTUP_TIMEOUT_S: Final = 10.0
DEFAULT_TOOL_TIMEOUT_S: Final = 300.0

SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_:@/.-]+")
_NAME_RULE: Final = "a name has letters, digits and `-_:@/.` alone"
_STDIO_ONLY: Final = ("args", "env", "env_vars", "cwd")
_HTTP_ONLY: Final = (
    "bearer_token_env_var",
    "http_headers",
    "http_headers_helper",
    "env_http_headers",
    "oauth",
    "oauth_resource",
    "auth",
    "scopes",
)
_THIS_MACHINE: Final = "local"
"""The `environment_id` of servers that run here, and the default."""


@frozen(kw_only=True)
class McpServerConfig:
    """A server, by the names and meanings of its keys; it has a `command` or a `url`."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    env_vars: tuple[str, ...] = ()
    """Names of variables that the server inherits from us."""
    cwd: str | None = None
    """The server's working directory, relative to the session's."""

    url: str | None = None
    bearer_token_env_var: str | None = None
    http_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    env_http_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the variables that have the values of headers, by header."""
    auth: Literal["oauth", "chatgpt", "ema_auth"] | None = None
    scopes: tuple[str, ...] = ()
    oauth_client_id: str | None = None
    oauth_resource: str | None = None

    enabled: bool = True
    required: bool = False
    startup_timeout_s: float = DEFAULT_STARTUP_TIMEOUT_S
    tool_timeout_s: float = DEFAULT_TOOL_TIMEOUT_S
    enabled_tools: tuple[str, ...] | None = None
    """Tools by the names that the server gives them; None: all."""
    disabled_tools: tuple[str, ...] = ()
    supports_parallel_tool_calls: bool = False
    default_tools_approval_mode: ApprovalMode = "auto"
    tools_approval_modes: Mapping[str, ApprovalMode] = field(
        default_factory=dict[str, ApprovalMode]
    )
    """The approval modes from `tools.NAME.approval_mode`, by tool."""

    def approval_mode(self, tool: str) -> ApprovalMode:
        return self.tools_approval_modes.get(tool, self.default_tools_approval_mode)


def mcp_servers(
    tables: Mapping[str, Mapping[str, Any]], where: Callable[[str], str] | None = None
) -> tuple[dict[str, McpServerConfig], tuple[str, ...]]:
    """Read the servers by name; also returns warnings for the user.

    Args:
        tables: the tables by name, already checked against the declared types.
        where: called with a server's name; returns the place of its table for a warning. If given,
            a server whose name cannot be used is left out, as in Codex: the name may come from
            another program, and the other servers must start. If None, such a name is an error.

    Raises:
        ConfigError: a server is configured wrongly, or a required one has an unusable name. The
            error names the key.
    """
    servers: dict[str, McpServerConfig] = {}
    warnings: list[str] = []
    for name, table in tables.items():
        server = McpServer(table)
        is_enabled = server.enabled is not False
        is_usable = SERVER_NAME.fullmatch(name) is not None
        is_needed = is_enabled and server.required is True
        if not is_usable and where is not None and not is_needed:
            if is_enabled:
                warnings.append(
                    f"{where(name)}: MCP server {name!r} is not started: {_NAME_RULE}"
                )
            continue
        if is_enabled and _is_elsewhere(server):
            warnings.append(
                f"MCP server `{name}` is not started: its `environment_id` names another machine"
            )
        servers[name] = _server(name, server)
    return servers, tuple(warnings)


def put_server(
    home: Path,
    name: str,
    table: Mapping[str, Any],
) -> bool:
    """Write a server to the user's `config.toml`, replacing one of the same name.

    Returns True if there was one.

    Raises:
        ConfigError: the table is not a valid server, or the file cannot be changed; it is
            unchanged.
    """
    for problem in problems({"mcp_servers": {name: table}}):
        raise ConfigError(f"`{dotted(problem.key)}` {problem.text}")
    _server(name, McpServer(table))
    return set_in_config(home, ("mcp_servers", name), table)


def remove_server(home: Path, name: str) -> bool:
    """Remove a server, even an invalid one, from the user's `config.toml`.

    Returns False if the file has no such server. Raises the errors of `set_in_config`.
    """
    return set_in_config(home, ("mcp_servers", name), None)


def _is_elsewhere(server: McpServer) -> bool:
    return server.environment_id not in {None, _THIS_MACHINE}


def _server(name: str, server: McpServer) -> McpServerConfig:
    """Read a server. Raises a `ConfigError` if it is configured wrongly."""
    key = dotted(("mcp_servers", name))
    if not SERVER_NAME.fullmatch(name):
        raise ConfigError(f"{key}: {_NAME_RULE}")
    if is_set(server, "bearer_token"):
        raise ConfigError(
            f"{key}: `bearer_token` is not supported; name a variable in `bearer_token_env_var` instead"
        )
    _check_kind(key, server)
    variables = server.env_vars or ()
    modes: dict[str, ApprovalMode] = {}
    for tool, settings in server.tools.items():
        if settings.approval_mode is not None:
            modes[tool] = settings.approval_mode
    return McpServerConfig(
        command=server.command,
        args=server.args or (),
        env=server.env,
        env_vars=tuple(_variable(key, entry) for entry in variables),
        cwd=server.cwd,
        url=server.url,
        bearer_token_env_var=server.bearer_token_env_var,
        http_headers=server.http_headers,
        env_http_headers=server.env_http_headers,
        auth=server.auth,
        scopes=server.scopes or (),
        oauth_client_id=server.oauth.client_id,
        oauth_resource=server.oauth_resource,
        enabled=server.enabled is not False and not _is_elsewhere(server),
        required=server.required or False,
        startup_timeout_s=_startup_timeout_s(server),
        tool_timeout_s=float(server.tool_timeout_sec or DEFAULT_TOOL_TIMEOUT_S),
        enabled_tools=server.enabled_tools,
        disabled_tools=server.disabled_tools or (),
        supports_parallel_tool_calls=server.supports_parallel_tool_calls or False,
        default_tools_approval_mode=server.default_tools_approval_mode or "auto",
        tools_approval_modes=modes,
    )


def _startup_timeout_s(server: McpServer) -> float:
    if server.startup_timeout_sec is not None:
        return float(server.startup_timeout_sec)
    if server.startup_timeout_ms is not None:
        return server.startup_timeout_ms / 1000
    return DEFAULT_STARTUP_TIMEOUT_S


def _check_kind(key: str, server: McpServer) -> None:
    """Raise a `ConfigError` unless a server has a command or a URL, and only keys of that kind.

    Args:
        key: the dotted key of the server, for the message.
    """
    has_command = server.command is not None
    has_url = server.url is not None
    if has_command and has_url:
        raise ConfigError(f"{key}: `command` or `url`, not both")
    if not has_command and not has_url:
        raise ConfigError(f"{key}: `command` or `url`, one of them is required")
    if server.url is None:
        kind = "stdio"
        others = _HTTP_ONLY
    else:
        kind = "streamable_http"
        others = _STDIO_ONLY
    for other in others:
        if is_set(server, other):
            raise ConfigError(f"{key}.{other} is not supported for {kind}")
    if server.command == "":
        raise ConfigError(f"{key}.command is empty")
    if server.url is not None:
        problem = url_problem(server.url)
        if problem is not None:
            raise ConfigError(f"{key}.url {problem}")


def _variable(key: str, entry: str | InheritedVariable) -> str:
    """The name of a variable in an entry of `env_vars`."""
    if isinstance(entry, str):
        return entry
    if entry.name is None:
        raise ConfigError(f"{key}.env_vars: a table needs a `name`")
    return entry.name
