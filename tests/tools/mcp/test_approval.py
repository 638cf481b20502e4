"""What runs unasked. Under `never`: Codex 0.169, but for what does no harm, which that lets run."""

import pytest

from codex_py.config.mcp import ApprovalMode
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode, SandboxPolicy
from codex_py.tools.mcp.approval import needs_approval

READS = ServerTool("t", annotations={"readOnlyHint": True})
HARMLESS = ServerTool(
    "t", annotations={"destructiveHint": False, "openWorldHint": False}
)
SILENT = ServerTool("t")
MODES: list[ApprovalMode] = ["auto", "writes", "prompt", "approve"]


def asks(
    policy: ApprovalPolicy, sandbox: SandboxMode, tool: ServerTool
) -> list[ApprovalMode]:
    """The modes in which the tool is asked about."""
    return [
        mode
        for mode in MODES
        if needs_approval(tool, mode, policy, SandboxPolicy(sandbox))
    ]


@pytest.mark.parametrize(
    ("policy", "sandbox", "reads", "harmless", "silent"),
    [
        ("never", "read-only", ["prompt"], MODES[:3], MODES[:3]),
        ("never", "workspace-write", ["prompt"], MODES[:3], MODES[:3]),
        ("never", "danger-full-access", [], [], []),
        ("on-request", "read-only", ["prompt"], MODES[:3], MODES[:3]),
        ("on-request", "workspace-write", ["prompt"], MODES[1:3], MODES[:3]),
        ("on-request", "danger-full-access", ["prompt"], MODES[1:3], MODES[1:3]),
        ("on-failure", "workspace-write", ["prompt"], MODES[1:3], MODES[:3]),
        ("untrusted", "workspace-write", ["prompt"], MODES[:3], MODES[:3]),
    ],
)
def test_the_policy_and_the_sandbox_decide_which_tools_are_asked_about(
    policy: str,
    sandbox: SandboxMode,
    reads: list[ApprovalMode],
    harmless: list[ApprovalMode],
    silent: list[ApprovalMode],
) -> None:
    chosen = ApprovalPolicy(policy)
    assert [asks(chosen, sandbox, tool) for tool in (READS, HARMLESS, SILENT)] == [
        reads,
        harmless,
        silent,
    ]
