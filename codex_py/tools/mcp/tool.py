"""Calls of the tools of MCP servers."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ToolError
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.checked import checked
from codex_py.protocol.dispatch import Tool, ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.mcp import RequestFailed
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams
from codex_py.tools.mcp.approval import approve_call, needs_approval, refusal
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.item import mcp_item
from codex_py.tools.mcp.output import call_output
from codex_py.tools.mcp.own import own_mcp_tools


@frozen(kw_only=True)
class McpArguments(ToolParams):
    """The arguments of a call: any object. The server checks it against its own schema."""

    root: dict[str, Any]

    @classmethod
    def model_validate(cls, data: object) -> Self:
        return cls(root=checked(dict[str, Any], data))


class McpTool:
    """A tool of an MCP server."""

    params = McpArguments

    def __init__(
        self,
        server: McpServer,
        tool: ServerTool,
        config: McpServerConfig,
        image_rule: ImageRule,
    ) -> None:
        self.name = tool.name
        self.server = server.name
        self.parallel = tool.is_read_only or config.supports_parallel_tool_calls
        self._server = server
        self._tool = tool
        self._config = config
        self._image_rule = image_rule

    def changes(self, params: McpArguments, cwd: Path) -> Sequence[Path] | None:  # noqa: ARG002
        if self._tool.is_read_only:
            return ()
        return None

    async def run(self, params: McpArguments, context: ToolContext) -> ToolOutput:
        """Ask for an approval if needed, then call the tool. A failed call is not repeated.

        Raises:
            ToolError: the call was refused, or failed.
        """
        with mcp_item(self._server.name, self._tool.name, params.root, context) as item:
            await self._approve(params.root, context, item.id)
            started_at = time.monotonic()
            call = {"name": self._tool.name, "arguments": params.root}
            try:
                result = await self._server.request("tools/call", call, item.progress)
            except RequestFailed as error:
                cause = str(error).replace("\n", "\n    ")
                name = f"{self._server.name}/{self._tool.name}"
                text = (
                    f"tool call error: tool call failed for `{name}`\n\n"
                    f"Caused by:\n    {cause}"
                )
                raise ToolError(text, code=error.code) from error
            wall_time_s = time.monotonic() - started_at
            item.end(result)
            # Shrinking an image may take seconds.
            return await asyncio.to_thread(
                call_output,
                result,
                wall_time_s,
                limit_tokens=context.output_token_limit,
                image_rule=self._image_rule,
            )

    async def _approve(
        self, arguments: Mapping[str, Any], context: ToolContext, item_id: str
    ) -> None:
        """Ask for an approval if needed. Raises a `ToolError` if the call may not run."""
        server = self._server.name
        tool = self._tool.name
        config = self._config
        policy = context.approval_policy
        mode = config.approval_mode(tool)
        if not needs_approval(self._tool, mode, policy, context.sandbox_policy):
            return
        await approve_call(
            f"{server}/{tool}",
            arguments,
            f"Allow the MCP server `{server}` to run the tool `{tool}`?",
            context,
            ("mcp", server, tool),
            refusal(server, tool, config),
            item_id=item_id,
        )


def mcp_tool_finder(
    servers: McpServers,
    configs: Mapping[str, McpServerConfig],
    catalogue: McpCatalogue,
    image_rule: ImageRule,
) -> Callable[[str], Tool[Any] | None]:
    """Return a function that finds a tool by the name that a model writes.

    It finds the tools of servers, and our own tools about servers.
    """
    own = {tool.name: tool for tool in own_mcp_tools(servers, catalogue)}

    def find(name: str) -> Tool[Any] | None:
        if not servers.by_name:
            return None
        if name in own:
            return own[name]
        found = servers.find(name)
        if found is None:
            return None
        server, tool = found
        return McpTool(server, tool, configs[server.name], image_rule)

    return find
