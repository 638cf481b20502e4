"""Calls and reads of MCP servers for a client, outside of any turn.

The model knows nothing of them: they are no items, hooks do not see them, and nobody is asked, as
in Codex. The client is the user. Settings that disable a server or a tool hold for it too.
"""

from collections.abc import Mapping
from typing import Any, Final

from codex_py.mcp.resources import ResourceList, listed
from codex_py.mcp.server import McpServer
from codex_py.protocol.json_fields import JsonObject, objects
from codex_py.protocol.mcp import RequestFailed
from codex_py.tools.mcp.output import content_list

_PROGRESS_TOKEN: Final = "progressToken"
_OPTIONAL: Final = ("structuredContent", "_meta")
"""The fields of a result that may have any value."""


async def call_tool(
    server: McpServer,
    tool: str,
    arguments: JsonObject | None,
    meta: Mapping[str, Any],
) -> dict[str, Any]:
    """Call a tool. Returns its result, as `CallToolResult` of MCP.

    Args:
        meta: the `_meta` of the request. Progress is not reported, whatever it says.

    Raises:
        RequestFailed: there is no result.
    """
    params: dict[str, Any] = {"name": tool}
    if arguments is not None:
        params["arguments"] = arguments
    params["_meta"] = _without_progress(meta)
    result = await server.request("tools/call", params)
    answer: dict[str, Any] = {"content": content_list(result)}
    for name in _OPTIONAL:
        if name in result:
            answer[name] = result[name]
    is_error = result.get("isError")
    if isinstance(is_error, bool):
        answer["isError"] = is_error
    return answer


async def read_resource(
    server: McpServer,
    uri: str,
    meta: Mapping[str, Any],
) -> list[JsonObject]:
    """Return the contents of a resource; those that are not as in the specification are left out.

    Raises:
        RequestFailed: the resource cannot be read.
    """
    params: dict[str, Any] = {"uri": uri}
    if meta:
        params["_meta"] = _without_progress(meta)
    result = await server.request("resources/read", params)
    return [each for each in objects(result.get("contents")) if _is_content(each)]


async def listed_or_none(server: McpServer, wanted: ResourceList) -> list[JsonObject]:
    """Return the entries of a list; none if the server has no resources, or does not list them."""
    if not server.has_resources:
        return []
    try:
        return await listed(server, wanted)
    except RequestFailed:
        return []


def _without_progress(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in meta.items() if name != _PROGRESS_TOKEN}


def _is_content(entry: JsonObject) -> bool:
    """True for the contents of a resource: a text, or bytes in Base64."""
    has_data = isinstance(entry.get("text"), str) or isinstance(entry.get("blob"), str)
    return has_data and isinstance(entry.get("uri"), str)
