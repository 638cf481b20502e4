"""Approvals for calls of MCP tools. Source: Codex 0.169, as far as it is known."""

import json
from collections.abc import Mapping
from typing import Any

from codex_py.config.mcp import ApprovalMode, McpServerConfig
from codex_py.errors import CallRefused
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    GranularPolicy,
    SandboxPolicy,
    may_ask,
)
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.tools import MCP_PREFIX
from codex_py.tools.truncate import truncate_middle

_SUMMARY_BYTES = 10_000
_NEVER_ASKS = "MCP tool call requires approval, but approval policy is never"


def refusal(
    server: str,
    tool: str,
    config: McpServerConfig,
) -> CallRefused:
    """The error for a call that needs an approval when the user may not be asked.

    It names the setting that allows the call.
    """
    if tool in config.tools_approval_modes:
        key = f"tools.{tool}.approval_mode"
    else:
        key = "default_tools_approval_mode"
    allow = f'mcp_servers.{server}.{key} = "approve"'
    return CallRefused(
        f"{_NEVER_ASKS}; to allow it: {allow}",
        code="ApprovalDenied",
        cause="a tool of an MCP server needs an approval",
        allow=allow,
    )


def needs_approval(
    tool: ServerTool, mode: ApprovalMode, policy: AskForApproval, sandbox: SandboxPolicy
) -> bool:
    """True if the user must approve the call first.

    MCP tools run outside the sandbox; its mode shows how far the user trusts the model. In the mode
    `auto`, full access allows every call, and any other sandbox allows the tools that declare
    themselves read-only. A writable workspace also allows tools that declare themselves harmless,
    if the user can be asked about the others.
    """
    has_full_access = sandbox.mode == "danger-full-access"
    runs_unattended = has_full_access and policy is ApprovalPolicy.NEVER
    match mode:
        case "approve":
            return False
        case "prompt":
            return not runs_unattended
        case "writes":
            return not (tool.is_read_only or runs_unattended)
        case "auto":
            if tool.is_read_only or has_full_access:
                return False
            on_request = {ApprovalPolicy.ON_REQUEST, ApprovalPolicy.ON_FAILURE}
            can_ask = policy in on_request or isinstance(policy, GranularPolicy)
            is_trusted = can_ask and sandbox.mode == "workspace-write"
            return not (is_trusted and tool.is_harmless)


async def approve_call(
    name: str,
    arguments: Mapping[str, Any],
    question: str,
    context: ToolContext,
    grant: tuple[str, ...],
    refused: CallRefused,
    *,
    item_id: str,
    rejected: str = "user rejected MCP tool call",
) -> None:
    """Ask the user about a call of `server/tool`, unless it is approved for the session.

    Args:
        grant: the key of the approval for the session.
        refused: the error if the user may not be asked.
        item_id: the id of the call's thread item.
        rejected: the beginning of the error if the user refuses.

    Raises:
        ToolError: the call may not run.
    """
    approvals = context.approvals
    can_ask = may_ask(context.approval_policy, "mcp_elicitations")
    if grant not in approvals.granted and not can_ask:
        raise refused
    encoded = json.dumps(arguments, ensure_ascii=False)
    summary = truncate_middle(encoded, _SUMMARY_BYTES, "bytes")
    flat_name = MCP_PREFIX + name.replace("/", "__", 1)
    request = ApprovalRequest(
        "mcp",
        f"{name} {summary}",
        context.cwd,
        question,
        tool=(flat_name, arguments),
        item_id=item_id,
    )
    async with approvals.asking:
        # The previous answer may cover this call.
        if grant not in approvals.granted:
            await approvals.ask(request, [grant], rejected=rejected)
