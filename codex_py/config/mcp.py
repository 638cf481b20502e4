"""`[mcp_servers.NAME]`: the MCP servers of a session, as the user wrote them. LIGHT."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from codex_py.config.check import dotted, problems
from codex_py.config.edit import set_in_config
from codex_py.errors import ConfigError
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
    """Read the servers of tables that the schema accepts; also returns warnings for the user.

    Args:
        where: tells the place of a server's table for a warning. If given, a server whose name
            cannot be used is left out, as in Codex: the name may come from another program, and the
            other servers must start. If None, such a name is an error.

    Raises:
        ConfigError: a server is configured wrongly, or a required one has an unusable name. The
            error names the key.
    """
    servers: dict[str, McpServerConfig] = {}
    warnings: list[str] = []
    for name, table in tables.items():
        is_enabled = table.get("enabled", True)
        is_usable = SERVER_NAME.fullmatch(name) is not None
        if (
            not is_usable
            and where is not None
            and not (is_enabled and table.get("required"))
        ):
            if is_enabled:
                warnings.append(
                    f"{where(name)}: MCP server {name!r} is not started: {_NAME_RULE}"
                )
            continue
        if is_enabled and _is_elsewhere(table):
            warnings.append(
                f"MCP server `{name}` is not started: its `environment_id` names another machine"
            )
        servers[name] = _server(name, table)
    return servers, tuple(warnings)


def put_server(home: Path, name: str, table: Mapping[str, Any]) -> bool:
    """Write a server to the user's `config.toml`, replacing one of the same name.

    Returns True if there was one.

    Raises:
        ConfigError: the table is not a valid server, or the file cannot be changed; it is
            unchanged.
    """
    for problem in problems({"mcp_servers": {name: table}}):
        raise ConfigError(f"`{dotted(problem.key)}` {problem.text}")
    _server(name, table)
    return set_in_config(home, ("mcp_servers", name), table)


def remove_server(home: Path, name: str) -> bool:
    """Remove a server, even an invalid one, from the user's `config.toml`.

    Returns False if the file has no such server. Raises the errors of `set_in_config`.
    """
    return set_in_config(home, ("mcp_servers", name), None)


def _is_elsewhere(table: Mapping[str, Any]) -> bool:
    return table.get("environment_id", _THIS_MACHINE) != _THIS_MACHINE


def _server(name: str, table: Mapping[str, Any]) -> McpServerConfig:
    key = dotted(("mcp_servers", name))
    if not SERVER_NAME.fullmatch(name):
        raise ConfigError(f"{key}: {_NAME_RULE}")
    if "bearer_token" in table:
        raise ConfigError(
            f"{key}: `bearer_token` is not supported; name a variable in `bearer_token_env_var` instead"
        )
    _check_kind(key, table)
    names = {each.name for each in fields(McpServerConfig)}
    settings: dict[str, Any] = {}
    for setting, value in table.items():
        if setting in names and isinstance(value, list):
            settings[setting] = tuple(cast("list[str]", value))
        elif setting in names:
            settings[setting] = value
    settings["env_vars"] = tuple(
        _variable(key, entry) for entry in table.get("env_vars", ())
    )
    settings["oauth_client_id"] = table.get("oauth", {}).get("client_id")
    settings["enabled"] = table.get("enabled", True) and not _is_elsewhere(table)
    settings["tools_approval_modes"] = {
        tool: its["approval_mode"]
        for tool, its in table.get("tools", {}).items()
        if "approval_mode" in its
    }
    startup_timeout_ms = table.get(
        "startup_timeout_ms", DEFAULT_STARTUP_TIMEOUT_S * 1000
    )
    return McpServerConfig(
        **settings,
        startup_timeout_s=float(
            table.get("startup_timeout_sec", startup_timeout_ms / 1000)
        ),
        tool_timeout_s=float(table.get("tool_timeout_sec", DEFAULT_TOOL_TIMEOUT_S)),
    )


def _check_kind(key: str, table: Mapping[str, Any]) -> None:
    if ("command" in table) == ("url" in table):
        if "url" in table:
            both = "not both"
        else:
            both = "one of them is required"
        raise ConfigError(f"{key}: `command` or `url`, {both}")
    kind, others = (
        ("stdio", _HTTP_ONLY)
        if "command" in table
        else ("streamable_http", _STDIO_ONLY)
    )
    for other in others:
        if other in table:
            raise ConfigError(f"{key}.{other} is not supported for {kind}")
    if table.get("command") == "":
        raise ConfigError(f"{key}.command is empty")
    if "url" in table and (problem := url_problem(table["url"])) is not None:
        raise ConfigError(f"{key}.url {problem}")


def url_problem(url: str) -> str | None:
    """The reason why a server cannot have this URL, as a clause; None if it can."""
    if not url.startswith(("http://", "https://")):
        return f"must begin with http:// or https://, not {url!r}"
    try:
        # Accessing the port checks it.
        is_complete = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        is_complete = False
    if not is_complete or not url.isprintable() or " " in url:
        return f"is no URL of a server: {url!r}"
    return None


def _variable(key: str, entry: str | Mapping[str, str]) -> str:
    if isinstance(entry, str):
        return entry
    if "name" not in entry:
        raise ConfigError(f"{key}.env_vars: a table needs a `name`")
    return entry["name"]
