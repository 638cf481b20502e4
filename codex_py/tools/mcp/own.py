"""Our own tools about MCP servers: their resources, and a search for their tools.

Requests offer `tool_search` when the servers have too many tools to offer them all.

The answers are JSON text. Answers about resources have the shapes of Codex.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from codex_py.errors import ToolError
from codex_py.mcp.resources import RESOURCES, TEMPLATES, listed
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, objects
from codex_py.protocol.mcp import RequestFailed
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ChangesNothing, ToolParams
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.item import OWN_SERVER, RunningItem, ShownAsServerCall, mcp_item
from codex_py.tools.truncate import BYTES_PER_TOKEN, truncate_output

_MAX_RESULTS = 50
"""Limit on the results of a search."""


@frozen(kw_only=True)
class ListParams(ToolParams):
    server: Annotated[str | None, "Name of the server. Default: all of them."] = None
    cursor: Annotated[
        str | None,
        "Where to go on: the `nextCursor` of an earlier call. Needs `server`.",
    ] = None


@frozen(kw_only=True)
class ReadParams(ToolParams):
    server: Annotated[str, "Name of the server."]
    uri: Annotated[str, "Address of the resource."]


class _ServersTool(ShownAsServerCall):
    parallel = True

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    def _server(self, name: str) -> McpServer:
        """The server with a name. Raises a `ToolError` if there is none."""
        server = self._servers.by_name.get(name)
        if server is None:
            raise ToolError(f"unknown MCP server '{name}'", code="UnknownServer")
        return server


class ListMcpResources(_ServersTool):
    """Lists the resources of one server, a page at a time, or all resources of all servers."""

    name = "list_mcp_resources"
    params = ListParams
    _list = RESOURCES

    async def run(self, params: ListParams, context: ToolContext) -> ToolOutput:
        """List the resources. Without `server`, the servers that fail are listed as `errors`."""
        arguments = {
            name: value for name, value in asdict(params).items() if value is not None
        }
        shown_server = params.server or OWN_SERVER
        with mcp_item(shown_server, self.name, arguments, context) as item:
            if params.server is not None:
                listing = await self._page(self._server(params.server), params.cursor)
            elif params.cursor is not None:
                raise ToolError(
                    "cursor can only be used when a server is specified",
                    code="InvalidArgs",
                )
            else:
                listing = await self._all_servers()
            return _answer(item, listing, context)

    async def _page(self, server: McpServer, cursor: str | None) -> dict[str, Any]:
        """One page of a server: the first one, or the one that `cursor` names."""
        query: dict[str, str] = {}
        if cursor is not None:
            query["cursor"] = cursor
        page = await _request(server, self._list.method, query)
        entries = objects(page.get(self._list.field))
        listing: dict[str, Any] = {
            "server": server.name,
            self._list.field: _named(server, entries),
        }
        next_cursor = page.get("nextCursor")
        if isinstance(next_cursor, str):
            listing["nextCursor"] = next_cursor
        return listing

    async def _all_servers(self) -> dict[str, Any]:
        """The entries of all servers that have resources, and the errors of those that failed."""
        servers = [
            server for server in self._servers.by_name.values() if server.has_resources
        ]
        results = await asyncio.gather(*[self._all_pages(each) for each in servers])
        entries: list[dict[str, Any]] = []
        errors: dict[str, str] = {}
        for server, result in zip(servers, results, strict=True):
            if isinstance(result, ToolError):
                errors[server.name] = str(result)
            else:
                entries += result
        listing: dict[str, Any] = {self._list.field: entries}
        if errors:
            listing["errors"] = errors
        return listing

    async def _all_pages(self, server: McpServer) -> list[dict[str, Any]] | ToolError:
        """The entries of all pages of a server, or the error of a request."""
        try:
            return _named(server, await listed(server, self._list))
        except RequestFailed as error:
            return _tool_error(self._list.method, error)


class ListMcpResourceTemplates(ListMcpResources):
    name = "list_mcp_resource_templates"
    _list = TEMPLATES


class ReadMcpResource(_ServersTool):
    name = "read_mcp_resource"
    params = ReadParams

    async def run(self, params: ReadParams, context: ToolContext) -> ToolOutput:
        with mcp_item(params.server, self.name, asdict(params), context) as item:
            server = self._server(params.server)
            result = await _request(server, "resources/read", {"uri": params.uri})
            value = {
                "server": params.server,
                "uri": params.uri,
                "contents": result.get("contents", []),
            }
            return _answer(item, value, context)


@frozen(kw_only=True)
class ToolSearchParams(ToolParams):
    query: Annotated[str, "Words of the name or the description of the tool."]
    limit: Annotated[int, "How many to return. Default: 8."] = 8


class ToolSearch(ChangesNothing):
    name = "tool_search"
    params = ToolSearchParams
    parallel = True

    def __init__(self, catalogue: McpCatalogue) -> None:
        self._catalogue = catalogue

    async def run(self, params: ToolSearchParams, context: ToolContext) -> ToolOutput:
        """Return names, descriptions and schemas as JSON. No item is emitted, as in Codex."""
        limit = max(1, min(params.limit, _MAX_RESULTS))
        specs = self._catalogue.search(params.query, limit)
        bytes_left = context.output_token_limit * BYTES_PER_TOKEN
        shown: list[dict[str, Any]] = []
        for spec in specs:
            entry = spec.described()
            bytes_left -= len(encode_json(entry))
            if bytes_left < 0:
                # The next request offers the tool with its schema.
                entry = {"name": spec.name}
            shown.append(entry)
        text = encode_json({"tools": shown}).decode()
        return ToolOutput(truncate_output(text, context.output_token_limit))


def own_mcp_tools(
    servers: McpServers, catalogue: McpCatalogue
) -> Sequence[ListMcpResources | ReadMcpResource | ToolSearch]:
    return (
        ListMcpResources(servers),
        ListMcpResourceTemplates(servers),
        ReadMcpResource(servers),
        ToolSearch(catalogue),
    )


async def _request(
    server: McpServer, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        return await server.request(method, params)
    except RequestFailed as error:
        raise _tool_error(method, error) from error


def _tool_error(method: str, error: RequestFailed) -> ToolError:
    return ToolError(f"{method} failed: {error}", code=error.code)


def _named(server: McpServer, entries: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """The entries, each with the name of its server."""
    return [{"server": server.name, **entry} for entry in entries]


def _answer(
    item: RunningItem, value: dict[str, Any], context: ToolContext
) -> ToolOutput:
    """End the item with a JSON value, and return the value for the model."""
    text = encode_json(value).decode()
    item.end({"content": [{"type": "text", "text": text}]})
    return ToolOutput(truncate_output(text, context.output_token_limit))
