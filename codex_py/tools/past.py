"""Our own tools without a session: to describe them, and to show the calls of an earlier session."""

from typing import Any

from codex_py.mcp.servers import McpServers
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.dispatch import Tool
from codex_py.tools.builtin import builtin_tools
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.resources import resource_tools
from codex_py.tools.mcp.search import ToolSearch
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.shell.orchestrator import Orchestrator


def own_tools() -> list[Tool[Any]]:
    """One of each. They are not to be run."""
    servers = McpServers([])
    builtin = builtin_tools(
        ProcessSessions(),
        UpdatePlan(),
        Orchestrator(),
        home=None,
        shell="",
        structured_shell=False,
        image_detail="",
        max_poll_ms=0,
    )
    return [*builtin, *resource_tools(servers), ToolSearch(McpCatalogue(servers))]
