"""Holds a subagent to the tools of its role: no others are offered, and calls of others are refused."""

from collections.abc import Iterable
from dataclasses import replace

from codex_py.config.role_files import AGENT_TOOLS, COMMAND_TOOLS, Role
from codex_py.errors import ToolError
from codex_py.mcp.servers import folded
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.extension import Extension, Thread, combined
from codex_py.protocol.stream import ModelStream, Prompt
from codex_py.protocol.tools import MCP_PREFIX, ToolOutput
from codex_py.tools.mcp.tool import McpTool
from codex_py.tools.offered import TOOL_SEARCH


class RoleLimits:
    """A feature of the subagent. It is inside of all that offer tools.

    Args:
        above: of the agent that started this one, whose limits hold for it too.
    """

    def __init__(self, role: Role, above: "RoleLimits | None" = None) -> None:
        self._role = role
        self._above = above
        tools = role.tools or frozenset()
        # Spellings differ; a call is compared by what is called.
        self._spelt = {folded(name) for name in tools}
        if any(name.startswith(MCP_PREFIX) or name in AGENT_TOOLS for name in tools):
            tools |= {TOOL_SEARCH}
        self._tools = tools

    def __call__(self, thread: Thread) -> Extension:
        outer = Extension() if self._above is None else self._above(thread)
        if self._role.tools is None:
            return outer
        own = Extension(wrap_model=self._wrap_model, wrap_dispatch=self._wrap_dispatch)
        return combined([outer, own])

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        def stream(prompt: Prompt):
            tools = tuple(spec for spec in prompt.tools if self._is_offered(spec.name))
            return inner(replace(prompt, tools=tools))

        return stream

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        async def dispatch(use: ToolUse) -> ToolOutput:
            if self._tools.isdisjoint(_names(use)):
                text = f"the role {self._role.name!r} of this agent does not allow `{use.call.tool_name}`"
                raise ToolError(text, code="ToolNotAllowed")
            if self._role.reads_only and use.tool.name in COMMAND_TOOLS:
                context = replace(use.context, sandbox_policy=SandboxPolicy(is_final=True))
                use = replace(use, context=context)
            return await inner(use)

        return dispatch

    def _is_offered(self, name: str) -> bool:
        if not name.startswith(MCP_PREFIX):
            return name in self._tools
        spelt = folded(name)
        return any(spelt == each or spelt.startswith(f"{each}__") for each in self._spelt)


def _names(use: ToolUse) -> Iterable[str]:
    """The names in a role that allow the call."""
    tool = use.tool
    if isinstance(tool, McpTool):
        # A server chooses the names of its tools: one may be called `exec_command`.
        return f"{MCP_PREFIX}{tool.server}", f"{MCP_PREFIX}{tool.server}__{tool.name}"
    return (tool.name,)
