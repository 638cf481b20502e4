"""The context of a call that needs no process."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from codex_py.protocol.approval import ApprovalPolicy, AskForApproval, SandboxPolicy
from codex_py.protocol.dispatch import Approvals, ItemIds, Tool, ToolContext
from codex_py.protocol.events import EventSink
from codex_py.tools.router import ToolRouter
from tests.support.tool_calls import ScriptedApprover


def tool_context(
    cwd: Path,
    emit: EventSink,
    *,
    policy: AskForApproval = ApprovalPolicy.NEVER,
    sandbox: SandboxPolicy | None = None,
    approver: ScriptedApprover | None = None,
) -> ToolContext:
    """Items are numbered from `item_0`; without a sandbox policy everything is allowed."""
    return ToolContext(
        call_id="call",
        cwd=cwd,
        environment={},
        approval_policy=policy,
        sandbox_policy=sandbox or SandboxPolicy("danger-full-access"),
        approvals=Approvals(approver or ScriptedApprover()),
        emit=emit,
        next_item_id=ItemIds(_numbered()),
    )


def _numbered() -> Callable[[], str]:
    numbers = count()
    return lambda: f"item_{next(numbers)}"


def router_of(*tools: Tool[Any]) -> ToolRouter:
    return ToolRouter(
        {tool.name: tool for tool in tools}.get, lambda dispatch: dispatch
    )
