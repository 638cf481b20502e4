"""The lists of a server's resources and of its resource templates. LIGHT."""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, NamedTuple

from codex_py.mcp.server import McpServer
from codex_py.mcp.tools import read_pages
from codex_py.protocol.json_fields import JsonObject, objects

_MAX_ENTRIES: Final = 10_000
"""The number of entries of one server after which no further page is requested."""


class ResourceList(NamedTuple):
    """A list that servers have."""

    method: str
    field: str
    """The field of the answer that has the entries."""


RESOURCES: Final = ResourceList("resources/list", "resources")
TEMPLATES: Final = ResourceList("resources/templates/list", "resourceTemplates")


async def listed(server: McpServer, wanted: ResourceList) -> list[JsonObject]:
    """Return the entries of all pages of a list, unchecked.

    Raises:
        RequestFailed: a page could not be read.
    """
    entries: list[JsonObject] = []

    def request(params: Mapping[str, Any]) -> Awaitable[dict[str, Any]]:
        return server.request(wanted.method, params)

    def add_page(page: dict[str, Any]) -> bool:
        entries.extend(objects(page.get(wanted.field)))
        return len(entries) >= _MAX_ENTRIES

    await read_pages(request, add_page)
    return entries
