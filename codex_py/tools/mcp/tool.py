"""Calls of the tools of MCP servers."""

import time
from collections.abc import Mapping
from typing import Any

from pydantic import RootModel

from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ToolError
from codex_py.mcp.request import RequestFailed
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.approval import may_ask
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.mcp.approval import ask_about_call, needs_approval, refusal
from codex_py.tools.mcp.item import mcp_item
from codex_py.tools.mcp.output import call_output, is_error, item_result


class McpArguments(RootModel[dict[str, Any]]):
    """Any object: the server checks it against its own schema."""


class McpTools:
    """The tools of all servers, found by the name that a model writes."""

    def __init__(
        self, servers: McpServers, configs: Mapping[str, McpServerConfig], *, image_detail: str
    ) -> None:
        """`image_detail`: the resolution of images for the model, see `input_image`."""
        self._servers = servers
        self._configs = configs
        self._image_detail = image_detail

    def find(self, name: str) -> "McpTool | None":
        found = self._servers.find(name)
        if found is None:
            return None
        server, tool = found
        config = self._configs[server.name]
        return McpTool(server, tool, config, self._image_detail)


class McpTool:
    """One tool of one server."""

    params = McpArguments

    def __init__(
        self,
        server: McpServer,
        tool: ServerTool,
        config: McpServerConfig,
        image_detail: str,
    ) -> None:
        self.name = tool.name
        self.parallel = tool.is_read_only or config.supports_parallel_tool_calls
        self._server = server
        self._tool = tool
        self._config = config
        self._image_detail = image_detail

    async def run(self, params: McpArguments, context: ToolContext) -> ToolOutput:
        """Ask for an approval if that is needed, then call the tool. The call is sent once, even if it fails.

        Raises:
            ToolError: the call was refused, or failed.
        """
        with mcp_item(self._server.name, self._tool.name, params.root, context) as item:
            await self._approve(params.root, context)
            started_at = time.monotonic()
            call = {"name": self._tool.name, "arguments": params.root}
            try:
                result = await self._server.request("tools/call", call, item.progress)
            except RequestFailed as error:
                raise _call_failed(f"{self._server.name}/{self._tool.name}", error) from error
            item.end(item_result(result), failed=is_error(result))
            return call_output(
                result,
                time.monotonic() - started_at,
                limit_tokens=context.output_token_limit,
                image_detail=self._image_detail,
            )

    async def _approve(self, arguments: Mapping[str, Any], context: ToolContext) -> None:
        """
        Raises:
            ToolError: the call may not run.
        """
        server, tool = self._server.name, self._tool.name
        policy, grant = context.approval_policy, ("mcp", server, tool)
        mode = self._config.approval_mode(tool)
        if grant in context.approvals.granted or not needs_approval(
            self._tool, mode, policy, context.sandbox_policy
        ):
            return
        if not may_ask(policy, "mcp_elicitations"):
            raise refusal(server, tool, self._config)
        question = f"Allow the MCP server `{server}` to run the tool `{tool}`?"
        await ask_about_call(f"{server}/{tool}", arguments, question, context, grant)


def _call_failed(call: str, error: RequestFailed) -> ToolError:
    cause = str(error).replace("\n", "\n    ")
    text = f"tool call error: tool call failed for `{call}`\n\nCaused by:\n    {cause}"
    return ToolError(text, code=error.code)
