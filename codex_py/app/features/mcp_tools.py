"""The tools of a session's MCP servers, loaded after the first request was sent."""

from codex_py.app.features.mcp import SessionServers
from codex_py.protocol.extension import ToolFinder
from codex_py.tools.mcp.resources import resource_tools
from codex_py.tools.mcp.search import ToolSearch
from codex_py.tools.mcp.tool import McpTools


def finder(session: SessionServers, image_detail: str) -> ToolFinder:
    """Return a function that finds tools of servers and the built-in MCP tools by the name that a model writes."""
    own = {t.name: t for t in (*resource_tools(session.servers), ToolSearch(session.catalogue))}
    found = McpTools(session.servers, session.configs, image_detail=image_detail)
    return lambda name: own.get(name) or found.find(name)
