"""Built-in tools without a session, to describe them and to show the calls of a past session."""

from collections.abc import Callable
from typing import Any

from codex_py.mcp.servers import McpServers
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.calls import PastCall, PastItems, Replayable
from codex_py.protocol.dispatch import Tool
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.tools import AGENT_TOOLS, AGENTS_NAMESPACE, MCP_PREFIX
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.agents import AgentTool
from codex_py.tools.builtin import builtin_tools
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.item import replay_server_call
from codex_py.tools.mcp.own import own_mcp_tools
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.user_input import RequestUserInput


def own_tools() -> list[Tool[Any]]:
    """Return an instance of every built-in tool. They have no session: do not run them."""
    servers = McpServers([])
    builtin = builtin_tools(
        ProcessSessions(),
        UpdatePlan(),
        Orchestrator(PlatformSandbox({})),
        home=None,
        shell="",
        structured_shell=False,
        image_rule=ImageRule(),
        max_poll_ms=0,
    )
    no_agents: Any = None
    return [
        *(make() for make in builtin.values()),
        *own_mcp_tools(servers, McpCatalogue(servers)),
        *(AgentTool(name, no_agents) for name in sorted(AGENT_TOOLS)),
    ]


def past_tool_finder() -> Callable[[str], Replayable | None]:
    """Return a function that finds the tool of a past call by the name from `called_tool`."""
    known = [*own_tools(), RequestUserInput(DecliningElicitor())]
    tools = {tool.name: tool for tool in known if isinstance(tool, Replayable)}

    def find(name: str) -> Replayable | None:
        if name.startswith(MCP_PREFIX):
            return _ServerTool()
        return tools.get(name.removeprefix(AGENTS_NAMESPACE))

    return find


class _ServerTool:
    """Any tool of an MCP server, even one that no longer exists."""

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem:
        server, _, tool = call.tool_name.removeprefix(MCP_PREFIX).partition("__")
        return replay_server_call(server, tool, call, past)
