"""The tools of a server, as it describes them, and the reading of its lists page by page. LIGHT."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from codex_py.mcp.connection import McpSession
from codex_py.protocol.json_fields import JsonObject, object_field, objects, text_field
from codex_py.protocol.mcp import RequestFailed
from codex_py.streams.terminal import some_of

MAX_TOOLS: Final = 20_000
MAX_PAGES: Final = 200
"""Limit on the pages of one list: a server may send a new cursor for ever."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server. All fields are the server's own."""

    name: str
    """The name of the tool at the server."""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The entry of `tools/list`, unchecked."""

    @property
    def is_read_only(self) -> bool:
        """True if the server declares that the tool changes nothing."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def is_harmless(self) -> bool:
        """True if the server declares that the tool is harmless.

        Such a tool destroys nothing and does not interact with the outside world.
        """
        return (
            self.annotations.get("destructiveHint") is False
            and self.annotations.get("openWorldHint") is False
        )


async def read_pages(
    request: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
    take: Callable[[dict[str, Any]], bool],
) -> bool:
    """Request the pages of a list until the last one, or until `take` has enough.

    Returns True if the last page was read. A cursor that comes again ends the list.

    Args:
        request: sends the request for one page, with the given parameters.
        take: takes each page, and returns True if it wants no more.
    """
    cursors: set[str] = set()
    params: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        page = await request(params)
        has_enough = take(page)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in cursors:
            return True
        if has_enough:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    return False


async def listed_tools(
    session: McpSession,
) -> tuple[tuple[ServerTool, ...], str | None]:
    """Read all tools, in the server's order. Returns them and a complaint about the list or None.

    Raises:
        RequestFailed: a request failed, or an answer is not a list of tools.
    """
    found: dict[str, ServerTool] = {}
    only_as_tasks: list[str] = []

    def request(params: Mapping[str, Any]) -> Awaitable[dict[str, Any]]:
        return session.send("tools/list", params, None)

    def add_page(page: dict[str, Any]) -> bool:
        entries = page.get("tools")
        if not isinstance(entries, list):
            raise RequestFailed("answered tools/list without a list of tools")
        for entry in objects(cast("list[object]", entries)):
            tool = _server_tool(entry)
            if tool is None:
                continue
            if _runs_only_as_task(entry):
                only_as_tasks.append(tool.name)
            else:
                found.setdefault(tool.name, tool)
        return len(found) > MAX_TOOLS

    if not session.has_tools:
        return (), None
    is_whole = await read_pages(request, add_page)
    complaint = None
    if len(found) > MAX_TOOLS:
        complaint = f"has more than {MAX_TOOLS} tools; the others are left out"
    elif not is_whole:
        complaint = (
            f"lists its tools on more than {MAX_PAGES} pages; the others are left out"
        )
    elif only_as_tasks:
        names = some_of(only_as_tasks)
        complaint = f"has tools that can only run as tasks, which are left out: {names}"
    tools = tuple(found.values())
    return tools[:MAX_TOOLS], complaint


def _runs_only_as_task(entry: JsonObject) -> bool:
    """True for a tool that refuses a plain call.

    Source: https://modelcontextprotocol.io/specification/2025-11-25
    """
    execution = object_field(entry, "execution")
    return text_field(execution, "taskSupport") == "required"


def _server_tool(entry: JsonObject) -> ServerTool | None:
    """The tool of an entry of `tools/list`; None without a name. Other bad fields are left out."""
    name = text_field(entry, "name")
    if not name:
        return None
    return ServerTool(
        name,
        text_field(entry, "description"),
        object_field(entry, "inputSchema"),
        object_field(entry, "annotations"),
        entry,
    )
