"""Reads the MCP servers of a plugin, in Claude Code's form, as tables of `config.toml`. LIGHT."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.config.check import dotted, problems
from codex_py.config.declared.settings import Settings
from codex_py.config.mcp import mcp_servers
from codex_py.config.plugins import plugin_variables
from codex_py.errors import ConfigError
from codex_py.protocol.annotations import Kind

Servers: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The declared type of the servers."""
_SAME_KEYS: Final = (
    "command",
    "args",
    "env",
    "env_vars",
    "cwd",
    "url",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "startup_timeout_sec",
    "tool_timeout_sec",
)
_SERVER_KEYS: Final = {key: key for key in _SAME_KEYS} | {"headers": "http_headers"}
"""The keys that a plugin may set, with their names in `config.toml`. Approvals are not among them:
only the user gives those."""
_VARIABLE: Final = re.compile(r"(Bearer )?\$\{(\w+)\}")
"""Matches a header whose value is a variable, alone or as a bearer token."""
_ROOT: Final = re.compile(r"\$\{(?:CLAUDE_|CODEX_)?PLUGIN_ROOT\}")
"""Matches the plugin's folder in a value."""


def plugin_servers(
    root: Path, tables: Iterable[Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Convert servers in the form of `.mcp.json` to the form of `config.toml`.

    Args:
        root: the plugin's folder.
        tables: each has servers by name, or `mcpServers` with them.

    Raises:
        ValueError: a server is not valid. The message is a clause.
    """
    servers: dict[str, Any] = {}
    for table in tables:
        inner = table.get("mcpServers", table)
        require(inner, Servers, "`mcpServers`")
        for name, given in inner.items():
            known = _SERVER_KEYS.keys() & given.keys()
            servers[name] = {
                _SERVER_KEYS[key]: _filled(root, given[key]) for key in known
            }
    require({"mcp_servers": servers}, Settings, "it")
    for server in servers.values():
        _pass_variables(server)
        if "command" in server:
            _place_in_plugin(root, server)
    try:
        mcp_servers(servers)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return servers


def _place_in_plugin(root: Path, server: dict[str, Any]) -> None:
    """Make the paths of a program absolute, and give it the variables of the plugin."""
    server["env"] = server.get("env", {}) | plugin_variables(root)
    # A bare name is one of the user's programs; a path is one in the plugin.
    if "/" in server["command"]:
        server["command"] = os.path.normpath(root / server["command"])
    if "cwd" in server:
        server["cwd"] = os.path.normpath(root / server["cwd"])


def _pass_variables(server: dict[str, Any]) -> None:
    """Ask for the variables in values such as `${TOKEN}` by name, as `config.toml` does."""
    for name, value in list(server.get("env", {}).items()):
        if value == f"${{{name}}}":
            del server["env"][name]
            server.setdefault("env_vars", []).append(name)
    for header, value in list(server.get("http_headers", {}).items()):
        found = _VARIABLE.fullmatch(value)
        if found is None:
            continue
        bearer, variable = found.groups()
        if not bearer:
            server.setdefault("env_http_headers", {})[header] = variable
        elif header.lower() == "authorization":
            server["bearer_token_env_var"] = variable
        else:
            continue
        del server["http_headers"][header]


def _filled(root: Path, value: Any) -> Any:
    """Fill the path of the plugin into a value of JSON."""
    path = json.dumps(str(root))[1:-1]
    return json.loads(_ROOT.sub(lambda _: path, json.dumps(value)))


def require(
    value: Any,
    kind: Kind,
    what: str,
) -> None:
    """Raise a `ValueError` if a value is not of its kind. The message begins with `what`."""
    for problem in problems(value, kind):
        if problem.key:
            what += f": `{dotted(problem.key)}`"
        raise ValueError(f"{what} {problem.text}")
