"""Describes MCP servers in the format of Codex 0.171."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from codex_py.app.mcp_login import AuthStatus
from codex_py.config.mcp import McpServerConfig
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.mcp import McpServerStatus

_AUTH: Final[Mapping[AuthStatus, str]] = {
    "unsupported": "unsupported",
    "not_logged_in": "notLoggedIn",
    "bearer_token": "bearerToken",
    "o_auth": "oAuth",
    "unknown": "unknown",
}
_ABOUT: Final = ("name", "title", "version", "description", "icons", "websiteUrl")
_Kinds = Mapping[str, type[Any]]
"""The types of fields in the protocol."""
_SHOWN: Final[_Kinds] = {"title": str, "description": str, "icons": list}
_TOOL: Final[_Kinds] = {
    **_SHOWN,
    "outputSchema": object,
    "annotations": object,
    "_meta": object,
}
_RESOURCE: Final[_Kinds] = {
    **_SHOWN,
    "uri": str,
    "name": str,
    "mimeType": str,
    "size": int,
    "annotations": object,
    "_meta": object,
}
_TEMPLATE: Final[_Kinds] = {
    "uriTemplate": str,
    "name": str,
    "title": str,
    "description": str,
    "mimeType": str,
    "annotations": object,
}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def startup_data(thread_id: str, status: McpServerStatus) -> Fields:
    """The params of `mcpServer/startupStatus/updated`."""
    failure = None
    if status.wanted_login == "again":
        failure = "reauthenticationRequired"
    return {
        "threadId": thread_id,
        "name": status.name,
        "environmentId": None,
        "status": status.state,
        "error": status.error,
        "failureReason": failure,
    }


def server_data(
    name: str,
    config: McpServerConfig,
    auth: AuthStatus,
    status: McpServerStatus | None,
    tools: Iterable[ServerTool],
) -> Fields:
    """An entry of `mcpServerStatus/list`, without resources.

    Args:
        status: None if the server is disabled.
    """
    about = None
    error = None
    if status is not None:
        about = status.about
        error = status.error
    info = None
    capabilities = None
    if about is not None:
        info = {key: about.info.get(key) for key in _ABOUT}
        capabilities = about.capabilities
    return {
        "name": name,
        "environmentId": None,
        "runtimeStatus": None,
        "pluginId": None,
        "httpOrigin": _origin(config.url),
        "serverInfo": info,
        "serverCapabilities": capabilities,
        "toolListMeta": None,
        "tools": {tool.name: _tool(tool) for tool in tools},
        "toolsError": error,
        "resources": [],
        "resourceTemplates": [],
        "authStatus": _AUTH[auth],
    }


def runtime_status(status: McpServerStatus) -> str:
    """The state of a server of a thread."""
    if status.state == "ready":
        return "connected"
    if status.wanted_login is not None:
        return "authenticationRequired"
    return status.state


def resources_data(entries: Iterable[JsonObject]) -> list[Fields]:
    """The resources among the entries; what is none is left out."""
    found = [_known_fields(entry, _RESOURCE) for entry in entries]
    return [each for each in found if "uri" in each and "name" in each]


def templates_data(entries: Iterable[JsonObject]) -> list[Fields]:
    """The templates among the entries; what is none is left out."""
    found = [_known_fields(entry, _TEMPLATE) for entry in entries]
    return [each for each in found if "uriTemplate" in each and "name" in each]


def _tool(tool: ServerTool) -> Fields:
    fields = _known_fields(tool.entry, _TOOL)
    return {"name": tool.name, "inputSchema": tool.input_schema, **fields}


def _known_fields(entry: Mapping[str, Any], kinds: _Kinds) -> Fields:
    """The fields that the protocol has, with values of its types."""
    found: Fields = {}
    for name, kind in kinds.items():
        value = entry.get(name)
        if value is None or not isinstance(value, kind):
            continue
        if kind is int and isinstance(value, bool):
            continue
        found[name] = value
    return found


def _origin(url: str | None) -> str | None:
    """The origin of an address, without anything that may be secret."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    port = parts.port
    if port is None or port == _DEFAULT_PORTS.get(parts.scheme):
        return f"{parts.scheme}://{host}"
    return f"{parts.scheme}://{host}:{port}"
