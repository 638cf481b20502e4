"""Run a tool with arguments as a model writes them, and see what it tells the model and its watchers."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    Review,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import Approvals, ItemIds, Tool, ToolContext
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import Event, ItemCompleted, ItemStarted
from codex_py.protocol.tools import ToolOutput
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.patch.apply_patch import ApplyPatch
from codex_py.tools.shell.command import CommandRunner
from codex_py.tools.shell.orchestrator import Orchestrator


@dataclass
class ScriptedApprover:
    decision: ReviewDecision = ReviewDecision.DENIED
    feedback: str | None = None
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])

    async def review(self, request: ApprovalRequest) -> Review:
        self.asked.append(request)
        return Review(self.decision, self.feedback)


class DirectSandbox(PlatformSandbox):
    """Runs commands as they are, whatever the policy says."""

    def __init__(self) -> None:
        super().__init__({}, backends=())

    def command(
        self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path
    ) -> Sequence[str]:
        return argv


class EchoSandbox(DirectSandbox):
    """Shows what a command would have been."""

    def command(
        self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path
    ) -> Sequence[str]:
        return ["echo", policy.mode, str(cwd), *argv]


@dataclass
class ToolCalls:
    """Calls of one session; `events` are all that they emitted."""

    sessions: ProcessSessions
    cwd: Path
    approval_policy: AskForApproval = ApprovalPolicy.NEVER
    sandbox_policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    approver: ScriptedApprover = field(default_factory=ScriptedApprover)
    output_token_limit: int = 10_000
    on_event: Callable[[Event], None] | None = None
    events: list[Event] = field(default_factory=list[Event])
    _items: int = 0

    def __post_init__(self) -> None:
        self._approvals = Approvals(self)

    async def review(self, request: ApprovalRequest) -> Review:
        return await self.approver.review(request)

    async def call(self, tool: Tool[Any], **arguments: Any) -> ToolOutput:
        params = tool.params.model_validate_json(json.dumps(arguments))
        return await tool.run(params, self.context())

    def runner(self, sandbox: PlatformSandbox | None = None) -> CommandRunner:
        orchestrator = Orchestrator(sandbox or DirectSandbox())
        return CommandRunner(self.sessions, orchestrator, ApplyPatch().apply)

    def context(self) -> ToolContext:
        return ToolContext(
            call_id="call_1",
            cwd=self.cwd,
            # Start-up files of whoever runs the tests are none of their business.
            environment={"PATH": os.environ["PATH"], "HOME": str(self.cwd.parent)},
            approval_policy=self.approval_policy,
            sandbox_policy=self.sandbox_policy,
            approvals=self._approvals,
            emit=self._emit,
            next_item_id=ItemIds(self._next_item_id),
            output_token_limit=self.output_token_limit,
        )

    def started(self) -> list[CommandExecution]:
        return [
            event.item
            for event in self.events
            if isinstance(event, ItemStarted)
            and isinstance(event.item, CommandExecution)
        ]

    def completed(self) -> list[CommandExecution]:
        return [
            event.item
            for event in self.events
            if isinstance(event, ItemCompleted)
            and isinstance(event.item, CommandExecution)
        ]

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def _next_item_id(self) -> str:
        self._items += 1
        return f"item_{self._items - 1}"


@asynccontextmanager
async def tool_calls(cwd: Path) -> AsyncGenerator[ToolCalls]:
    sessions = ProcessSessions()
    try:
        yield ToolCalls(sessions, cwd)
    finally:
        await sessions.aclose()
