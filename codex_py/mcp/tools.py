"""The tools of a server, as it describes them, and its lists, which come in pages. LIGHT."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from codex_py.mcp.connection import McpSession
from codex_py.protocol.json_fields import JsonObject, object_field, objects, text_field
from codex_py.protocol.mcp import RequestFailed
from codex_py.streams.terminal import some_of

MAX_TOOLS: Final = 20_000
MAX_PAGES: Final = 200
"""The limit of pages in one list: a server may send a new cursor for ever."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    name: str
    """The server's own name for the tool."""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])

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

    True if the last one was read.

    Args:
        request: sends the request for one page, with these parameters.
        take: gets each page; returns True if it wants no more.
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
        RequestFailed
    """
    found: dict[str, ServerTool] = {}
    only_as_tasks: list[str] = []

    def take(page: dict[str, Any]) -> bool:
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
    is_whole = await read_pages(
        lambda params: session.send("tools/list", params, None), take
    )
    tools = tuple(found.values())[:MAX_TOOLS]
    if len(found) > MAX_TOOLS:
        return tools, f"has more than {MAX_TOOLS} tools; the others are left out"
    if not is_whole:
        return (
            tools,
            f"lists its tools on more than {MAX_PAGES} pages; the others are left out",
        )
    if only_as_tasks:
        names = some_of(only_as_tasks)
        return (
            tools,
            f"has tools that can only run as tasks, which are left out: {names}",
        )
    return tools, None


def _runs_only_as_task(entry: JsonObject) -> bool:
    """True for a tool that refuses a plain call: https://modelcontextprotocol.io/specification/2025-11-25"""
    return text_field(object_field(entry, "execution"), "taskSupport") == "required"


def _server_tool(entry: JsonObject) -> ServerTool | None:
    """The tool of an entry of `tools/list`; None without a name. Other bad fields are left out."""
    name = text_field(entry, "name")
    if not name:
        return None
    schema, annotations = (
        object_field(entry, key) for key in ("inputSchema", "annotations")
    )
    return ServerTool(name, text_field(entry, "description"), schema, annotations)
